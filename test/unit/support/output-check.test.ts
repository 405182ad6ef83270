import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import {
  problemsIn,
  readRecorded,
  type RecordedOutput,
} from "../../support/output-check.js";

const root = resolve(import.meta.dirname, "../../..");

let dir: string;
beforeEach(() => {
  // Below the root, so that it finds vitest.
  mkdirSync(join(root, "build"), { recursive: true });
  dir = mkdtempSync(join(root, "build/output-check-"));
});
afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

function recorded(
  kind: RecordedOutput["kind"],
  output = "fine\n",
  testFile = "a.test.ts",
): RecordedOutput {
  return { kind, testFile, bytes: Buffer.from(output) };
}

const everyKind = (["process", "log", "command", "page"] as const).map((kind) =>
  recorded(kind),
);
const whole = { testFiles: ["a.test.ts"], isWhole: true };

describe("support/output-check problemsIn", () => {
  it("finds nothing wrong with a whole run that kept output of every kind", () => {
    expect(problemsIn(everyKind, whole)).toEqual([]);
  });

  it("says where a secret is, and masks it and its neighbours", () => {
    const base64 = Buffer.from("u:hunter2").toString("base64");
    const output = [
      recorded("log", `${"x".repeat(200)}"p":"hunter2"${"y".repeat(200)}`),
      recorded("page", `${base64} HUNTER2\n`, "b.test.ts"),
    ];

    expect(problemsIn(output, { testFiles: [], isWhole: false })).toEqual([
      `planted secret (as text) in the output of a.test.ts (log): ${"x".repeat(75)}"p":"***"${"y".repeat(79)}`,
      "planted secret (as base64) in the output of b.test.ts (page): dTp*** *** ",
      "planted secret (as text) in the output of b.test.ts (page): dTp*** *** ",
    ]);
  });

  it("does not list more than 20 secrets", () => {
    const output = [recorded("process", "hunter2\n".repeat(1000))];

    const problems = problemsIn(output, { testFiles: [], isWhole: false });

    expect(problems).toHaveLength(21);
    expect(problems.at(-1)).toBe("980 more planted secrets");
  });

  it("misses a test file that nothing was recorded for", () => {
    const run = { testFiles: ["a.test.ts", "b.test.ts"], isWhole: false };

    expect(problemsIn([recorded("process", "")], run)).toEqual([
      "b.test.ts ran without record-output.ts: nothing was kept",
    ]);
  });

  it.each(["process", "log", "command", "page"] as const)(
    "misses output of the kind %s in a whole run only",
    (kind) => {
      const others = everyKind.filter((each) => each.kind !== kind);
      const begun = recorded("process", "");

      expect(problemsIn([...others, begun], whole)).toEqual([
        `the whole suite has kept no output of the kind "${kind}"`,
      ]);
      expect(
        problemsIn([...others, begun], { ...whole, isWhole: false }),
      ).toEqual([]);
    },
  );
});

describe("support/output-check readRecorded", () => {
  it("tells apart what test files in one process have written", () => {
    writeFileSync(
      join(dir, "7.log"),
      "\n\0test file: a.test.ts\none\ntwo\n\n\0test file: b.test.ts\nthree\n",
    );

    const found = readRecorded(dir).map(({ bytes, ...rest }) => ({
      ...rest,
      text: bytes.toString(),
    }));

    expect(found).toEqual([
      { testFile: "a.test.ts", kind: "log", text: "one\ntwo\n" },
      { testFile: "b.test.ts", kind: "log", text: "three\n" },
    ]);
  });
});

/** Runs vitest as the repository does, on test files that each have one test. */
async function runSuite(
  bodies: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<{ code: number | null; output: string }> {
  const support = (name: string) => join(root, "test/support", name);
  const config = {
    setupFiles: [support("record-output.ts")],
    globalSetup: [support("output-check.ts")],
    reporters: ["dot"],
    pool: "forks",
  };
  writeFileSync(
    join(dir, "vitest.config.js"),
    `export default { test: ${JSON.stringify(config)} };`,
  );
  for (const [name, body] of Object.entries(bodies)) {
    writeFileSync(
      join(dir, `${name}.test.ts`),
      `import { spawnSync } from "node:child_process";
       import { it } from "vitest";
       it("is a test", async () => { ${body} });`,
    );
  }
  const child = spawn(
    process.execPath,
    [join(root, "node_modules/vitest/vitest.mjs"), "run", ...args],
    { cwd: dir, stdio: ["ignore", "pipe", "pipe"] },
  );
  const closed = once(child, "close");
  const [stdout, stderr] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
  ]);
  const [code] = (await closed) as [number | null];
  return { code, output: stdout + stderr };
}

/** Starts a program that says the words. */
function says(words: string): string {
  const program = JSON.stringify(`console.error(${JSON.stringify(words)})`);
  return `spawnSync(process.execPath, ["--eval", ${program}]);`;
}

const fine = says("fine");
const fails = "throw new Error('no');";
const isNotHandled = `
  void Promise.reject(new Error("not handled"));
  await new Promise((resolve) => setTimeout(resolve, 10));`;

describe("support/output-check in a run of vitest", () => {
  it("fails a run whose tests pass when a program wrote a secret", async () => {
    const { code, output } = await runSuite(
      { a: says("password hunter2"), b: fine },
      ...["a", "b"],
    );

    expect(output).toMatch(/2 passed/);
    expect(output).toContain(
      "planted secret (as text) in the output of a.test.ts (process): password *** ",
    );
    expect(output).not.toContain("hunter2");
    expect(code).toBe(3);
  });

  it("leaves a run of some files alone, whatever they wrote, if it is no secret", async () => {
    const { code, output } = await runSuite({ a: fine, b: fine }, "a");

    expect(output).toMatch(/1 passed/);
    expect(code, output).toBe(0);
  });

  it("fails a whole run that shows no log", async () => {
    const { code, output } = await runSuite({ a: fine, b: fine });

    expect(output).toMatch(/2 passed/);
    expect(output).toContain("has kept no output of the kind");
    expect(code).toBe(3);
  });

  it.each([
    { name: "a test", a: fails, want: 1 },
    {
      name: "a test, and a program wrote a secret",
      a: says("hunter2") + fails,
    },
    { name: "a test, and nobody handled an error", a: isNotHandled + fails },
    { name: "nothing, but nobody handled an error", a: isNotHandled },
  ])("tells by the exit code that $name failed", async ({ a, want = 3 }) => {
    const { code, output } = await runSuite({ a, b: fine }, "a");

    expect(code, output).toBe(want);
  });
});
