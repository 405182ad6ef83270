import { readdirSync, readFileSync } from "node:fs";
import { rm, stat, symlink, writeFile } from "node:fs/promises";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import {
  messages,
  refusal,
  scope,
  startEngine,
  timed,
  type TestEngine,
} from "../../support/engine.js";
import { guest } from "../../support/guests.js";
import { slowModule, wrongShapeModule } from "../../support/hostile-modules.js";

const SLACK_MS = 250;
const MB = 1_000_000;

/** Parts of files in a directory that are mapped into this process. */
function mappedFrom(dir: string): number {
  const maps = readFileSync("/proc/self/maps", "utf8").split("\n");
  return maps.filter((line) => line.includes(dir)).length;
}

describe("integration/engine/load", () => {
  let engine: TestEngine;
  beforeEach(async () => {
    engine = await startEngine();
  });
  afterEach(() => engine.close());

  it("compiles a module once, for however many ask at once and later", async () => {
    const module = await engine.write(slowModule(0.5 * MB));

    const leases = await Promise.all(
      Array.from({ length: 20 }, () => engine.engine.load(module, scope())),
    );
    const later = await engine.engine.load(module, scope());

    expect(engine.compiles()).toBe(1);
    expect(new Set(leases.map(({ digest }) => digest)).size).toBe(1);
    for (const lease of [...leases, later]) lease.release();
  });

  it("answers from memory in no time", async () => {
    const module = await engine.write(slowModule(0.5 * MB));
    const lease = await engine.engine.load(module, scope());

    const { ms } = await timed(engine.engine.load(module, scope()));

    expect(ms).toBeLessThan(50);
    lease.release();
  });

  it("calls a module by the name its caller knows", async () => {
    const bytes = await guest("v1/hello");
    const first = await engine.write(bytes);
    const second = await engine.write(bytes);

    const leases = [
      await engine.engine.load(first, scope()),
      await engine.engine.load(second, scope()),
    ];

    expect(leases.map(({ description }) => description)).toEqual([
      first.description,
      second.description,
    ]);
    expect(engine.compiles()).toBe(1);
    for (const lease of leases) lease.release();
  });

  it("tells a caller that cannot wait that it is still compiling, and goes on", async () => {
    const module = await engine.write(slowModule(2.5 * MB));

    const { outcome, ms } = await timed(engine.engine.load(module, scope(200)));

    expect(outcome).toMatchObject({ reason: { code: "still-compiling" } });
    expect(String((outcome as PromiseRejectedResult).reason)).toContain(
      module.description,
    );
    expect(ms).toBeLessThan(200 + SLACK_MS);
    const lease = await engine.engine.load(module, scope());
    expect(messages(await engine.run(lease))).toEqual([]);
    expect(engine.compiles()).toBe(1);
    lease.release();
  });

  it("lets a caller that has gone go at once, and the compile go on", async () => {
    const module = await engine.write(slowModule(2.5 * MB));
    const caller = new AbortController();
    const loading = timed(
      engine.engine.load(module, scope(Infinity, caller.signal)),
    );
    await sleep(100);

    caller.abort();

    const { outcome, ms } = await loading;
    expect(outcome).toMatchObject({ reason: { code: "run-cancelled" } });
    expect(ms).toBeLessThan(100 + SLACK_MS);
    const lease = await engine.engine.load(module, scope());
    expect(engine.compiles()).toBe(1);
    lease.release();
  });

  it("does not let a small module wait behind a large one", async () => {
    const large = timed(
      engine.engine.load(await engine.write(slowModule(4 * MB)), scope()),
    );
    await sleep(200);

    const small = await timed(engine.load(slowModule(200_000, 1)));

    expect(small.outcome.status).toBe("fulfilled");
    const beforeLarge = await Promise.race([
      large.then(() => "large first"),
      sleep(0).then(() => "small first"),
    ]);
    expect(beforeLarge).toBe("small first");
    expect((await large).outcome.status).toBe("fulfilled");
  });

  it("refuses 20 MB of the wrong shape in under a second, without compiling", async () => {
    const module = await engine.write(wrongShapeModule(20 * MB));

    const { outcome, ms } = await timed(engine.engine.load(module, scope()));

    expect(outcome).toMatchObject({ reason: { code: "module-invalid" } });
    expect(ms).toBeLessThan(1_000);
    expect(engine.compiles()).toBe(0);
    const again = await timed(engine.engine.load(module, scope()));
    expect(again.outcome).toMatchObject({ reason: { code: "module-invalid" } });
    expect(again.ms).toBeLessThan(100);
  });

  it("tells each caller of a bad module by the name it knows", async () => {
    const bytes = await guest("shape/no-run");
    const first = await engine.write(bytes);
    const second = await engine.write(bytes);

    const errors = [
      await refusal(engine.engine.load(first, scope())),
      await refusal(engine.engine.load(second, scope())),
    ];

    expect(errors[0]?.message).toContain(first.description);
    expect(errors[1]?.message).toContain(second.description);
  });

  it.each([
    { name: "other bytes of that length", change: flipLastByte },
    {
      name: "more bytes",
      change: (bytes: Buffer) => Buffer.concat([bytes, bytes]),
    },
    { name: "no bytes", change: () => Buffer.alloc(0) },
  ])("notices $name in the file", async ({ change }) => {
    const module = await engine.write(await guest("v1/hello"));
    await writeFile(module.filePath, change(readFileSync(module.filePath)));

    const error = await refusal(engine.engine.load(module, scope()));

    expect(error.code).toBe("module-changed");
    expect(error.message).toContain(module.description);
    expect(engine.compiles()).toBe(0);
  });

  it("is not kept from a file that is good again", async () => {
    const bytes = await guest("v1/hello");
    const module = await engine.write(bytes);
    await writeFile(module.filePath, flipLastByte(Buffer.from(bytes)));
    await refusal(engine.engine.load(module, scope()));

    await writeFile(module.filePath, bytes);
    const lease = await engine.engine.load(module, scope());

    expect(messages(await engine.run(lease))).toEqual(["hello world"]);
    lease.release();
  });

  it("refuses a file that has gone", async () => {
    const module = await engine.write(await guest("v1/hello"));
    await rm(module.filePath);

    const error = await refusal(engine.engine.load(module, scope()));

    expect(["load-failed", "module-changed"]).toContain(error.code);
    expect(error.message).toContain(module.description);
  });

  it("does not follow a link that took the file's place", async () => {
    const module = await engine.write(await guest("v1/hello"));
    const elsewhere = `${module.filePath}.elsewhere`;
    await writeFile(elsewhere, readFileSync(module.filePath));
    await rm(module.filePath);
    await symlink(elsewhere, module.filePath);

    const error = await refusal(engine.engine.load(module, scope()));

    expect(["load-failed", "module-changed"]).toContain(error.code);
  });

  it("keeps a module that runs, however few it may keep", async () => {
    const narrow = await startEngine({ maxCachedModules: 1 });
    const held = await narrow.load("v1/hello");

    // With the only place taken, these have to come and go.
    const others = await Promise.all(
      ["v1/empty", "v1/start", "v2/hello"].map((name) =>
        timed(narrow.call(name)),
      ),
    );

    expect(others.map(({ outcome }) => outcome.status)).toEqual(
      new Array(3).fill("fulfilled"),
    );
    expect(messages(await narrow.run(held))).toEqual(["hello world"]);
    held.release();
    await narrow.close();
  }, 20_000);

  it("loads a module it had to drop from its artifact", async () => {
    const narrow = await startEngine({ maxCachedModules: 1 });
    await narrow.call("v1/hello");
    await narrow.call("v1/empty");

    const response = await narrow.call("v1/hello");

    expect(messages(response)).toEqual(["hello world"]);
    expect(narrow.compiles()).toBe(2);
    await narrow.close();
  });

  it("keeps none that nobody runs, when told so", async () => {
    const forgetful = await startEngine({ keepsIdleModules: false });

    const first = await Promise.all(
      Array.from({ length: 10 }, () => forgetful.call("v1/hello")),
    );
    expect(new Set(first.flatMap(messages))).toEqual(new Set(["hello world"]));
    await expect.poll(() => mappedFrom(forgetful.cacheDir)).toBe(0);

    const lease = await forgetful.load("v1/hello");
    expect(mappedFrom(forgetful.cacheDir)).toBeGreaterThan(0);
    lease.release();
    expect(forgetful.compiles()).toBe(1);
    await forgetful.close();
  });

  it("ends everything when it is closed", async () => {
    const spinning = await engine.load("hostile/loop-run");
    const runs = [1, 2, 3].map(() =>
      timed(engine.run(spinning, { timeoutMs: 60_000 })),
    );
    const loading = timed(engine.load(slowModule(2.5 * MB)));
    await sleep(300);
    expect(children()).toHaveLength(1);

    const closing = await timed(engine.engine.close());

    expect(closing.outcome.status).toBe("fulfilled");
    expect(closing.ms).toBeLessThan(2_000);
    for (const { outcome } of await Promise.all(runs)) {
      expect(outcome).toMatchObject({ reason: { code: "run-cancelled" } });
    }
    expect((await loading).outcome.status).toBe("rejected");
    await sleep(100);
    expect(children()).toEqual([]);
  });

  it("loads nothing more once it is closed", async () => {
    const module = await engine.write(await guest("v1/hello"));
    await engine.engine.close();

    const { outcome, ms } = await timed(engine.engine.load(module, scope()));

    expect(outcome.status).toBe("rejected");
    expect(ms).toBeLessThan(1_000);
  });

  it("leaves the module's own file alone", async () => {
    const module = await engine.write(await guest("v1/hello"));
    const before = await stat(module.filePath);

    const lease = await engine.engine.load(module, scope());

    const after = await stat(module.filePath);
    expect([after.mtimeMs, after.mode]).toEqual([before.mtimeMs, before.mode]);
    lease.release();
  });
});

/** Processes that this one started and that have not ended. */
function children(): string[] {
  return readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        // "pid (name) state ppid …"; a name may hold spaces and parentheses.
        const [state, parent] = stat
          .slice(stat.lastIndexOf(")") + 2)
          .split(" ");
        return parent === String(process.pid) && state !== "Z";
      } catch {
        return false;
      }
    });
}

function flipLastByte(bytes: Buffer): Buffer {
  const changed = Buffer.from(bytes);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  return changed;
}

async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}
