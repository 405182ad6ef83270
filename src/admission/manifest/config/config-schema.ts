import type { JsonValue } from "../../json.js";
import type { ConfigSchema } from "../manifest.js";
import { configValue } from "./config-value.js";
import { failureText } from "./failure.js";
import { readSchema } from "./read-schema.js";
import { createValidator } from "./validator.js";
import { Uncheckable, Work } from "./work.js";

/**
 * Compiles a manifest's `config.schema` with ajv, to code. That is the module author's schema, and
 * this program trusts no module: what ajv sees of it is what is known to be harmless, and what the
 * code may do is bounded.
 * @throws AdmissionError input-invalid
 */
export function compileConfigSchema(schema: JsonValue): ConfigSchema {
  const work = new Work();
  const read = readSchema(schema);
  const validate = createValidator(read, work);
  return {
    check(config) {
      try {
        work.restart();
        const value = configValue(config, read.tracks);
        const errors = validate(value);
        return errors.length === 0 ? null : failureText(errors, value);
      } catch (thrown) {
        if (!(thrown instanceof Uncheckable)) throw thrown;
        return `/: ${thrown.message}`;
      }
    },
  };
}
