import { escaped, errorText } from "../../errors.js";
import { invalid } from "../fields.js";
import type { JsonValue } from "../json.js";
import { parseJson } from "./json-document.js";
import { parseYaml } from "./yaml-document.js";

const maxBytes = 64 * 1024;

/** No byte order mark, unless it is the first character: that one is dropped. */
const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The value a manifest's bytes stand for: at most 64 KiB of UTF-8, at most 64 levels of objects and
 * lists. How many values there are is bounded by the bytes.
 * @param form "file" is YAML 1.2, "layer" is JSON
 * @throws AdmissionError input-invalid
 */
export function readDocument(
  form: "file" | "layer",
  bytes: Uint8Array,
): JsonValue {
  if (bytes.length > maxBytes) {
    throw invalid(
      `it is ${String(bytes.length)} bytes long, expected at most ${String(maxBytes)} (64 KiB)`,
    );
  }
  const text = decode(bytes);
  if (text.trim() === "") throw invalid("it is empty");
  return form === "file" ? parseYaml(text) : parseJson(text);
}

function decode(bytes: Uint8Array): string {
  try {
    return strictUtf8.decode(bytes);
  } catch (thrown) {
    throw invalid(`it is not UTF-8: ${escaped(errorText(thrown))}`);
  }
}
