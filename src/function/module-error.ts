import { EngineError } from "../engine/index.js";

/** An engine's error whose message says which module it is about; anything else as it is. */
export function namingModule(
  thrown: unknown,
  moduleDescription: string,
): unknown {
  if (!(thrown instanceof EngineError)) return thrown;
  if (thrown.message.includes(moduleDescription)) return thrown;
  const { code, detail } = thrown;
  const message = `module ${moduleDescription}: ${thrown.message}`;
  return new EngineError(code, message, {
    cause: thrown,
    ...(detail === undefined ? {} : { detail }),
  });
}
