import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from "vitest";
import { AdmissionError } from "../../../src/admission/error.js";
import type { LoaderOptions } from "../../../src/loader/index.js";
import type { ModuleSource, RedirectFence } from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";
import type { Answer } from "../../support/registry-exchange.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../support/scripted-registry.js";
import { createCertificateAuthorities } from "./http/certificates.js";
import {
  atUrl,
  createTestLoader,
  openScope,
  pinned,
  type TestLoader,
} from "./loading.js";
import { digestOf } from "./store/store-content.js";

const WASM = Buffer.from("\0asm\x01\0\0\0 a module");
const DIGEST = digestOf(WASM);
const OTHER = Buffer.from("\0asm\x01\0\0\0 another one");
const MANIFEST = Buffer.from("apiVersion: wasmfn.io/v1\n");
/** Failures are remembered for 5 s. */
const FORGOTTEN_MS = 5_001;

let dir: string;
/** A plain web server: what a test does not serve there is answered with 404. */
let server: ScriptedRegistry;

beforeEach(async () => {
  dir = mkdtempSync(path.join(tmpdir(), "http-modules-"));
  server = await startScriptedRegistry();
});

afterEach(async () => {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

describe("loader/http-modules", () => {
  describe("a URL", () => {
    it("is fetched as it was parsed, and shown without its query", async () => {
      serve("/m.wasm", { status: 200, body: WASM });
      const port = server.authority.replace("127.0.0.1", "");
      const source = atUrl(
        `HTTP://127.1${port}/a/%2e%2e/%6d.wasm?sig=hunter2`,
        DIGEST,
      );
      const test = open();

      const found = await resolve(test, source);
      const file = await found.module.locate();

      expect(asked()).toEqual(["GET /m.wasm?sig=hunter2"]);
      expect(server.requests[0]?.headers.host).toBe(server.authority);
      const description = `HTTP ${server.url}/m.wasm`;
      expect(found).toMatchObject({
        module: { digest: DIGEST, description },
        manifestDigest: null,
        warning: null,
      });
      expect(await found.readManifest(openScope())).toBeNull();
      expect(file).toMatchObject({
        digest: DIGEST,
        sizeBytes: WASM.length,
        description,
      });
      expect(await readFile(file.filePath)).toEqual(WASM);
      expect(test.counted).toContain("fetched http");
    });

    it("is fetched once by all who ask at once, and not again later", async () => {
      serve("/m", { status: 200, body: WASM });
      const test = open();
      const source = at("/m");

      const loaded = await Promise.all([
        load(test, source),
        load(test, source),
      ]);
      test.advance(30 * 86_400_000);
      await load(test, source);

      expect(loaded).toEqual([WASM, WASM]);
      expect(asked()).toEqual(["GET /m"]);
    });

    it("must deliver bytes of the digest; nothing is kept of others", async () => {
      serve("/m", { status: 200, body: OTHER });
      const test = open();

      await expect(load(test, at("/m"))).rejects.toMatchObject({
        name: "LoaderError",
        code: "digest-mismatch",
        message: `cannot resolve module: module HTTP ${server.url}/m: expected ${DIGEST}, got ${digestOf(OTHER)}`,
      });

      expect(kept()).toEqual([]);
      expect(asked()).toEqual(["GET /m"]);
    });

    it("is asked again some seconds after it failed, not before", async () => {
      serve("/m", { status: 200, body: OTHER });
      const test = open();

      await expect(load(test, at("/m"))).rejects.toThrow("expected sha256:");
      serve("/m", { status: 200, body: WASM });
      test.advance(1_000);
      await expect(load(test, at("/m"))).rejects.toThrow("expected sha256:");
      test.advance(FORGOTTEN_MS);

      expect(await load(test, at("/m"))).toEqual(WASM);
      expect(asked()).toEqual(["GET /m", "GET /m"]);
    });

    it("may deliver --max-module-size bytes", async () => {
      serve("/m", { status: 200, body: WASM });

      expect(
        await load(open({ maxModuleBytes: WASM.length }), at("/m")),
      ).toEqual(WASM);
    });

    it.each([
      {
        name: "that it announces",
        body: () => WASM,
        got: `${WASM.length} bytes`,
      },
      {
        name: "that come without end",
        body: () => endlessly(WASM),
        got: "more",
      },
    ])("may not deliver more bytes $name", async ({ body, got }) => {
      const maxModuleBytes = WASM.length - 1;
      serve("/m", { status: 200, body: body() });

      await expect(
        load(open({ maxModuleBytes }), at("/m?hunter2")),
      ).rejects.toMatchObject({
        code: "module-too-large",
        message: `cannot resolve module: module HTTP ${server.url}/m: the file, by --max-module-size, is too large, expected at most ${maxModuleBytes} bytes, got ${got}`,
      });
      expect(kept()).toEqual([]);
    });

    it("must deliver something", async () => {
      serve("/m", { status: 200, body: "" });

      await expect(
        load(open(), atUrl(`${server.url}/m`, digestOf(""))),
      ).rejects.toMatchObject({ code: "module-empty" });
    });

    it.each([
      { status: 401, code: "registry-auth-failed", says: "401 Unauthorized" },
      { status: 403, code: "registry-auth-failed", says: "403 Forbidden" },
      { status: 404, code: "module-not-found", says: "404 Not Found" },
      { status: 410, code: "registry-refused", says: "410 Gone" },
      { status: 206, code: "registry-refused", says: "206" },
    ])("that answers with $status", async ({ status, code, says }) => {
      serve("/m", { status, body: WASM });

      await expect(load(open(), at("/m"))).rejects.toMatchObject({
        name: "LoaderError",
        code,
        // The server's own words are left out: it may be one that only this machine can reach.
        message: `cannot resolve module: module HTTP ${server.url}/m: ${server.authority}: HTTP ${says}`,
      });
      expect(asked()).toEqual(["GET /m"]);
      expect(kept()).toEqual([]);
    });

    it("that answers with 500 is asked three times, and no more", async () => {
      serve("/m", { status: 500, body: "hunter2 words" });

      await expect(load(open(), at("/m"))).rejects.toMatchObject({
        code: "registry-unreachable",
        message: `cannot resolve module: module HTTP ${server.url}/m: ${server.authority}: HTTP 500 Internal Server Error`,
      });
      expect(asked()).toEqual(["GET /m", "GET /m", "GET /m"]);
    });

    it.each([
      { name: "once is tried again", breaks: 1, want: "delivered" },
      { name: "twice is given up", breaks: 2, want: "registry-unreachable" },
    ])(
      "whose connection breaks in the middle $name",
      async ({ breaks, want }) => {
        server.intercept(() =>
          server.requests.length <= breaks
            ? {
                status: 200,
                headers: { "content-length": WASM.length },
                body: WASM.subarray(0, 9),
                ending: "drop",
              }
            : { status: 200, body: WASM },
        );

        const outcome = await load(open(), at("/m")).then(
          () => "delivered",
          (thrown: unknown) => codeOf(thrown),
        );

        expect(outcome).toBe(want);
        expect(asked()).toHaveLength(2);
        expect(kept()).toEqual(
          want === "delivered" ? [`blobs/${DIGEST.replace(":", "-")}`] : [],
        );
      },
    );

    it("[W20] is fetched without the proxy that variables name", async () => {
      for (const name of ["http_proxy", "HTTP_PROXY", "all_proxy"])
        vi.stubEnv(name, "http://127.0.0.1:1");
      onTestFinished(() => void vi.unstubAllEnvs());
      serve("/m", { status: 200, body: WASM });

      expect(await load(open(), at("/m"))).toEqual(WASM);
    });
  });

  describe("what a URL once delivered", () => {
    it("needs no server, and none after a restart", async () => {
      serve("/m", { status: 200, body: WASM });
      const first = open();
      await load(first, at("/m"));
      await first.loader.close();
      await server.stop();

      expect(await load(open(), at("/m"))).toEqual(WASM);
      await expect(load(open(), at("/other"))).rejects.toMatchObject({
        code: "registry-unreachable",
      });
    });

    it.each([
      { name: "another path", other: "/other" },
      { name: "another query", other: "/m?v=2" },
    ])("is nothing that $name delivered", async ({ other }) => {
      serve("/m", { status: 200, body: WASM });
      serve("/other", { status: 200, body: WASM });
      const test = open();
      await load(test, at("/m"));

      await load(test, at(other));
      await load(test, at(other));
      await load(test, at("/m"));

      expect(asked()).toEqual(["GET /m", `GET ${other}`]);
    });

    it("is nothing that an OCI image delivered", async () => {
      serve("/m", { status: 200, body: WASM });
      const { manifestDigest } = server.addModule("a/b", { wasm: WASM });
      const test = open();
      await load(test, pinned(`${server.authority}/a/b`, manifestDigest));
      const before = server.requests.length;

      await load(test, at("/m"));
      await load(test, at("/m"));

      expect(asked().slice(before)).toEqual(["GET /m"]);
    });

    it("is not given to one whose URL does not have it", async () => {
      serve("/m", { status: 200, body: WASM });
      const test = open();
      await load(test, at("/m"));

      await expect(load(test, at("/gone"))).rejects.toMatchObject({
        code: "module-not-found",
      });
      test.advance(FORGOTTEN_MS);
      await expect(load(test, at("/gone"))).rejects.toMatchObject({
        code: "module-not-found",
      });
    });

    it("is fetched again when it is no longer on the disk", async () => {
      serve("/m", { status: 200, body: WASM });
      const test = open();
      await load(test, at("/m"));
      const file = path.join(dir, "blobs", DIGEST.replace(":", "-"));
      rmSync(file);

      const found = await resolve(test, at("/m"));
      expect(asked()).toHaveLength(1);
      await found.module.locate();

      expect(existsSync(file)).toBe(true);
      expect(asked()).toEqual(["GET /m", "GET /m"]);
    });

    it("names the module when it cannot be fetched again", async () => {
      serve("/m", { status: 200, body: WASM });
      const test = open();
      await resolve(test, at("/m"));
      const found = await resolve(test, at("/m"));
      rmSync(path.join(dir, "blobs", DIGEST.replace(":", "-")));
      serve("/m", { status: 404 });

      await expect(found.module.locate()).rejects.toMatchObject({
        code: "module-not-found",
        message: `cannot resolve module: module HTTP ${server.url}/m: ${server.authority}: HTTP 404 Not Found`,
      });
    });

    it("[W20] may come after the request's deadline, and need not come again", async () => {
      const gate = createGate();
      serve("/m", { status: 200, body: gate.body(WASM) });
      const test = open();

      await expect(
        test.loader.resolve(
          at("/m"),
          { credentialOf: () => null, redirectFence: null },
          createRequestScope({ deadlineAtMs: performance.now() + 50 }),
        ),
      ).rejects.toMatchObject({
        code: "still-resolving",
        message: `cannot resolve module: module HTTP ${server.url}/m: it is still being fetched (for 0 s so far): the request's deadline came first, the fetch goes on`,
      });
      gate.open();
      await vi.waitFor(() => {
        expect(test.counted).toContain("fetched http");
      });

      serve("/m", { status: 200, body: WASM });
      expect(await load(test, at("/m"))).toEqual(WASM);
      expect(asked()).toEqual(["GET /m"]);
    });
  });

  describe("a manifest", () => {
    it("is fetched when it is read, once, and kept", async () => {
      serve("/m", { status: 200, body: WASM });
      serve("/wasmfn.yaml", { status: 200, body: MANIFEST });
      const source = withManifest("/m", "/wasmfn.yaml");
      const first = open();

      const found = await resolve(first, source);
      expect(asked()).toEqual(["GET /m"]);
      const read = await found.readManifest(openScope());
      await found.readManifest(openScope());
      await first.loader.close();
      await server.stop();
      const later = await resolve(open(), source);

      expect(read).toEqual({
        form: "file",
        bytes: MANIFEST,
        digest: digestOf(MANIFEST),
      });
      expect(await later.readManifest(openScope())).toEqual(read);
      expect(asked()).toEqual(["GET /m", "GET /wasmfn.yaml"]);
    });

    it("may have 64 KiB", async () => {
      const large = Buffer.alloc(64 * 1024, "#");

      const read = await readManifest(large);

      expect(large.equals(read?.bytes ?? Buffer.of())).toBe(true);
    });

    it.each([
      {
        name: "one byte more than 64 KiB",
        body: Buffer.alloc(64 * 1024 + 1, "#"),
        code: "module-too-large",
        says: () =>
          "its manifest is too large, expected at most 65536 bytes, got 65537 bytes",
      },
      {
        name: "another digest",
        body: MANIFEST,
        digest: digestOf("another"),
        code: "digest-mismatch",
        says: () =>
          `its manifest: expected ${digestOf("another")}, got ${digestOf(MANIFEST)}`,
      },
    ])("may not have $name; nothing is kept", async (row) => {
      await expect(readManifest(row.body, row.digest)).rejects.toMatchObject({
        code: row.code,
        message: `cannot resolve module: module HTTP ${server.url}/m: ${row.says()}`,
      });
      expect(kept()).toEqual([`blobs/${DIGEST.replace(":", "-")}`]);
    });

    it("that is not there is not found", async () => {
      serve("/m", { status: 200, body: WASM });
      const found = await resolve(open(), withManifest("/m", "/gone"));

      await expect(found.readManifest(openScope())).rejects.toMatchObject({
        code: "module-not-found",
        message: `cannot resolve module: module HTTP ${server.url}/m: ${server.authority}: HTTP 404 Not Found`,
      });
    });

    it("is not given to one whose URL does not have it", async () => {
      serve("/m", { status: 200, body: WASM });
      serve("/wasmfn.yaml", { status: 200, body: MANIFEST });
      const test = open();
      const had = await resolve(test, withManifest("/m", "/wasmfn.yaml"));
      await had.readManifest(openScope());

      const found = await resolve(test, withManifest("/m", "/gone"));

      await expect(found.readManifest(openScope())).rejects.toMatchObject({
        code: "module-not-found",
      });
    });

    it("goes through the fence like the module", async () => {
      serve("/m", { status: 200, body: WASM });
      redirect("/wasmfn.yaml", "/elsewhere");
      serve("/elsewhere", { status: 200, body: MANIFEST });
      const source = withManifest("/m", "/wasmfn.yaml");
      const test = open();
      const strict = fence("strict", ["/elsewhere"]);
      const lax = fence("lax");

      const found = await resolve(test, source, strict);
      await expect(found.readManifest(openScope())).rejects.toBe(
        strict.refusal,
      );
      expect(asked()).toEqual(["GET /m", "GET /wasmfn.yaml"]);
      const permitted = await resolve(test, source, lax);
      await permitted.readManifest(openScope());
      test.advance(FORGOTTEN_MS);

      expect(lax.asked).toEqual([`${server.url}/elsewhere`]);
      await expect(found.readManifest(openScope())).rejects.toBe(
        strict.refusal,
      );
    });

    async function readManifest(body: Uint8Array, digest = digestOf(body)) {
      serve("/m", { status: 200, body: WASM });
      serve("/wasmfn.yaml", { status: 200, body });
      const source = atUrl(`${server.url}/m`, DIGEST, {
        href: `${server.url}/wasmfn.yaml`,
        digest,
      });
      const found = await resolve(open(), source);
      return await found.readManifest(openScope());
    }
  });

  describe("a redirect", () => {
    it("is followed for a source from the Input, and asked about nowhere", async () => {
      const other = await anotherServer();
      other.intercept(() => ({ status: 200, body: WASM }));
      redirect("/m", `${other.url}/x?sig=hunter2`);

      expect(await load(open(), at("/m"))).toEqual(WASM);
      expect(other.requests.map(({ path: to }) => to)).toEqual(["/x"]);
    });

    it("may lead to another, five times", async () => {
      for (let hop = 0; hop < 5; hop++) redirect(`/${hop}`, `/${hop + 1}`);
      serve("/5", { status: 200, body: WASM });
      redirect("/six", "/0");

      expect(await load(open(), at("/0"))).toEqual(WASM);
      await expect(load(open(), at("/six"))).rejects.toMatchObject({
        code: "redirect-refused",
        message: `cannot resolve module: module HTTP ${server.url}/six: ${server.authority}: more than 5 redirects, the last one to ${server.url}/5`,
      });
    });

    it("[W20] may not lead from https to http", async () => {
      const authorities = createCertificateAuthorities();
      onTestFinished(() => {
        authorities.remove();
      });
      const ca = authorities.authority("ca");
      const tls = authorities.leaf({
        authority: "ca",
        altNames: "DNS:localhost",
      });
      const secure = await anotherServer({ tls });
      secure.intercept(({ path: to }) =>
        to === "/m"
          ? { status: 302, headers: { location: `${server.url}/m?hunter2` } }
          : { status: 200, body: WASM },
      );
      const test = open({ registryCas: new Map([[secure.authority, ca]]) });

      await expect(
        load(test, atUrl(`${secure.url}/m`, DIGEST)),
      ).rejects.toMatchObject({
        code: "redirect-refused",
        message: `cannot resolve module: module HTTP ${secure.url}/m: ${secure.authority}: redirect from https to ${server.url}/m`,
      });
      expect(server.requests).toEqual([]);
      expect(await load(test, atUrl(`${secure.url}/ok`, DIGEST))).toEqual(WASM);
    });

    it("may not lead to http on another machine", async () => {
      redirect("/m", "http://modules.test/m?hunter2");

      const refusal: unknown = await load(open(), at("/m")).catch(
        (thrown: unknown) => thrown,
      );

      expect(refusal).toMatchObject({ code: "plain-http-refused" });
      expect(String(refusal)).not.toContain("hunter2");
      expect(kept()).toEqual([]);
    });

    it.each([
      { name: "a file", to: "file:///etc/passwd?hunter2" },
      { name: "a user name", to: "https://me:hunter2@modules.test/m" },
    ])("may not lead to $name", async ({ to }) => {
      redirect("/m", to);

      const refusal: unknown = await load(open(), at("/m")).catch(
        (thrown: unknown) => thrown,
      );

      expect(refusal).toMatchObject({ code: "redirect-refused" });
      expect(String(refusal)).not.toContain("hunter2");
      expect(kept()).toEqual([]);
    });

    it("[W9] is asked about at every hop when the composite resource chose the URL", async () => {
      const other = await anotherServer();
      other.intercept(({ path: to }) =>
        to === "/b"
          ? {
              status: 307,
              headers: { location: `${server.url}/c?sig=hunter2` },
            }
          : "pass",
      );
      redirect("/m", `${other.url}/b?sig=hunter2`);
      serve("/c", { status: 200, body: WASM });
      const lax = fence("lax");

      expect(await load(open(), at("/m"), lax)).toEqual(WASM);
      // Not about the URL itself: whoever has chosen it was held to the fence before.
      expect(lax.asked).toEqual([`${other.url}/b`, `${server.url}/c`]);
    });

    it("[W9] that is refused is sent nothing", async () => {
      const other = await anotherServer();
      redirect("/m", "/b");
      redirect("/b", `${other.url}/secret`);
      const strict = fence("strict", ["/secret"]);

      await expect(load(open(), at("/m"), strict)).rejects.toBe(strict.refusal);

      expect(asked()).toEqual(["GET /m", "GET /b"]);
      expect(other.requests).toEqual([]);
      expect(kept()).toEqual([]);
    });

    it.each([
      { to: "/allowed/../secret", want: "/secret" },
      { to: "/allowed/%2e%2e/secret", want: "/secret" },
      { to: "/allowed/.%2E/secret", want: "/secret" },
      { to: "/allowed/..\\secret", want: "/secret" },
      { to: "/allowed/.\t./secret", want: "/secret" },
      { to: "/allowed/s%65cret", want: "/allowed/secret" },
      { to: "../../secret#part", want: "/secret" },
    ])("[W9] to $to is one to $want for the fence", async ({ to, want }) => {
      redirect("/allowed/m", to);
      const strict = fence("strict", [want]);

      await expect(load(open(), at("/allowed/m"), strict)).rejects.toBe(
        strict.refusal,
      );
      expect(strict.asked).toEqual([`${server.url}${want}`]);
    });

    it.each([
      { to: "/allowed/..%2fsecret" },
      { to: "/allowed/..%5csecret" },
      { to: "/allowed/..;/secret" },
      { to: "/allowed//secret" },
      { to: "/allowed/%c0%ae%c0%ae/secret" },
    ])(
      "[W9] to $to, which servers read in different ways, is refused",
      async ({ to }) => {
        redirect("/allowed/m", to);
        const lax = fence("lax");

        await expect(load(open(), at("/allowed/m"), lax)).rejects.toMatchObject(
          { code: "redirect-refused" },
        );
        expect(lax.asked).toEqual([]);
        expect(asked()).toEqual(["GET /allowed/m"]);
      },
    );

    it("that one fence refuses is another fence's own matter", async () => {
      redirect("/m", "/hop");
      serve("/hop", { status: 200, body: WASM });
      const test = open();
      const strict = fence("strict", ["/hop"]);
      const likewise = fence("strict");
      const lax = fence("lax");

      await expect(load(test, at("/m"), strict)).rejects.toBe(strict.refusal);
      // Fences of one key judge alike.
      await expect(load(test, at("/m"), likewise)).rejects.toBe(strict.refusal);
      expect(asked()).toEqual(["GET /m"]);

      expect(await load(test, at("/m"), lax)).toEqual(WASM);
      expect(lax.asked).toEqual([`${server.url}/hop`]);
    });

    it("that a fence refuses is followed meanwhile for who has none", async () => {
      redirect("/m", "/hop");
      serve("/hop", { status: 200, body: WASM });
      const test = open();
      const strict = fence("strict", ["/hop"]);

      const [refused, delivered] = await Promise.allSettled([
        load(test, at("/m"), strict),
        load(test, at("/m")),
      ]);

      expect(refused).toEqual({ status: "rejected", reason: strict.refusal });
      expect(delivered).toEqual({ status: "fulfilled", value: WASM });
    });

    it("is judged again when what it led to is in the cache", async () => {
      redirect("/m", "/hop");
      redirect("/hop", "/end");
      serve("/end", { status: 200, body: WASM });
      const test = open();
      await load(test, at("/m"));
      const strict = fence("strict", ["/end"]);
      const lax = fence("lax");

      await expect(load(test, at("/m"), strict)).rejects.toBe(strict.refusal);
      expect(await load(test, at("/m"), lax)).toEqual(WASM);
      expect(await load(test, at("/m"))).toEqual(WASM);

      const hops = [`${server.url}/hop`, `${server.url}/end`];
      expect(strict.asked).toEqual(hops);
      expect(lax.asked).toEqual(hops);
      expect(asked()).toEqual(["GET /m", "GET /hop", "GET /end"]);
    });

    it("is followed again after a restart, for a fence only, and once", async () => {
      redirect("/m", "/hop");
      serve("/hop", { status: 200, body: WASM });
      const first = open();
      await load(first, at("/m"));
      await first.loader.close();
      const delivery = ["GET /m", "GET /hop"];

      const second = open();
      await load(second, at("/m"));
      expect(asked()).toEqual(delivery);
      await load(second, at("/m"), fence("lax"));
      expect(asked()).toEqual([...delivery, ...delivery]);
      await load(second, at("/m"), fence("lax"));
      await load(second, at("/m"), fence("other"));

      expect(asked()).toEqual([...delivery, ...delivery]);
    });

    it("is not forgotten for an answer without one that delivers other bytes", async () => {
      redirect("/m", "/hop");
      serve("/hop", { status: 200, body: WASM });
      const first = open();
      await load(first, at("/m"));
      await first.loader.close();
      const second = open();
      const strict = fence("strict", ["/hop"]);

      serve("/m", { status: 200, body: OTHER });
      await expect(load(second, at("/m"), strict)).rejects.toThrow("expected");
      second.advance(FORGOTTEN_MS);

      // What is here came by a way that this fence does not permit.
      await expect(load(second, at("/m"), strict)).rejects.toThrow("expected");
    });

    it("of one delivery is not mixed up with that of another under way", async () => {
      const gate = createGate();
      redirect("/m", "/hop");
      serve("/hop", { status: 200, body: gate.body(WASM) });
      const test = open();
      const strict = fence("strict", ["/hop"]);

      const loading = load(test, at("/m"));
      await vi.waitFor(() => {
        expect(asked()).toEqual(["GET /m", "GET /hop"]);
      });
      serve("/m", { status: 200, body: OTHER });
      await expect(load(test, at("/m"), strict)).rejects.toThrow("expected");
      gate.open();
      expect(await loading).toEqual(WASM);
      redirect("/m", "/hop");
      test.advance(FORGOTTEN_MS);

      await expect(load(test, at("/m"), strict)).rejects.toBe(strict.refusal);
    });
  });

  it("a query is a secret: it is in no message, log line, file name or file", async () => {
    serve("/m", { status: 200, body: WASM });
    serve("/end", { status: 200, body: WASM });
    serve("/wasmfn.yaml", { status: 200, body: MANIFEST });
    serve("/other", { status: 200, body: OTHER });
    serve("/loop", { status: 302, headers: { location: "/loop?hunter2=2" } });
    serve("/broken", { status: 200, body: "x", ending: "drop" });
    redirect("/moved", "/end?hunter2=1");
    redirect("/away", "http://modules.test/?hunter2=1");
    const test = open({ maxModuleBytes: 100 });
    serve("/large", { status: 200, body: Buffer.alloc(101) });
    const manifest = (to: string) =>
      atUrl(`${server.url}/m?hunter2=1`, DIGEST, {
        href: `${server.url}${to}?hunter2=1`,
        digest: digestOf(MANIFEST),
      });
    const attempt = async (source: ModuleSource): Promise<unknown> => {
      try {
        const found = await resolve(test, source);
        await found.module.locate();
        await found.readManifest(openScope());
        return found.module.description;
      } catch (thrown) {
        return thrown;
      }
    };

    const outcomes: unknown[] = [];
    for (const to of [
      ...["/m", "/moved", "/gone", "/other", "/loop"],
      ...["/away", "/large", "/broken"],
    ])
      outcomes.push(await attempt(at(`${to}?hunter2=1`)));
    for (const to of ["/wasmfn.yaml", "/gone", "/other"])
      outcomes.push(await attempt(manifest(to)));
    await server.stop();
    outcomes.push(await attempt(at("/new?hunter2=1")));

    expect(outcomes.filter((outcome) => outcome instanceof Error)).toHaveLength(
      9,
    );
    const said = [...outcomes.map(everythingIn), JSON.stringify(test.lines)];
    expect(said.join("\n")).not.toMatch(/hunter2/i);
    const files = filesIn(dir);
    // The salt, three proofs, the module and its manifest.
    expect(files).toHaveLength(6);
    for (const file of files)
      expect(file + readFileSync(path.join(dir, file), "latin1")).not.toMatch(
        /hunter2/i,
      );
  });
});

function open(options: Partial<LoaderOptions> = {}): TestLoader {
  const test = createTestLoader({ cacheDir: dir, ...options });
  onTestFinished(() => test.loader.close());
  return test;
}

function at(pathAndQuery: string) {
  return atUrl(`${server.url}${pathAndQuery}`, DIGEST);
}

function withManifest(modulePath: string, manifestPath: string) {
  return atUrl(`${server.url}${modulePath}`, DIGEST, {
    href: `${server.url}${manifestPath}`,
    digest: digestOf(MANIFEST),
  });
}

async function resolve(
  { loader }: TestLoader,
  source: ModuleSource,
  redirectFence: RedirectFence | null = null,
) {
  const context = { credentialOf: () => null, redirectFence };
  return await loader.resolve(source, context, openScope());
}

/** The bytes of the module. */
async function load(
  test: TestLoader,
  source: ModuleSource,
  redirectFence: RedirectFence | null = null,
): Promise<Buffer> {
  const { module } = await resolve(test, source, redirectFence);
  const { filePath } = await module.locate();
  return await readFile(filePath);
}

/** In place of what the path was answered with before. */
function serve(at: string, answer: Answer): void {
  server.intercept((request) => (request.path === at ? answer : "pass"));
}

function redirect(from: string, location: string): void {
  serve(from, { status: 302, headers: { location } });
}

async function anotherServer(
  options: Parameters<typeof startScriptedRegistry>[0] = {},
): Promise<ScriptedRegistry> {
  const other = await startScriptedRegistry(options);
  onTestFinished(() => other.stop());
  return other;
}

/** What the server was asked so far. */
function asked(): string[] {
  return server.requests.map(({ method, path: to, query }) => {
    const text = query.toString();
    return `${method} ${to}${text === "" ? "" : `?${text}`}`;
  });
}

/** A fence that refuses some paths, and tells what it was asked about. */
function fence(key: string, refused: readonly string[] = []) {
  const refusal = new AdmissionError("pull-refused", `refused by ${key}`);
  const about: string[] = [];
  return {
    key,
    refusal,
    asked: about,
    admit({ location }) {
      about.push(location);
      return refused.includes(new URL(location).pathname)
        ? Promise.reject(refusal)
        : Promise.resolve();
    },
  } satisfies RedirectFence & { refusal: AdmissionError; asked: string[] };
}

/** A body whose last bytes come when the gate is opened. */
function createGate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((done) => {
    open = done;
  });
  return {
    open: () => {
      open();
    },
    async *body(bytes: Uint8Array) {
      yield bytes.subarray(0, 4);
      await opened;
      yield bytes.subarray(4);
    },
  };
}

async function* endlessly(bytes: Uint8Array) {
  for (;;) {
    await new Promise((done) => setImmediate(done));
    yield bytes;
  }
}

/** All that was kept of what came, without the salt of the proofs. */
function kept(): string[] {
  return filesIn(dir).filter(
    (file) => file !== path.join("access", "salt") && !isProof(file),
  );
}

function isProof(file: string): boolean {
  return /^access\/[0-9a-f]{64}$/u.test(file);
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      path.relative(directory, path.join(entry.parentPath, entry.name)),
    )
    .toSorted();
}

function codeOf(thrown: unknown): unknown {
  return thrown instanceof Error && "code" in thrown ? thrown.code : thrown;
}

/** An error with its stack, its detail and its causes. */
function everythingIn(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return `${thrown.stack ?? ""} ${JSON.stringify(thrown)} ${everythingIn(thrown.cause)}`;
}
