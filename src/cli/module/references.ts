import { ConfigError } from "../../config.js";
import { quoted } from "../../errors.js";
import { createSourceParsers, type SchemeOptions } from "../../loader/index.js";
import type { OciReference } from "../../ports.js";

/**
 * The reference that an argument is.
 * @param form what messages say is expected
 * @throws ConfigError flag-invalid
 */
export function readReference(
  text: string,
  scheme: SchemeOptions,
  form: string,
): OciReference {
  if (text === "")
    throw new ConfigError(
      "flag-invalid",
      `reference: expected ${form}, got ""`,
    );
  const parsed = createSourceParsers(scheme, form).parseReference(text);
  if (parsed.kind === "ok") return parsed.value;
  // The parser repeats nothing of what may be a password.
  throw new ConfigError("flag-invalid", `reference: ${parsed.message}`);
}

const FULL_FORM = "registry/repository with a tag or a digest";

/**
 * A reference that leads to something.
 * @throws ConfigError flag-invalid
 */
export function readFullReference(
  text: string,
  scheme: SchemeOptions,
): OciReference {
  const ref = readReference(text, scheme, FULL_FORM);
  if (ref.tag !== null || ref.digest !== null) return ref;
  throw new ConfigError(
    "flag-invalid",
    `reference: expected a tag or a digest, got ${quoted(ref.text, 1000)}`,
  );
}

/** The reference that an Input pins: its tag is for people. */
export function pinnedText(
  { location, tag }: OciReference,
  digest: string,
): string {
  return `${location}${tag === null ? "" : `:${tag}`}@${digest}`;
}
