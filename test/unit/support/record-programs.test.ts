import {
  execFile,
  execFileSync,
  fork,
  spawn,
  spawnSync,
  type ChildProcess,
} from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { OUTPUT_DIR_VARIABLE } from "../../support/suite-output.js";

const RECORD_PROGRAMS = new URL(
  "../../support/record-programs.ts",
  import.meta.url,
).href;

/** Writes what it is told to either stream, at once and in two parts. */
const SPEAKER = `
const [, word] = process.argv;
process.stdout.write("out " + word + "\\n");
process.stderr.write("err ");
setTimeout(() => process.stderr.write(word + " " + word), 20);
`;

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "record-test-"));
});
afterAll(() => {
  rmSync(dir, { recursive: true, force: true });
});

const speak = (word: string) => ["--eval", SPEAKER, word];

/** Both are kept: stdout, and stderr in one piece. */
const linesOf = (word: string) => [`err ${word} ${word}`, `out ${word}`];

/** The lines with the word in them that were kept by a process, sorted. */
function kept(word: string, pid = process.pid): string[] {
  const file = join(process.env[OUTPUT_DIR_VARIABLE] ?? "", `${pid}.process`);
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter((line) => line.includes(word)).sort();
}

async function ended(child: ChildProcess): Promise<void> {
  await once(child, "close");
}

describe("support/record-programs", () => {
  it.each([
    { name: "nothing said", stdio: undefined },
    { name: "pipes", stdio: "pipe" },
    { name: "nobody who listens", stdio: "ignore" },
    { name: "pipes and ignored ones", stdio: ["ignore", "ignore", "pipe"] },
    { name: "null", stdio: [null, null, null] },
  ] as const)("keeps what a process writes with $name", async (row) => {
    const word = `async-${row.name.replaceAll(" ", "-")}`;
    const child = spawn(process.execPath, speak(word), {
      stdio: row.stdio as "pipe",
    });
    // As whoever pipes it would.
    for (const stream of [child.stdout, child.stderr])
      (stream as typeof stream | null)?.resume();

    await ended(child);

    expect(kept(word)).toEqual(linesOf(word));
  });

  it.each([
    { name: "inherit", stdio: "inherit" },
    { name: "its own", stdio: [0, 1, 2] },
  ])(
    "keeps what goes to a process's own streams, by $name, and hands it on",
    async ({ name, stdio }) => {
      const word = `inherited-${name.replaceAll(" ", "-")}`;
      const program = `
        import "${RECORD_PROGRAMS}";
        import { spawn } from "node:child_process";
        spawn(process.execPath, ${JSON.stringify(speak(word))}, { stdio: ${JSON.stringify(stdio)} });
      `;
      const running = promisify(execFile)(process.execPath, [
        ...["--import", "tsx", "--input-type=module", "--eval", program],
      ]);

      const { stdout, stderr } = await running;

      expect(stdout).toBe(`out ${word}\n`);
      expect(stderr).toBe(`err ${word} ${word}`);
      expect(kept(word, running.child.pid)).toEqual(linesOf(word));
    },
  );

  it("changes nothing for whoever reads it", async () => {
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      speak("read-ü"),
    );

    expect(stdout).toBe("out read-ü\n");
    expect(stderr).toBe("err read-ü read-ü");
    expect(kept("read-ü")).toEqual(linesOf("read-ü"));
  });

  it("keeps what a process writes that is waited for, and that is forked", async () => {
    writeFileSync(
      join(dir, "forked.cjs"),
      SPEAKER.replace("[, word]", "[,,word]"),
    );

    spawnSync(process.execPath, speak("waited"), { encoding: "utf8" });
    await ended(fork(join(dir, "forked.cjs"), ["forked"], { silent: true }));

    expect(kept("waited")).toEqual(linesOf("waited"));
    expect(kept("forked")).toEqual(linesOf("forked"));
  });

  it("keeps what a program behind others writes", async () => {
    const child = spawn("/bin/sh", [
      ...["-c", 'exec "$0" "$@"', process.execPath, ...speak("behind")],
    ]);

    await ended(child);

    expect(kept("behind")).toEqual(linesOf("behind"));
  });

  it.each(["docker-registry", "docker-credential-x"])(
    "leaves %s alone, which is none of ours",
    async (name) => {
      const file = join(dir, name);
      writeFileSync(file, `#!/bin/sh\necho ${name}-says-so\n`);
      chmodSync(file, 0o700);
      const log = openSync(join(dir, "log"), "a");

      await ended(spawn(file));
      await ended(spawn(file, { stdio: ["ignore", log, "ignore"] }));
      spawnSync(file, { stdio: "ignore" });

      expect(kept(`${name}-says-so`)).toEqual([]);
    },
  );

  it("starts no program of ours whose output nobody would see", () => {
    const log = openSync(join(dir, "log"), "a");
    const node = join(dir, "node");
    symlinkSync(process.execPath, node);
    const refused = /would not be searched for secrets/;

    for (const program of [process.execPath, node]) {
      expect(() => spawn(program, { stdio: ["ignore", log, log] })).toThrow(
        refused,
      );
      expect(() => spawnSync(program, ["-v"], { stdio: "ignore" })).toThrow(
        refused,
      );
      expect(() => execFileSync(program, ["-v"])).toThrow(refused);
    }
    expect(execFileSync("echo", ["fine"], { encoding: "utf8" })).toBe("fine\n");
  });

  it("fails like Node when there is no such program", async () => {
    const missing = join(dir, "missing");

    const [error] = (await once(spawn(missing), "error")) as [
      NodeJS.ErrnoException,
    ];

    expect(error.code).toBe("ENOENT");
    expect(spawnSync(missing).error).toMatchObject({ code: "ENOENT" });
  });
});
