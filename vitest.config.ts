import { defineConfig } from "vitest/config";

/** A file for a report in JSON, as .ci/run wants it. */
const report = process.env["VITEST_REPORT"];

export default defineConfig({
  test: {
    // A process for each test file: the addon's signal handlers are not made for worker threads.
    pool: "forks",
    testTimeout: 30_000,
    hookTimeout: 60_000,
    passWithNoTests: false,
    // What the programs under test write is kept, and searched for secrets at the end.
    setupFiles: ["test/support/record-output.ts"],
    globalSetup: ["test/support/output-check.ts"],
    reporters:
      report === undefined
        ? ["default"]
        : ["default", ["json", { outputFile: report }]],
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/repo/**/*.test.ts"],
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // These measure time and fill the machine, so they have it to themselves.
        extends: true,
        test: {
          name: "integration",
          include: [
            "test/integration/**/*.test.ts",
            "test/security/**/*.test.ts",
          ],
          testTimeout: 120_000,
          hookTimeout: 180_000,
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
