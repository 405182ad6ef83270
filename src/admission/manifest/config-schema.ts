import type { JsonValue } from "../json.js";
import type { ConfigSchema } from "./manifest.js";
import { compileSchema } from "./schema/compile.js";
import { failureText } from "./schema/failure.js";
import { rootPlace } from "./schema/place.js";
import { Run, WorkExceeded } from "./schema/run.js";
import { evaluate } from "./schema/schema.js";

const tooMuchWork =
  "/: checking it takes more steps or levels than a module's schema may cause";

/**
 * Compiles a manifest's `config.schema`. Nothing of it becomes code: it is the module author's, and
 * this program trusts no module.
 * @throws AdmissionError input-invalid
 */
export function compileConfigSchema(schema: JsonValue): ConfigSchema {
  const { root, tracks } = compileSchema(schema);
  return {
    check(config) {
      try {
        const run = new Run(tracks);
        const failure = evaluate(root, config, rootPlace, run, null);
        return failure === null ? null : failureText(failure);
      } catch (thrown) {
        if (!(thrown instanceof WorkExceeded)) throw thrown;
        return tooMuchWork;
      }
    },
  };
}
