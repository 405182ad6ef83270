/**
 * What every secret that a test plants contains, so that one search finds it wherever it turns up:
 * passwords, tokens, keys, what is in a Docker config, the query of a URL.
 */
export const PLANTED_SECRET = "hunter2";

/** How a planted secret is written somewhere. Private keys are made by openssl, which plants none. */
export type SecretForm =
  "text" | "base64" | "hex" | "decimal bytes" | "private key";

/** A place where a planted secret is. */
export interface SecretFinding {
  readonly form: SecretForm;
  /** In bytes. */
  readonly offset: number;
  readonly length: number;
}

/** Planted secrets in whatever was written, by offset. */
export function findPlantedSecrets(
  output: string | Uint8Array,
): SecretFinding[] {
  // One character for each byte, so that an offset is one of bytes.
  const text = Buffer.from(output).toString("latin1");
  return PATTERNS.flatMap(({ form, pattern }) =>
    Array.from(text.matchAll(pattern), ({ index, 0: { length } }) => ({
      form,
      offset: index,
      length,
    })),
  ).sort((a, b) => a.offset - b.offset);
}

/** The text with every planted secret replaced by `***`. */
export function maskPlantedSecrets(text: string): string {
  return PATTERNS.reduce(
    (rest, { pattern }) => rest.replace(pattern, "***"),
    text,
  );
}

const BYTES = Array.from(Buffer.from(PLANTED_SECRET));

const PATTERNS: readonly { form: SecretForm; pattern: RegExp }[] = [
  // JSON escapes none of its characters, and a URL neither.
  { form: "text", pattern: new RegExp(PLANTED_SECRET, "gi") },
  { form: "base64", pattern: new RegExp(base64Parts().join("|"), "g") },
  {
    form: "hex",
    // As `inspect` writes a Buffer, too.
    pattern: new RegExp(
      BYTES.map((byte) => byte.toString(16)).join("[\\s:]?"),
      "gi",
    ),
  },
  {
    form: "decimal bytes",
    // As JSON has a Buffer or a Uint8Array, and Rust a Vec.
    pattern: new RegExp(
      `(?<!\\d)${BYTES.join(String.raw`,\s*(?:"\d+":\s*)?`)}(?!\\d)`,
      "g",
    ),
  },
  { form: "private key", pattern: /-----BEGIN [A-Z ]*PRIVATE KEY-----/g },
];

/**
 * The characters that stand for the secret alone, whatever is before and after it: one text for
 * each place at which it can begin in a group of three bytes, in either alphabet.
 */
function base64Parts(): string[] {
  const parts = [0, 1, 2].flatMap((offset) => {
    const bytes = [...Array<number>(offset).fill(0), ...BYTES];
    const first = Math.ceil((offset * 8) / 6);
    const end = Math.floor((bytes.length * 8) / 6);
    return (["base64", "base64url"] as const).map((alphabet) =>
      Buffer.from(bytes).toString(alphabet).slice(first, end),
    );
  });
  return [...new Set(parts)].map((part) => part.replaceAll("+", "\\+"));
}
