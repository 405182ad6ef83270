import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { beforeEach, describe, expect, it, onTestFinished } from "vitest";

import { AdmissionError } from "../../../../src/admission/index.js";
import { openOperatorPolicy } from "../../../../src/admission/policy/operator-policy.js";
import { recordingLogger } from "../../function/fixtures.js";
import { fakePolicyEngine } from "./fixtures.js";

let file: string;
beforeEach(() => {
  const dir = mkdtempSync(join(tmpdir(), "operator-policy-"));
  file = join(dir, "policy.cedar");
  onTestFinished(() => {
    rmSync(dir, { recursive: true });
  });
});

/** What happens between the first look at the file and the watch. */
let whenWatched: () => void = () => undefined;

/** A policy file that is followed. */
async function follow(engine = fakePolicyEngine(), retryAfterMs = 60_000) {
  const { logger, lines } = recordingLogger();
  const reloads: string[] = [];
  let changed: (() => void) | undefined;
  const policy = await openOperatorPolicy({
    file,
    engine,
    watch(watched, listener) {
      expect(watched).toBe(file);
      whenWatched();
      changed = listener;
      return () => (changed = undefined);
    },
    onReload: (result) => reloads.push(result),
    logger,
    retryAfterMs,
  });
  return {
    policy,
    engine,
    lines,
    reloads,
    text: () => policy.current().text,
    change: () => changed?.(),
    watched: () => changed !== undefined,
  };
}

describe("admission/policy/operator-policy", () => {
  it("compiles the file at the start", async () => {
    writeFileSync(file, "permit (1);");

    const { text, lines, reloads } = await follow();

    expect(text()).toBe("permit (1);");
    expect(lines).toEqual([]);
    expect(reloads).toEqual([]);
  });

  it("warns of a policy without rules, which grants nothing", async () => {
    writeFileSync(file, "");

    const { lines } = await follow();

    expect(lines).toMatchObject([
      {
        level: "warn",
        message: "the operator policy may not mean this",
        fields: { remark: "it has no rule: it permits nothing" },
      },
    ]);
  });

  it.each([
    {
      name: "a missing file",
      prepare: () => undefined,
      want: /^cannot read the operator policy .*: ENOENT/,
    },
    {
      name: "a directory",
      prepare: () => {
        mkdirSync(file);
      },
      want: /^cannot read the operator policy .*: expected a regular file$/,
    },
    {
      name: "a FIFO, without waiting for its writer",
      prepare: () => execFileSync("mkfifo", [file]),
      want: /^cannot read the operator policy .*: expected a regular file$/,
    },
    {
      name: "a file over the bound",
      prepare: () => {
        writeFileSync(file, "/".repeat(1024 * 1024 + 1));
      },
      want: /^cannot read the operator policy .*: expected at most 1048576 bytes, got 1048577$/,
    },
    {
      name: "what is no text",
      prepare: () => {
        writeFileSync(file, Uint8Array.of(0xff, 0xfe));
      },
      want: /^cannot read the operator policy .*: expected UTF-8 text$/,
    },
    {
      name: "what does not compile",
      prepare: () => {
        writeFileSync(file, "broken");
      },
      want: /^cannot compile the operator policy .*: unexpected end of input$/,
    },
  ])("refuses to start with $name", async ({ prepare, want }) => {
    prepare();

    const outcome: unknown = await follow().catch((thrown: unknown) => thrown);

    expect(outcome).toBeInstanceOf(AdmissionError);
    expect((outcome as AdmissionError).code).toBe("operator-policy-invalid");
    expect((outcome as AdmissionError).message).toMatch(want);
  });

  it("swaps to a changed file", async () => {
    writeFileSync(file, "one");
    const { policy, text, change, reloads, lines } = await follow();

    writeFileSync(`${file}.new`, "two");
    renameSync(`${file}.new`, file);
    change();
    await policy.reload();

    expect(text()).toBe("two");
    expect(reloads).toEqual(["ok"]);
    expect(lines).toMatchObject([
      { level: "info", message: "operator policy reloaded" },
    ]);
  });

  it("follows the swapped link of a Kubernetes volume", async () => {
    const volume = `${file}.d`;
    mkdirSync(join(volume, "..1"), { recursive: true });
    mkdirSync(join(volume, "..2"));
    writeFileSync(join(volume, "..1", "policy.cedar"), "one");
    writeFileSync(join(volume, "..2", "policy.cedar"), "two");
    symlinkSync("..1", join(volume, "..data"));
    file = join(volume, "policy.cedar");
    symlinkSync("..data/policy.cedar", file);
    const { policy, text } = await follow();

    symlinkSync("..2", join(volume, "..data_tmp"));
    renameSync(join(volume, "..data_tmp"), join(volume, "..data"));
    await policy.reload();

    expect(text()).toBe("two");
  });

  it.each([
    {
      name: "does not compile",
      change: () => {
        writeFileSync(file, "broken");
      },
    },
    {
      name: "is gone",
      change: () => {
        rmSync(file);
      },
    },
  ])("keeps the last good policy when the file $name", async (row) => {
    writeFileSync(file, "one");
    const { policy, text, reloads, lines } = await follow();

    row.change();
    await policy.reload();
    writeFileSync(file, "three");
    await policy.reload();

    expect(reloads).toEqual(["error", "ok"]);
    expect(lines[0]).toMatchObject({
      level: "error",
      message: "cannot reload the operator policy, the last good one stays",
    });
    expect(text()).toBe("three");
  });

  it("says nothing of a file that was only touched", async () => {
    writeFileSync(file, "one");
    const { policy, reloads, lines } = await follow();

    writeFileSync(file, "one");
    await policy.reload();

    expect([reloads, lines]).toEqual([[], []]);
  });

  it("never lets an older text replace a newer one", async () => {
    writeFileSync(file, "one");
    const engine = fakePolicyEngine();
    const { policy, text } = await follow(engine);
    const compile = engine.compile.bind(engine);
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    let arrive: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    engine.compile = async (source) => {
      arrive();
      if (source === "two") await held;
      return await compile(source);
    };

    writeFileSync(file, "two");
    const first = policy.reload();
    await arrived;
    writeFileSync(`${file}.new`, "three");
    renameSync(`${file}.new`, file);
    const second = policy.reload();
    release();
    await Promise.all([first, second]);

    expect(text()).toBe("three");
  });

  it("sees what changed before it was watched", async () => {
    writeFileSync(file, "one");
    whenWatched = () => {
      writeFileSync(file, "two");
    };
    onTestFinished(() => {
      whenWatched = () => undefined;
    });

    const { text, reloads } = await follow();

    expect(text()).toBe("two");
    expect(reloads).toEqual(["ok"]);
  });

  it("tries again what failed for a passing reason", async () => {
    writeFileSync(file, "one");
    const engine = fakePolicyEngine();
    const { policy, text, reloads, lines } = await follow(engine, 1);
    const compile = engine.compile.bind(engine);
    let refusals = 2;
    engine.compile = (...args) =>
      refusals-- > 0
        ? Promise.reject(new AdmissionError("policy-unavailable", "too much"))
        : compile(...args);

    writeFileSync(file, "two");
    await policy.reload();

    expect(text()).toBe("one");
    await expect.poll(text).toBe("two");
    expect(reloads).toEqual(["error", "error", "ok"]);
    expect(lines[0]).toMatchObject({ fields: { reason: "too much" } });
  });

  it("says so when a file that was bad is as it was", async () => {
    writeFileSync(file, "one");
    const { policy, reloads, lines } = await follow();

    writeFileSync(file, "broken");
    await policy.reload();
    writeFileSync(file, "one");
    await policy.reload();

    expect(reloads).toEqual(["error", "ok"]);
    expect(lines.at(-1)).toMatchObject({
      message: "operator policy reloaded",
    });
  });

  it("does not take a file that was emptied for a policy", async () => {
    writeFileSync(file, "one");
    const { policy, text, reloads, lines } = await follow();

    writeFileSync(file, "");
    await policy.reload();

    expect(text()).toBe("one");
    expect(reloads).toEqual(["error"]);
    expect(lines).toMatchObject([
      {
        level: "error",
        fields: {
          reason: expect.stringContaining("has no rule any more") as string,
        },
      },
    ]);
  });

  it("compiles as the operator", async () => {
    writeFileSync(file, "one");
    const engine = fakePolicyEngine();
    const layers: unknown[] = [];
    const compile = engine.compile.bind(engine);
    engine.compile = (text, layer) => {
      layers.push(layer);
      return compile(text);
    };

    await follow(engine);

    expect(new Set(layers)).toEqual(new Set(["operator"]));
  });

  it("stops watching", async () => {
    writeFileSync(file, "one");
    const { policy, watched } = await follow();

    expect(watched()).toBe(true);
    policy.close();

    expect(watched()).toBe(false);
  });
});
