import type { Engine } from "../engine/index.js";
import { errorText } from "../errors.js";
import type { Loader } from "../loader/index.js";
import type { Clock, Logger, ModuleSource } from "../ports.js";
import { createRequestScope } from "../request-scope.js";

/** As long as a load may take. */
const BUDGET_MS = 600_000;

/**
 * Loads modules into memory, as requests would that have no step credential.
 * One that cannot be loaded is logged: a request for it says why, and every other one is served.
 * Never rejects.
 */
export async function warmModules(
  sources: readonly ModuleSource[],
  { loader, engine }: { readonly loader: Loader; readonly engine: Engine },
  clock: Clock,
  logger: Logger,
): Promise<void> {
  const context = { credentialOf: () => null, redirectFence: null };
  const warm = async (source: ModuleSource): Promise<void> => {
    const startedAtMs = clock.monotonicMs();
    const scope = createRequestScope({ deadlineAtMs: startedAtMs + BUDGET_MS });
    try {
      const { module } = await loader.resolve(source, context, scope);
      const lease = await engine.load(module, scope);
      lease.release();
      const elapsedMs = Math.round(clock.monotonicMs() - startedAtMs);
      logger.info({ module: module.description, elapsedMs }, "module is warm");
    } catch (thrown) {
      logger.warn(
        { reason: errorText(thrown) },
        "cannot load a module of --warm-modules",
      );
    }
  };
  await Promise.all(sources.map(warm));
}
