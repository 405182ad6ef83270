/** One instruction of a Dockerfile, its continued lines joined. */
export interface Instruction {
  /** In capitals. */
  readonly name: string;
  /** `--from=build` and the like. */
  readonly flags: readonly string[];
  readonly rest: string;
}

/** A FROM and what follows it. */
export interface Stage {
  /** Of the base image, with the defaults of global ARGs filled in. */
  readonly base: string;
  readonly alias: string | null;
  readonly instructions: readonly Instruction[];
}

/** Reads a Dockerfile without parser directives and here-documents. */
export function readDockerfile(text: string): Stage[] {
  const args = new Map<string, string>();
  const stages: { base: string; alias: string | null; own: Instruction[] }[] =
    [];
  for (const instruction of instructionsIn(text)) {
    const stage = stages.at(-1);
    if (instruction.name === "FROM") {
      const [image = "", as, alias = null] = instruction.rest.split(" ");
      if (as !== undefined && as.toUpperCase() !== "AS")
        throw new Error(`FROM ${instruction.rest}`);
      stages.push({ base: filledIn(image, args), alias, own: [] });
    } else if (stage !== undefined) {
      stage.own.push(instruction);
    } else {
      const [name = "", value = ""] = split(instruction.rest, "=");
      if (instruction.name !== "ARG") throw new Error(instruction.name);
      args.set(name, value);
    }
  }
  return stages.map(({ own, ...stage }) => ({ ...stage, instructions: own }));
}

function instructionsIn(text: string): Instruction[] {
  const lines = text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const joined = lines.reduce<string[]>((whole, line) => {
    const last = whole.at(-1);
    if (last?.endsWith("\\") !== true) return [...whole, line];
    return [...whole.slice(0, -1), `${last.slice(0, -1).trim()} ${line}`];
  }, []);
  return joined.map((line) => {
    const [name = "", rest = ""] = split(line, " ");
    const words = rest.trim().split(" ");
    const count = words.findIndex((word) => !word.startsWith("--"));
    return {
      name: name.toUpperCase(),
      flags: words.slice(0, count),
      rest: words.slice(count).join(" "),
    };
  });
}

function filledIn(image: string, args: ReadonlyMap<string, string>): string {
  return [...args].reduce(
    (text, [name, value]) => text.replace(`\${${name}}`, value),
    image,
  );
}

/** At the first separator. */
function split(text: string, separator: string): string[] {
  const at = text.indexOf(separator);
  return at === -1 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}
