import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAccessStore } from "../../../../src/loader/store/access-store.js";
import { createBlobStore } from "../../../../src/loader/store/blob-store.js";
import { createPointerStore } from "../../../../src/loader/store/pointer-store.js";
import { handClock, recordingLogger } from "./fixtures.js";
import { digestOf, fileNameOf } from "./store-content.js";
import { type Command, STEPS } from "./store-process.js";

const PROGRAM = fileURLToPath(new URL("store-process.ts", import.meta.url));
const HOUR_MS = 3_600_000;
/** `ulimit -f` counts in 512 or 1024 bytes, as the shell likes. */
const MAX_BLOCKS = 512;
const TOO_LARGE_BYTES = MAX_BLOCKS * 1024 + 1;

interface Started {
  readonly child: ChildProcess;
  readonly ask: (command: Command) => Promise<unknown>;
}

const children: ChildProcess[] = [];
let root: string;
let one: Started;
let two: Started;

beforeAll(async () => {
  root = mkdtempSync(path.join(tmpdir(), "function-wasm-processes-"));
  [one, two] = await Promise.all([start(), start()]);
});
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(root, { recursive: true, force: true });
});

/** A process for which files above {@link TOO_LARGE_BYTES} are too large. */
async function start(): Promise<Started> {
  const child = spawn(
    "sh",
    [
      "-c",
      `ulimit -f ${MAX_BLOCKS} && exec "$0" --import tsx "$1"`,
      ...[process.execPath, PROGRAM],
    ],
    {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      env: { PATH: process.env["PATH"], TMPDIR: root },
    },
  );
  children.push(child);
  const answer = async (): Promise<unknown> => {
    const [message] = (await once(child, "message")) as [
      { answer?: unknown; failure?: string },
    ];
    if (message.failure !== undefined) throw new Error(message.failure);
    return message.answer;
  };
  expect(await answer()).toBe("ready");
  const ask = (command: Command): Promise<unknown> => {
    const answered = answer();
    child.send(command);
    return answered;
  };
  return { child, ask };
}

describe("loader/store with several processes", () => {
  it("the same and different content is written at once", async () => {
    const cacheDir = path.join(root, "blobs");
    const filler = "0123456789abcdef".repeat(10_000);
    const textsOf = (...names: readonly string[]) =>
      names.map((name) => name + filler);
    const mine = textsOf("a", "b", "c", "d", "e", "f");
    const yours = textsOf("a", "b", "c", "d", "g", "h");
    const write = (texts: readonly string[]) =>
      ({ do: "write-blobs", cacheDir, texts, atOnce: true }) as const;

    const answers = await Promise.all([
      one.ask(write(mine)),
      two.ask(write(yours)),
    ]);

    const filePathOf = (text: string) =>
      path.join(cacheDir, "blobs", fileNameOf(text));
    expect(answers).toEqual([mine.map(filePathOf), yours.map(filePathOf)]);
    const all = [...new Set([...mine, ...yours])];
    expect(readdirSync(path.join(cacheDir, "blobs")).sort()).toEqual(
      all.map(fileNameOf).sort(),
    );
    for (const text of all)
      expect(digestOf(readFileSync(filePathOf(text)))).toBe(digestOf(text));
  });

  it("R20: a pointer ends at what was resolved last, whoever writes last", async () => {
    const cacheDir = path.join(root, "pointers");
    const key = "ghcr.io/acme/greeter:v1";
    const atMs = Date.now();
    const write = { do: "write-pointer", cacheDir, key } as const;
    const late = { ...write, digest: digestOf("late"), atMs };
    const early = { ...write, digest: digestOf("early"), atMs: atMs - 1 };

    expect(await one.ask(late)).toBe("written");
    expect(await two.ask(early)).toBe("kept");

    const { logger } = recordingLogger();
    const store = createPointerStore(cacheDir, handClock(), logger);
    expect(await store.read(key)).toEqual({
      digest: late.digest,
      resolvedAtMs: atMs,
    });
  });

  it("agree on a salt that both of them make at once", async () => {
    const cacheDir = path.join(root, "access");
    const places = ["ghcr.io/acme/a", "ghcr.io/acme/b"] as const;
    const record = (place: string) =>
      ({ do: "record-access", cacheDir, place }) as const;

    await Promise.all([one.ask(record(places[0])), two.ask(record(places[1]))]);

    const { logger } = recordingLogger();
    const store = createAccessStore(cacheDir, handClock(), logger);
    for (const place of places) {
      const key = { place, digest: digestOf("module"), identity: "anonymous" };
      expect(await store.provedAt(key)).not.toBeNull();
    }
  });
});

describe("loader/store on a disk that is full half-way", () => {
  it("fails that write, keeps nothing of it, and writes the next one elsewhere", async () => {
    const cacheDir = path.join(root, "full");

    const [failed, stored] = (await two.ask({
      do: "write-blobs",
      cacheDir,
      texts: ["x".repeat(TOO_LARGE_BYTES), "small"],
      atOnce: false,
    })) as [string, string];

    // In place of ENOSPC: a bound on the size of a file holds for root, too.
    expect(failed).toBe(
      "what was fetched cannot be stored on this machine (EFBIG)",
    );
    expect(readdirSync(path.join(cacheDir, "blobs"))).toEqual([]);
    expect(path.dirname(path.dirname(stored))).toBe(root);
    expect(path.basename(path.dirname(stored))).toMatch(
      /^function-wasm-blobs-/,
    );
    expect(statSync(stored).size).toBe("small".length);
  });
});

describe("loader/store after a process was killed while it wrote", () => {
  let cacheDir: string;

  beforeAll(async () => {
    cacheDir = path.join(root, "killed");
    await one.ask({ do: "stop-at-every-step", cacheDir });
    const exited = once(one.child, "exit");
    one.child.kill("SIGKILL");
    expect(await exited).toEqual([null, "SIGKILL"]);
  });

  it.each(STEPS.map((step) => ({ step, isThere: step === "renamed" })))(
    "R10: at the step $step the whole content is there: $isThere",
    async ({ step, isThere }) => {
      const { logger, lines } = recordingLogger();
      const options = { cacheDir, kind: "blobs" } as const;
      const blobs = createBlobStore(options, handClock(), logger);
      const pointers = createPointerStore(cacheDir, handClock(), logger);

      const blob = await blobs.find(digestOf(step), null);
      const pointer = await pointers.read(step);

      const digest = digestOf(step);
      const filePath = path.join(cacheDir, "blobs", fileNameOf(step));
      const sizeBytes = step.length;
      expect(blob).toEqual(isThere ? { digest, filePath, sizeBytes } : null);
      expect(pointer?.digest ?? null).toBe(isThere ? digest : null);
      // Neither was there and found wrong.
      expect(lines).toEqual([]);
    },
  );

  it("R11: what it left behind is removed an hour later, not before", () => {
    const { logger } = recordingLogger();
    const open = (clock: ReturnType<typeof handClock>) => {
      createBlobStore({ cacheDir, kind: "blobs" }, clock, logger);
      createPointerStore(cacheDir, clock, logger);
    };
    const leftovers = () =>
      ["blobs", "refs"].map((name) => {
        const files = readdirSync(path.join(cacheDir, name));
        return files.filter((file) => file.startsWith(".tmp-")).length;
      });

    open(handClock());
    expect(leftovers()).toEqual([3, 3]);

    open(handClock(Date.now() + HOUR_MS + 1));
    expect(leftovers()).toEqual([0, 0]);
  });
});
