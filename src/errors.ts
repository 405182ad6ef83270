/**
 * The base of every error this program throws on purpose.
 *
 * Each folder has one subclass with its own union of codes; only `src/function/` turns them into
 * fatal results or gRPC statuses. `message` is one line, lower case, no full stop, and safe to show
 * to an XR author. `detail` is for the operator's log only.
 */
export abstract class WasmFunctionError<C extends string> extends Error {
  abstract override readonly name: string;
  readonly code: C;
  readonly detail: string | undefined;

  constructor(
    code: C,
    message: string,
    options: { cause?: unknown; detail?: string } = {},
  ) {
    super(
      message,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.detail = options.detail;
  }
}

/** The text of anything that was thrown, on one line. Never throws. */
export function errorText(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.replace(/\s*[\r\n]+\s*/g, " ");
}

/** The operating system's name for a failure, such as `EACCES`; `unknown error` when it has none. */
export function errnoOf(error: unknown): string {
  const code =
    error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "unknown error";
}

/**
 * Text from outside, fit for a message: the first `maxChars` UTF-16 units (default 120), with
 * control, format and line-separator characters, quotes and backslashes escaped as in JSON, so that
 * it can neither forge a log line nor reorder or hide what surrounds it.
 */
export function escaped(text: string, maxChars = 120): string {
  const head = text.length > maxChars ? `${text.slice(0, maxChars)}…` : text;
  return head.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, escapeCharacter);
}

/** As {@link escaped}, in double quotes. */
export function quoted(text: string, maxChars = 120): string {
  return `"${escaped(text, maxChars)}"`;
}

function escapeCharacter(character: string): string {
  if (character === '"' || character === "\\") return `\\${character}`;
  const units = Array.from({ length: character.length }, (_, i) =>
    character.charCodeAt(i),
  );
  return units
    .map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`)
    .join("");
}
