/** An entry of the program's log; one of JSON has its time in `ts`. */
export interface LogEntry {
  readonly level: string;
  readonly msg: string;
  readonly [field: string]: unknown;
}

const ENTRY =
  /^(?<time>\d\d:\d\d:\d\d\.\d{3}) (?<level>DEBUG|INFO|WARN|ERROR) +(?<text>\S.*)$/;
/** JSON has blanks in strings only, as it is written there. */
const STRING = String.raw`"(?:[^"\\]|\\.)*"`;
const FIELD = new RegExp(
  String.raw` (?<key>${STRING}|[\w.-]+)=(?<value>(?:${STRING}|[^\s"])+)`,
  "y",
);

/** Reads a line, whether it was written with --debug or without; null = it begins no entry. */
export function readLogLine(line: string): LogEntry | null {
  if (line.startsWith("{"))
    return line.endsWith("}") ? (JSON.parse(line) as LogEntry) : null;
  const { time, level = "", text = "" } = ENTRY.exec(line)?.groups ?? {};
  if (time === undefined) return null;
  const messageEnd = text.search(new RegExp(FIELD.source));
  const end = messageEnd < 0 ? text.length : messageEnd;
  return {
    ...readFields(text, end),
    time,
    level: level.toLowerCase(),
    msg: text.slice(0, end),
  };
}

/** @throws Error when there is something else */
function readFields(text: string, start: number): Record<string, unknown> {
  const fields: [string, unknown][] = [];
  FIELD.lastIndex = start;
  while (FIELD.lastIndex < text.length) {
    const at = FIELD.lastIndex;
    const { key = "", value = "" } = FIELD.exec(text)?.groups ?? {};
    if (key === "") throw new Error(`expected key=value at ${text.slice(at)}`);
    fields.push([String(valueOf(key)), valueOf(value)]);
  }
  return Object.fromEntries(fields);
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
