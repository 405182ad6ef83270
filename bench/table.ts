/** One line of the report. Columns that do not apply are empty. */
export interface Row {
  readonly what: string;
  /** The function's own figure. */
  readonly ours: string;
  /** What it is compared with, and that figure. */
  readonly beside: string;
  /** `ours` against `beside`. */
  readonly ratio: string;
  /** The target, with `met` or `missed`. */
  readonly target: string;
}

/** A limit that a figure must keep. */
export interface Target {
  readonly kind: "at-most" | "at-least";
  readonly limit: number;
  /** Such as `× echo` or `ms`. */
  readonly unit: string;
}

const COLUMNS = ["what", "ours", "beside", "ratio", "target"] as const;

/** `target` in words, and whether `figure` keeps it; a figure that is no number has missed. */
export function judge(figure: number, target: Target): string {
  const met =
    target.kind === "at-most" ? figure <= target.limit : figure >= target.limit;
  const sign = target.kind === "at-most" ? "≤" : "≥";
  return `${sign} ${target.limit} ${target.unit}: ${met ? "met" : "missed"}`;
}

/** A Markdown table, padded so that it also reads well in a terminal. */
export function renderTable(rows: readonly Row[]): string {
  const heading: Row = {
    what: "what",
    ours: "ours",
    beside: "beside",
    ratio: "ratio",
    target: "target",
  };
  const widths = COLUMNS.map((column) =>
    Math.max(...[heading, ...rows].map((row) => row[column].length)),
  );
  const line = (row: Row): string =>
    `| ${COLUMNS.map((column, index) => row[column].padEnd(widths[index] ?? 0)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [line(heading), rule, ...rows.map(line)].join("\n");
}

/** Microseconds in a unit that keeps three digits: `87 µs`, `4.21 ms`, `43.0 s`. */
export function formatUs(us: number): string {
  if (Number.isNaN(us)) return "–";
  if (us < 0) return `-${formatUs(-us)}`;
  if (us < 1000) return `${us.toFixed(0)} µs`;
  if (us < 1_000_000) return `${significant(us / 1000)} ms`;
  return `${significant(us / 1_000_000)} s`;
}

/** `2.37 ×`. */
export function formatRatio(ratio: number): string {
  return `${ratio.toFixed(2)} ×`;
}

function significant(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}
