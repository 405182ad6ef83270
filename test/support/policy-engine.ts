import {
  createPolicyEngine,
  type PolicyEngineOptions,
} from "../../src/admission/cedar/policy-engine.js";
import type { PolicyEngine } from "../../src/admission/cedar/policy.js";
import {
  type PolicyWorker,
  startPolicyThread,
} from "../../src/admission/cedar/start-worker.js";

/** The real policy engine, whose thread runs the source as it is. */
export function createTestPolicyEngine(
  options: Partial<PolicyEngineOptions> = {},
): PolicyEngine {
  return createPolicyEngine({
    monotonicMs: () => performance.now(),
    startWorker: startSourceWorker,
    ...options,
  });
}

/** A thread that runs `policy-worker.ts` without a build. */
export function startSourceWorker(): PolicyWorker {
  const program = new URL(
    "../../src/admission/cedar/policy-worker.ts",
    import.meta.url,
  );
  // In a thread, `--import tsx` comes too late for the program itself.
  const boot = `import("tsx/esm/api").then(({ register }) => {
    register();
    return import(${JSON.stringify(program.href)});
  });`;
  return startPolicyThread(boot, { eval: true });
}
