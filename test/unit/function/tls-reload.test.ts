import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

import {
  afterAll,
  beforeAll,
  describe,
  expect,
  it,
  onTestFinished,
} from "vitest";

import { followTls } from "../../../src/function/tls-reload.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "./certificates.js";
import { realClock, recordingLogger } from "./fixtures.js";

const maker = createCertificateMaker();
const pollAfterMs = 20;

describe.skipIf(missingTool("openssl"))("function/tls-reload", () => {
  beforeAll(() => {
    for (const set of ["old", "new"]) {
      maker.authority(`${set}-ca`);
      const { cert, key } = maker.leaf({
        name: set,
        authority: `${set}-ca`,
        usage: "serverAuth",
      });
      const directory = join(maker.directory, `set-${set}`);
      mkdirSync(directory);
      copyFileSync(cert, join(directory, "tls.crt"));
      copyFileSync(key, join(directory, "tls.key"));
      copyFileSync(
        join(maker.directory, `${set}-ca.crt`),
        join(directory, "ca.crt"),
      );
    }
  });
  afterAll(() => maker.remove());

  const fileOf = (set: string, name: string) =>
    join(maker.directory, `set-${set}`, name);

  /** A directory as Kubernetes mounts a Secret: what is read are links through `..data`. */
  function mountedSecret() {
    const directory = mkdtempSync(join(maker.directory, "mount-"));
    let generation = 0;
    const swap = (fill: (directory: string) => void) => {
      const name = `..${generation++}`;
      mkdirSync(join(directory, name));
      fill(join(directory, name));
      symlinkSync(name, join(directory, "..data_tmp"));
      renameSync(join(directory, "..data_tmp"), join(directory, "..data"));
    };
    const copyOf = (set: string) => (to: string) =>
      cpSync(join(maker.directory, `set-${set}`), to, { recursive: true });
    swap(copyOf("old"));
    for (const name of ["tls.crt", "tls.key", "ca.crt"]) {
      symlinkSync(join("..data", name), join(directory, name));
    }
    return { directory, swap, swapTo: (set: string) => swap(copyOf(set)) };
  }

  async function follow(directory: string, nowMs = () => realClock.nowMs()) {
    const { logger, lines } = recordingLogger();
    const results: string[] = [];
    const tls = await followTls({
      directory,
      onReload: (result) => results.push(result),
      clock: { ...realClock, nowMs },
      logger,
      pollAfterMs,
    });
    onTestFinished(() => tls.close());
    const shown = () => {
      const { certificate, privateKey, clientAuthorities } = tls.current();
      return [certificate, privateKey, ...clientAuthorities].map(String);
    };
    return { tls, lines, results, shown };
  }

  const bytesOf = (set: string) =>
    ["tls.crt", "tls.key", "ca.crt"].map((name) =>
      readFileSync(fileOf(set, name), "utf8"),
    );

  /** Long enough for several looks. */
  const someLooks = () => delay(pollAfterMs * 10);

  it("follows the swapped link of a Kubernetes volume", async () => {
    const { directory, swapTo } = mountedSecret();
    const { lines, results, shown, tls } = await follow(directory);
    expect(shown()).toEqual(bytesOf("old"));

    swapTo("new");

    await expect.poll(shown).toEqual(bytesOf("new"));
    expect(results).toEqual(["ok"]);
    const { leaf } = tls.current();
    expect(lines).toEqual([
      {
        level: "info",
        message: "certificates reloaded",
        fields: {
          notAfter: new Date(leaf.validTo).toISOString(),
          sha256: leaf.fingerprint256,
          authorities: 1,
        },
      },
    ]);
  });

  it("follows files that are replaced one after the other", async () => {
    const { directory } = mountedSecret();
    const { lines, results, shown } = await follow(directory);

    for (const name of ["tls.crt", "tls.key", "ca.crt"]) {
      rmSync(join(directory, name));
      copyFileSync(fileOf("new", name), join(directory, name));
    }

    await expect.poll(shown).toEqual(bytesOf("new"));
    expect(lines.map((line) => line.message)).toContain(
      "certificates reloaded",
    );
    expect(results).toContain("ok");
  });

  it("keeps the last good set, tells once why, and takes the next good one", async () => {
    const { directory, swap, swapTo } = mountedSecret();
    const { lines, results, shown } = await follow(directory);

    swap((to) => {
      copyFileSync(fileOf("new", "tls.crt"), join(to, "tls.crt"));
      copyFileSync(fileOf("old", "tls.key"), join(to, "tls.key"));
      copyFileSync(fileOf("new", "ca.crt"), join(to, "ca.crt"));
    });
    await expect.poll(() => results).toEqual(["error"]);
    await someLooks();

    expect(shown()).toEqual(bytesOf("old"));
    expect(results).toEqual(["error"]);
    expect(lines).toEqual([
      {
        level: "warn",
        message: "cannot reload the certificates, the last good ones stay",
        fields: { reason: `${directory}: tls.key is not the key of tls.crt` },
      },
    ]);

    swap((to) => {
      copyFileSync(fileOf("new", "tls.crt"), join(to, "tls.crt"));
      copyFileSync(fileOf("new", "tls.key"), join(to, "tls.key"));
    });
    await expect.poll(() => results).toEqual(["error", "error"]);
    await someLooks();

    expect(shown()).toEqual(bytesOf("old"));
    expect(lines).toHaveLength(2);
    expect(lines[1]?.fields["reason"]).toContain(
      "cannot read ca.crt of --tls-certs-dir: ENOENT",
    );

    swapTo("new");
    await expect.poll(shown).toEqual(bytesOf("new"));
    expect(results).toEqual(["error", "error", "ok"]);
  });

  it("says that the old set is good again", async () => {
    const { directory, swap, swapTo } = mountedSecret();
    const { results } = await follow(directory);
    swap((to) => writeFileSync(join(to, "tls.crt"), "no"));
    await expect.poll(() => results).toEqual(["error"]);

    swapTo("old");

    await expect.poll(() => results).toEqual(["error", "ok"]);
  });

  it("does not judge what is still being written", async () => {
    const { directory } = mountedSecret();
    rmSync(join(directory, "tls.crt"));
    copyFileSync(fileOf("old", "tls.crt"), join(directory, "tls.crt"));
    const { results, shown } = await follow(directory);

    // At every look there is another half.
    const writeUntilMs = performance.now() + pollAfterMs * 10;
    for (let i = 0; performance.now() < writeUntilMs; i++) {
      writeFileSync(join(directory, "tls.crt"), `half ${i}`);
      await delay(1);
    }
    copyFileSync(fileOf("old", "tls.crt"), join(directory, "tls.crt"));
    await someLooks();

    expect(results).toEqual([]);
    expect(shown()).toEqual(bytesOf("old"));
  });

  it("warns of certificates that end soon, and goes on looking", async () => {
    const { directory } = mountedSecret();
    let nowMs = realClock.nowMs() + 9.9 * 365.25 * 86_400_000;
    const { lines } = await follow(directory, () => nowMs);
    const files = () => lines.map((line) => line.fields["file"]);
    expect(files()).toEqual([]);

    nowMs += 30 * 86_400_000;

    await expect.poll(files).toEqual(["tls.crt", "ca.crt"]);
    expect(new Set(lines.map((line) => line.message))).toEqual(
      new Set(["certificate expires soon"]),
    );
  });

  it("stops when closed", async () => {
    const { directory, swapTo } = mountedSecret();
    const { tls, results, shown } = await follow(directory);

    tls.close();
    swapTo("new");
    await someLooks();

    expect(shown()).toEqual(bytesOf("old"));
    expect(results).toEqual([]);
  });

  it("does not start with a set that cannot be used", async () => {
    const directory = mkdtempSync(join(maker.directory, "empty-"));

    await expect(follow(directory)).rejects.toThrow(
      "cannot read tls.crt of --tls-certs-dir: ENOENT",
    );
  });
});
