/**
 * Set up once around a run of the suite: when all tests are over, searches what the programs under
 * test wrote for the secrets that tests plant. No log, page or terminal may have one.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join, relative } from "node:path";

import type { TestProject } from "vitest/node";

import { findPlantedSecrets, maskPlantedSecrets } from "./planted-secret.js";
import {
  OUTPUT_DIR_VARIABLE,
  OUTPUT_KINDS,
  TEST_FILE_MARK,
  type OutputKind,
} from "./suite-output.js";

const CONTEXT_CHARS = 80;
const MAX_FINDINGS = 20;
/** Of a run in which more has failed than tests: .ci/run gives those a second chance, not this. */
const EXIT_CODE_OUTSIDE_TESTS = 3;

/** What a test file had written. */
export interface RecordedOutput {
  readonly testFile: string;
  readonly kind: OutputKind;
  readonly bytes: Buffer;
}

/** What was run. */
export interface FinishedRun {
  /** Paths of test files. */
  readonly testFiles: readonly string[];
  /** Whether these are all that there are, with all their tests. */
  readonly isWhole: boolean;
}

/** Called by vitest, for each of its projects. What it returns is called after the last test. */
export function setup(project: TestProject): (() => Promise<void>) | undefined {
  if (!project.isRootProject()) return undefined;
  const dir = mkdtempSync(join(tmpdir(), "suite-output-"));
  process.env[OUTPUT_DIR_VARIABLE] = dir;
  return async () => {
    try {
      if (project.vitest.state.getUnhandledErrors().length > 0)
        process.exitCode = EXIT_CODE_OUTSIDE_TESTS;
      const run = await finishedRun(project);
      const problems = problemsIn(readRecorded(dir), run);
      if (problems.length === 0) return;
      // An error is no more than printed here.
      process.exitCode = EXIT_CODE_OUTSIDE_TESTS;
      throw new Error(problems.join("\n"));
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  };
}

/** One line for each thing that is wrong; no line has a secret. */
export function problemsIn(
  recorded: readonly RecordedOutput[],
  { testFiles, isWhole }: FinishedRun,
): string[] {
  const found = recorded.flatMap(secretsIn);
  const problems = found.slice(0, MAX_FINDINGS);
  if (found.length > problems.length)
    problems.push(`${found.length - problems.length} more planted secrets`);

  const begun = new Set(recorded.map(({ testFile }) => testFile));
  for (const file of testFiles) {
    if (begun.has(file)) continue;
    problems.push(`${file} ran without record-output.ts: nothing was kept`);
  }
  if (!isWhole) return problems;
  const seen = new Set(
    recorded.filter(({ bytes }) => bytes.length > 0).map(({ kind }) => kind),
  );
  for (const kind of OUTPUT_KINDS) {
    if (seen.has(kind)) continue;
    problems.push(`the whole suite has kept no output of the kind "${kind}"`);
  }
  return problems;
}

/** What lies in a directory that suite-output.ts has written to. */
export function readRecorded(dir: string): RecordedOutput[] {
  const mark = Buffer.from(`\n${TEST_FILE_MARK}`);
  return readdirSync(dir).flatMap((name) => {
    const kind = OUTPUT_KINDS.find((each) => `.${each}` === extname(name));
    if (kind === undefined) throw new Error(`unexpected file ${name}`);
    const bytes = readFileSync(join(dir, name));
    const recorded: RecordedOutput[] = [];
    for (let at = bytes.indexOf(mark); at >= 0;) {
      const nameStart = at + mark.length;
      const nameEnd = bytes.indexOf("\n", nameStart);
      const next = bytes.indexOf(mark, nameEnd);
      recorded.push({
        testFile: bytes.toString("utf8", nameStart, nameEnd),
        kind,
        bytes: bytes.subarray(nameEnd + 1, next < 0 ? bytes.length : next),
      });
      at = next;
    }
    return recorded;
  });
}

async function finishedRun({ vitest }: TestProject): Promise<FinishedRun> {
  const { root, project: projects, testNamePattern } = vitest.config;
  const ran = vitest.state.getTestModules().map(({ moduleId }) => moduleId);
  const all = await vitest.globTestSpecifications();
  return {
    testFiles: ran.map((file) => relative(root, file)),
    isWhole:
      projects.length === 0 &&
      testNamePattern === undefined &&
      all.every(({ moduleId }) => ran.includes(moduleId)),
  };
}

function secretsIn({ testFile, kind, bytes }: RecordedOutput): string[] {
  return findPlantedSecrets(bytes).map(({ form, offset, length }) => {
    const around = bytes.toString(
      "latin1",
      Math.max(0, offset - CONTEXT_CHARS),
      offset + length + CONTEXT_CHARS,
    );
    const line = maskPlantedSecrets(around).replace(/[^ -~]+/g, " ");
    return `planted secret (as ${form}) in the output of ${testFile} (${kind}): ${line}`;
  });
}
