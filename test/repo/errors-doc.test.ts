import { readdirSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  AdmissionError,
  type AdmissionErrorCode,
} from "../../src/admission/index.js";
import { EngineError, type EngineErrorCode } from "../../src/engine/index.js";
import type { WasmFunctionError } from "../../src/errors.js";
import {
  FunctionError,
  type FunctionErrorCode,
} from "../../src/function/error.js";
import { fatalFrom } from "../../src/function/fatal.js";
import { expectedEncoding } from "../../src/function/grpc-encoding.js";
import { expectedTimeout } from "../../src/function/grpc-timeout.js";
import { LoaderError, type LoaderErrorCode } from "../../src/loader/index.js";
import { root, textOf } from "./committed-files.js";

interface Row {
  readonly section: string;
  readonly code: string;
  readonly meaning: string;
  readonly whatToDo: string;
  readonly transient: string;
}

const DOC = textOf("docs/errors.md");
const ROWS = documentedRows(DOC);

/** Every class of error that ends requests, by the name of its section. */
const CONSTRUCT: Readonly<
  Record<string, (code: string) => WasmFunctionError<string>>
> = {
  AdmissionError: (code) => new AdmissionError(code as AdmissionErrorCode, ""),
  EngineError: (code) => new EngineError(code as EngineErrorCode, ""),
  FunctionError: (code) => new FunctionError(code as FunctionErrorCode, ""),
  LoaderError: (code) => new LoaderError(code as LoaderErrorCode, ""),
};

/** The classes of errors that only commands have, in the order of their section. */
const OF_COMMANDS = ["ConfigError", "FileError", "RenderError"];
const COMMAND_LINE = "Command line";

/** The codes of every class of error in the source. */
const DECLARED: ReadonlyMap<string, readonly string[]> = new Map(
  readdirSync(path.join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .sort()
    .flatMap((file) => declaredCodes(textOf(path.join("src", file)))),
);

const SECTIONS = [
  ...Object.keys(CONSTRUCT).map((name) => ({ section: name, classes: [name] })),
  { section: COMMAND_LINE, classes: OF_COMMANDS },
];
const REQUEST_ROWS = ROWS.filter(({ section }) => section !== COMMAND_LINE);

describe("docs/errors.md", () => {
  it("has a section for every class of error", () => {
    expect([...DECLARED.keys()].sort()).toEqual(
      SECTIONS.flatMap(({ classes }) => classes).sort(),
    );
    expect(new Set(ROWS.map(({ section }) => section))).toEqual(
      new Set(SECTIONS.map(({ section }) => section)),
    );
  });

  it.each(SECTIONS)(
    "has exactly the codes of $classes in $section, in their order",
    ({ section, classes }) => {
      const documented = ROWS.filter((row) => row.section === section);

      expect(documented.map(({ code }) => code)).toEqual(
        classes.flatMap((name) => DECLARED.get(name) ?? []),
      );
    },
  );

  it("has the statuses of calls that never get to a step", () => {
    for (const sentence of [expectedTimeout, expectedEncoding])
      expect(DOC).toContain(`\n- \`INVALID_ARGUMENT\`, \`${sentence}\`: `);
  });

  it.each(ROWS)("$section $code says what it means and what to do", (row) => {
    expect(row.meaning).not.toBe("");
    expect(row.whatToDo).not.toBe("");
  });

  it.each(REQUEST_ROWS)(
    "$section $code says truly whether it is transient",
    (row) => {
      const error = CONSTRUCT[row.section]?.(row.code);

      const fatal = fatalFrom(error);
      expect(fatal.code).toBe(row.code);
      expect(row.transient).toBe(
        fatal.permanence === "transient" ? "yes" : "no",
      );
    },
  );

  it.each(ROWS.filter(({ section }) => section === COMMAND_LINE))(
    "$section $code is not said to be transient, for nothing replays it",
    ({ transient }) => {
      expect(transient).toBe("");
    },
  );

  it("says what the code is of everything that has none, and that it is transient", () => {
    const { code, permanence } = fatalFrom(new Error("broken"));

    expect(permanence).toBe("transient");
    expect(DOC).toMatch(
      new RegExp(`^\\W${code}\\W is the code of .* is transient`, "m"),
    );
  });
});

/** The classes of errors in a file, each with the members of its union of codes. */
function declaredCodes(source: string): [string, string[]][] {
  const classes = source.matchAll(
    /class (?<name>\w+) extends WasmFunctionError<(?<codes>\w+|"[a-z-]+")>/g,
  );
  return Array.from(classes, ({ groups }) => {
    const { name = "", codes = "" } = groups ?? {};
    const union = codes.startsWith('"') ? codes : unionOf(codes, source);
    const members = Array.from(
      union.matchAll(/"([a-z-]+)"/g),
      ([, m = ""]) => m,
    );
    expect(members.length, `codes of ${name}`).toBeGreaterThan(0);
    return [name, members];
  });
}

function unionOf(type: string, source: string): string {
  const code = source.replaceAll(/\/\*\*.*?\*\//gs, "");
  return new RegExp(`type ${type} =([^;]*);`).exec(code)?.[1] ?? "";
}

function documentedRows(markdown: string): Row[] {
  let section = "";
  const rows: Row[] = [];
  for (const line of markdown.split("\n")) {
    section = /^## (.+)$/.exec(line)?.[1] ?? section;
    const cells = line.split("|").map((cell) => cell.trim());
    const code = /^`([^`]+)`$/.exec(cells[1] ?? "")?.[1];
    if (code === undefined) continue;
    const [, , meaning = "", whatToDo = "", transient = ""] = cells;
    rows.push({ section, code, meaning, whatToDo, transient });
  }
  return rows;
}
