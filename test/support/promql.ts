/** As much of PromQL as our dashboard and alerts are written in. */

/** A metric an expression asks for. */
export interface Selector {
  readonly name: string;
  readonly matchers: readonly Matcher[];
  /** Whether `rate` or `increase` is taken of it. */
  readonly isRate: boolean;
}

interface Matcher {
  readonly label: string;
  readonly matches: (value: string) => boolean;
}

/** What {@link readPromql} finds. */
export interface Promql {
  readonly selectors: readonly Selector[];
  /** Labels of `by`, `on` and the like. */
  readonly labels: readonly string[];
}

const operators = ["and", "or", "unless", "bool", "offset"];

/** @throws when a matcher cannot be read */
export function readPromql(expression: string): Promql {
  const labels: string[] = [];
  const rest = expression.replace(
    /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)/g,
    (_all, list: string) => {
      labels.push(...list.split(",").map((label) => label.trim()));
      return "";
    },
  );
  const selectors: Selector[] = [];
  const names =
    /(?<rate>\b(?:rate|increase)\s*\(\s*)?\b(?<name>[a-z_]\w*)\b(?!\s*\()(?:\{(?<matchers>[^{}]*)\})?(?:\[[^\]]*\])?/gi;
  for (const { groups } of rest.matchAll(names)) {
    const { name = "", matchers = "", rate } = groups ?? {};
    if (operators.includes(name)) continue;
    selectors.push({
      name,
      matchers: readMatchers(matchers),
      isRate: rate !== undefined,
    });
  }
  return { selectors, labels: labels.filter((label) => label !== "") };
}

function readMatchers(text: string): readonly Matcher[] {
  if (text === "") return [];
  return text.split(",").map((matcher) => {
    const parts =
      /^\s*(?<label>\w+)(?<operator>=~|!~|=|!=)"(?<value>[^"]*)"\s*$/.exec(
        matcher,
      )?.groups;
    const { label, operator = "", value = "" } = parts ?? {};
    if (label === undefined) throw new Error(`no matcher: ${matcher}`);
    const whole = new RegExp(`^(?:${value})$`);
    return {
      label,
      matches: (actual) => {
        const isEqual = operator.endsWith("~")
          ? whole.test(actual)
          : actual === value;
        return isEqual !== operator.startsWith("!");
      },
    };
  });
}
