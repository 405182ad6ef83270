import { quoted } from "../../../errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";
import { ordered } from "./ordered.js";
import { Uncheckable } from "./work.js";

const maxValues = 10_000;
const maxLevels = 128;
/** Of all texts and names together. */
const maxChars = 256 * 1024;
/** Every error below it writes it out. */
const maxNameChars = 1024;

/**
 * A config as it is checked: of at most 10,000 values, 128 levels and 262,144 characters.
 * @param refuseInherited for a schema that asks what other schemas have judged: ajv notes that in
 *   plain objects and would take `constructor` for judged
 * @throws Uncheckable
 */
export function configValue(
  config: JsonValue,
  refuseInherited: boolean,
): JsonValue {
  let values = 1;
  let chars = 0;

  return ordered(config, (value, level) => {
    if (level > maxLevels)
      throw new Uncheckable(`it nests deeper than ${maxLevels} levels`);
    if (typeof value === "string") chars += value.length;
    if (Array.isArray(value)) values += value.length;
    if (isJsonObject(value)) {
      const names = Object.keys(value);
      values += names.length;
      if (values <= maxValues) chars += charsOf(names, refuseInherited);
    }
    if (values > maxValues)
      throw new Uncheckable(`it has more than ${maxValues} values`);
    if (chars > maxChars)
      throw new Uncheckable(`its texts have more than ${maxChars} characters`);
  });
}

function charsOf(names: readonly string[], refuseInherited: boolean): number {
  let chars = 0;
  for (const name of names) {
    if (name.length > maxNameChars) {
      const shown = quoted(name, 40);
      throw new Uncheckable(
        `property name ${shown} is longer than ${maxNameChars} characters`,
      );
    }
    if (refuseInherited && name in inherited) {
      throw new Uncheckable(
        `property name ${quoted(name)} is not supported by a schema with unevaluatedProperties`,
      );
    }
    chars += name.length;
  }
  return chars;
}

const inherited: JsonObject = {};
