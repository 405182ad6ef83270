import type { RunLimits } from "../../ports.js";
import type { Subject } from "./subject.js";
import type { Warning } from "./warning.js";

/** What came of judging one Input. */
export interface Verdict extends Findings {
  readonly subject: Subject;
  /** null = admitted. */
  readonly refusal: Refusal | null;
}

/** Why the server would refuse, in its own words. */
export interface Refusal {
  readonly code: string;
  /** One line, escaped. */
  readonly message: string;
}

/** What was learnt of a step, as far as the judging went. */
export interface Findings {
  /** null = it runs none, or nobody knows yet. */
  module: ModuleFinding | null;
  /** Where the composite resource names the module; null = the Input does. */
  from: string | null;
  limits: RunLimits | null;
  compositionPolicy: boolean;
  /** What the module's request carries; null = the module was not looked at. */
  grants: GrantFinding | null;
  readonly warnings: Warning[];
}

/** The module of a step. */
export interface ModuleFinding {
  readonly type: "OCI" | "HTTP" | "Path";
  /** null = the composite resource is to say. */
  readonly location: string | null;
  /** null = nothing says. */
  readonly digest: string | null;
}

/** What a module gets beyond the default sandbox. */
export interface GrantFinding {
  /** Step credentials that its request carries. */
  readonly credentials: readonly string[];
  /** Names of its variables. */
  readonly env: readonly string[];
}
