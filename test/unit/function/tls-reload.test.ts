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
import type { Clock } from "../../../src/ports.js";
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

  async function follow(directory: string, overrides: Partial<Clock> = {}) {
    const { logger, lines } = recordingLogger();
    const results: string[] = [];
    const tls = await followTls({
      directory,
      onReload: (result) => results.push(result),
      clock: { ...realClock, ...overrides },
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
        fields: {
          reason: `--tls-certs-dir (TLS_SERVER_CERTS_DIR): ${directory}: tls.key is not the key of tls.crt`,
        },
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
      "cannot read ca.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): ENOENT",
    );

    swapTo("new");
    await expect.poll(shown).toEqual(bytesOf("new"));
    expect(results).toEqual(["error", "error", "ok"]);
  });

  describe("with a set that nobody could use", () => {
    const leafDirectory = (
      name: string,
      dates: { from?: string; to: string },
    ) => {
      const { cert, key } = maker.leaf({
        ...{ name, authority: "new-ca", usage: "serverAuth", ...dates },
      });
      return (to: string) => {
        copyFileSync(cert, join(to, "tls.crt"));
        copyFileSync(key, join(to, "tls.key"));
        copyFileSync(fileOf("new", "ca.crt"), join(to, "ca.crt"));
      };
    };

    it("keeps the last good one", async () => {
      const { directory, swap } = mountedSecret();
      const { lines, results, shown } = await follow(directory);

      swap(leafDirectory("expired", { to: "20210101" }));
      await expect.poll(() => results).toEqual(["error"]);
      await someLooks();

      expect(shown()).toEqual(bytesOf("old"));
      expect(results).toEqual(["error"]);
      expect(lines).toHaveLength(1);
      expect(lines[0]?.fields["reason"]).toMatch(
        /^tls\.crt of .*: expected a certificate that is valid now, got one from /,
      );
    });

    it("takes it once it can be used, without another line until then", async () => {
      const { directory, swap } = mountedSecret();
      let aheadMs = 0;
      const { lines, results, tls } = await follow(directory, {
        nowMs: () => realClock.nowMs() + aheadMs,
        monotonicMs: () => realClock.monotonicMs() + aheadMs,
      });
      const hourMs = 3_600_000;
      const soon = new Date(realClock.nowMs() + 48 * hourMs);
      const from = soon.toISOString().slice(0, 10).replaceAll("-", "");

      swap(leafDirectory("not-yet", { from, to: "20300131" }));
      await expect.poll(() => results).toEqual(["error"]);
      aheadMs += hourMs;
      await someLooks();
      expect(results).toEqual(["error"]);
      expect(lines).toHaveLength(1);

      aheadMs += 48 * hourMs;
      await expect.poll(() => results).toEqual(["error", "ok"]);

      expect(tls.current().leaf.toString()).toBe(
        readFileSync(join(directory, "tls.crt"), "utf8"),
      );
    });

    it("goes on with one that expires while it is in use", async () => {
      const { directory } = mountedSecret();
      let nowMs = realClock.nowMs();
      const { lines, results, shown } = await follow(directory, {
        nowMs: () => nowMs,
      });

      nowMs += 11 * 365.25 * 86_400_000;
      await expect.poll(() => lines).toHaveLength(2);
      await someLooks();

      expect(lines[0]?.message).toBe("certificate has expired");
      expect(results).toEqual([]);
      expect(shown()).toEqual(bytesOf("old"));
    });

    it("does not start", async () => {
      const { directory } = mountedSecret();
      const nowMs = () => Date.UTC(2090, 0);

      await expect(follow(directory, { nowMs })).rejects.toThrow(
        "expected a certificate that is valid now",
      );
    });
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
      // At once, or two looks could both meet the empty file between them.
      writeFileSync(join(directory, "next"), `half ${i}`);
      renameSync(join(directory, "next"), join(directory, "tls.crt"));
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
    const { lines } = await follow(directory, { nowMs: () => nowMs });
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
      "cannot read tls.crt of --tls-certs-dir (TLS_SERVER_CERTS_DIR): ENOENT",
    );
  });
});
