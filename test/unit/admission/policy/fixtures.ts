import type {
  ActionName,
  CompiledPolicy,
  PolicyEngine,
  Question,
} from "../../../../src/admission/cedar/policy.js";
import type {
  ModuleManifest,
  Requirements,
} from "../../../../src/admission/manifest/manifest.js";
import type { Layer } from "../../../../src/admission/policy/layer.js";

/** A layer that permits what `permits` says, and remembers what it was asked. */
export function fakeLayer(
  permits: (question: Question) => boolean,
  scoped: readonly ActionName[] = [],
): Layer & { readonly asked: Question[] } {
  const asked: Question[] = [];
  return {
    asked,
    permits(question) {
      asked.push(question);
      return Promise.resolve(permits(question));
    },
    scopes: (action) => scoped.includes(action),
  };
}

/** A policy that an engine has compiled. */
export function compiledPolicy(
  text: string,
  scoped: readonly ActionName[] = [],
): CompiledPolicy {
  return {
    text,
    hash: `hash of ${text}`,
    ruleCount: text === "" ? 0 : 1,
    warnings: [],
    scopedActions: new Set(scoped),
    dialAddress: { permit: [], forbid: [] },
  };
}

/** An engine for which every text but `broken` compiles, and that decides as `decide` says. */
export function fakePolicyEngine(
  decide: PolicyEngine["decide"] = () =>
    Promise.resolve({ allowed: true, rules: ["policy0"] }),
): PolicyEngine & { readonly compiled: string[] } {
  const compiled: string[] = [];
  return {
    compiled,
    compile(text) {
      compiled.push(text);
      return Promise.resolve(
        text.includes("broken")
          ? { kind: "error", message: "unexpected end of input" }
          : { kind: "ok", policy: compiledPolicy(text) },
      );
    },
    decide,
    close: () => Promise.resolve(),
  };
}

/** A manifest of ABI v1 that requires what is given, and nothing else. */
export function manifestOf(
  requires: Partial<Requirements> = {},
  rest: Partial<ModuleManifest> = {},
): ModuleManifest {
  return {
    name: null,
    version: null,
    abi: 1,
    source: null,
    minRuntime: null,
    requires: {
      egress: [],
      privateTmp: false,
      env: [],
      credentials: [],
      ...requires,
    },
    configSchema: null,
    ...rest,
  };
}
