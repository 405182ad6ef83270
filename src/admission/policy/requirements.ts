import { quoted } from "../../errors.js";
import type { Question } from "../cedar/policy.js";
import type { Requirements } from "../manifest/manifest.js";

/** One thing a manifest asks for, and what is said when it is refused. */
export interface Requirement {
  readonly question: Question;
  /** What follows `module <type> <location> requires `. */
  readonly sentence: string;
  /** What follows that when the runtime has no operator policy. */
  readonly withoutPolicy: {
    readonly sentence: string;
    readonly purpose: string;
  };
  /** What follows `does not permit`. */
  readonly refused:
    "" | " (setEnv)" | " (spendCredential)" | " for this request";
}

/** Every question a manifest raises, in the order in which it is decided. */
export function requirementsOf(requires: Requirements): Requirement[] {
  return [
    ...privateTmp(requires),
    ...egress(requires),
    ...env(requires),
    ...credentials(requires),
  ];
}

const SANDBOX = "sandbox capabilities";

function privateTmp({ privateTmp: required }: Requirements): Requirement[] {
  if (!required) return [];
  const sentence = "a private /tmp (requires.filesystem.privateTmp)";
  return [
    {
      question: { action: "usePrivateTmp" },
      sentence,
      withoutPolicy: { sentence, purpose: SANDBOX },
      refused: " for this request",
    },
  ];
}

function egress({ egress: rules }: Requirements): Requirement[] {
  return rules.flatMap((rule, at) =>
    rule.methods.map((method): Requirement => {
      const { host, scheme, port, pathPrefix: path } = rule;
      return {
        question: { action: "grantEgress", host, method, path, scheme, port },
        sentence: `egress ${method} to host ${quoted(host, 255)} (requires.egress.http[${at}])`,
        withoutPolicy: {
          sentence: "egress (requires.egress.http)",
          purpose: "egress (grantEgress)",
        },
        refused: "",
      };
    }),
  );
}

/** The variables as a whole, then the credential of each. */
function env({ env: bindings }: Requirements): Requirement[] {
  if (bindings.length === 0) return [];
  const keys = bindings.map(({ name }) => name);
  const sentence = `env [${keys.join(", ")}] (requires.env)`;
  const withoutPolicy = { sentence, purpose: SANDBOX };
  return [
    {
      question: { action: "setEnv", keys },
      sentence,
      withoutPolicy,
      refused: " (setEnv)",
    },
    ...bindings.map(({ name, credential }): Requirement => ({
      question: { action: "spendCredential", credential, repository: null },
      sentence: `env ${name} from credential ${quoted(credential)}`,
      withoutPolicy,
      refused: " (spendCredential)",
    })),
  ];
}

function credentials({ credentials: names }: Requirements): Requirement[] {
  return names.map((credential, at): Requirement => {
    const sentence = `credential ${quoted(credential)} (requires.credentials[${at}])`;
    return {
      question: { action: "spendCredential", credential, repository: null },
      sentence,
      withoutPolicy: {
        sentence,
        purpose: "step credentials (spendCredential)",
      },
      refused: "",
    };
  });
}
