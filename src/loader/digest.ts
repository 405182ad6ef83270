import { quoted } from "../errors.js";
import type { Digest, Parsed } from "../ports.js";

const EXPECTED = "expected sha256: and 64 lower-case hex digits";
/** The algorithm part of the OCI image specification's digest grammar. */
const ALGORITHM = /^(?<algorithm>[a-z0-9]+(?:[+._-][a-z0-9]+)*):/u;

/** Reads a digest; sha256 is the only algorithm, and there is one way to write it. */
export function parseDigest(text: string): Parsed<Digest> {
  if (isDigest(text)) return { kind: "ok", value: text };
  const algorithm = ALGORITHM.exec(text)?.groups?.["algorithm"];
  if (algorithm === undefined || algorithm === "sha256")
    return { kind: "error", message: `${EXPECTED}, got ${quoted(text)}` };
  return {
    kind: "error",
    message: `digest algorithm ${quoted(algorithm)} is not supported, ${EXPECTED}`,
  };
}

function isDigest(text: string): text is Digest {
  return /^sha256:[0-9a-f]{64}$/u.test(text);
}
