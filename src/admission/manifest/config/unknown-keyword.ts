import { quoted } from "../../../errors.js";
import type { JsonObject, JsonValue } from "../../json.js";
import { nearestName } from "../../nearest.js";
import { refused, unexpected } from "./keyword.js";
import { keywords, refusedKeywords } from "./keywords.js";

const dialect = "https://json-schema.org/draft/2020-12/schema";

/**
 * Refuses a keyword that a config schema cannot have, so that a misspelt one does not silently
 * check nothing.
 * @throws AdmissionError input-invalid
 */
export function refuseUnknownKeyword(
  schema: JsonObject,
  pointer: string,
): void {
  for (const [name, value] of Object.entries(schema)) {
    if (keywords.has(name)) continue;
    if (name === "$schema" || name === "$id")
      refuseForeign(name, value, pointer);
    else throw refused(pointer, unknownText(name));
  }
}

/** Below the root they would change what every `$ref` and every keyword means. */
function refuseForeign(name: string, value: JsonValue, pointer: string): void {
  if (pointer !== "")
    throw refused(pointer, `${name} is supported at the root only`);
  const at = { value, pointer: `/${name}` };
  if (typeof value !== "string") throw unexpected(at, "a string");
  if (name === "$schema" && value !== dialect && value !== `${dialect}#`)
    throw unexpected(at, quoted(dialect));
}

function unknownText(name: string): string {
  const advice = refusedKeywords.get(name);
  if (advice !== undefined)
    return `keyword ${quoted(name)} is not supported: ${advice}`;
  const nearest = nearestName(name, [...keywords.keys()]);
  const hint = nearest === undefined ? "" : `, did you mean ${quoted(nearest)}`;
  return `unknown keyword ${quoted(name)}${hint}`;
}
