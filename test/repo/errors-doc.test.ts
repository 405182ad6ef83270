import { existsSync, readdirSync } from "node:fs";
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
import { LoaderError, type LoaderErrorCode } from "../../src/loader/index.js";
import { root, textOf } from "./committed-files.js";

interface Row {
  readonly className: string;
  readonly code: string;
  readonly meaning: string;
  readonly whatToDo: string;
  readonly transient: string;
}

const ROWS = documentedRows(textOf("docs/errors.md"));

/** Every class of error with codes, by the name of its section. */
const CONSTRUCT: Readonly<
  Record<string, (code: string) => WasmFunctionError<string>>
> = {
  AdmissionError: (code) => new AdmissionError(code as AdmissionErrorCode, ""),
  EngineError: (code) => new EngineError(code as EngineErrorCode, ""),
  FunctionError: (code) => new FunctionError(code as FunctionErrorCode, ""),
  LoaderError: (code) => new LoaderError(code as LoaderErrorCode, ""),
};

describe("docs/errors.md", () => {
  const folders = readdirSync(path.join(root, "src")).filter((folder) =>
    existsSync(path.join(root, "src", folder, "error.ts")),
  );

  it.each(folders)(
    "has exactly the codes of src/%s/error.ts, in their order",
    (folder) => {
      const { className, codes } = declaredCodes(
        textOf(`src/${folder}/error.ts`),
      );

      const documented = ROWS.filter((row) => row.className === className).map(
        (row) => row.code,
      );
      expect(documented).toEqual(codes);
    },
  );

  it("has no section without a class", () => {
    const classNames = folders.map(
      (folder) => declaredCodes(textOf(`src/${folder}/error.ts`)).className,
    );

    expect(new Set(ROWS.map((row) => row.className))).toEqual(
      new Set(classNames),
    );
  });

  it.each(ROWS)("$className $code says what it means and what to do", (row) => {
    expect(row.meaning).not.toBe("");
    expect(row.whatToDo).not.toBe("");
  });

  it.each(ROWS)(
    "$className $code says truly whether it is transient",
    (row) => {
      const error = CONSTRUCT[row.className]?.(row.code);

      const fatal = fatalFrom(error);
      expect(fatal.code).toBe(row.code);
      expect(row.transient).toBe(
        fatal.permanence === "transient" ? "yes" : "no",
      );
    },
  );
});

/** The class in an `error.ts`, and the members of its union of codes. */
function declaredCodes(source: string): { className: string; codes: string[] } {
  const declaration = /type (?<className>\w+Error)Code =(?<union>[^;]*);/.exec(
    source.replaceAll(/\/\*\*.*?\*\//gs, ""),
  );
  const { className = "", union = "" } = declaration?.groups ?? {};
  const codes = Array.from(
    union.matchAll(/"([a-z-]+)"/g),
    (match) => match[1] ?? "",
  );
  expect(codes.length, "codes found in the source").toBeGreaterThan(0);
  return { className, codes };
}

function documentedRows(markdown: string): Row[] {
  let className = "";
  const rows: Row[] = [];
  for (const line of markdown.split("\n")) {
    className = /^## (\w+)$/.exec(line)?.[1] ?? className;
    const cells = line.split("|").map((cell) => cell.trim());
    const code = /^`([^`]+)`$/.exec(cells[1] ?? "")?.[1];
    if (code === undefined) continue;
    const [, , meaning = "", whatToDo = "", transient = ""] = cells;
    rows.push({ className, code, meaning, whatToDo, transient });
  }
  return rows;
}
