import dns from "node:dns";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { LoaderErrorCode } from "../../../src/loader/index.js";
import { createRequestScope } from "../../../src/request-scope.js";
import type { Answer, Reaction } from "../../support/registry-exchange.js";
import { createCertificateAuthorities } from "./http/certificates.js";
import {
  answerTag,
  createGate,
  openTagWorld,
  openWarmWorld,
  refusalOf,
  status,
  type TagWorld,
  type WarmWorld,
} from "./tag-world.js";

/** Sends on to where that is what comes, when there is time for nothing but a short wait. */
function answerLate({ world, loader }: WarmWorld, reaction: Reaction): void {
  answerTag(world, () => {
    loader.advance(4_800);
    return { status: 307, headers: { location: "/slow" } };
  });
  world.registry.intercept(({ path: asked }) =>
    asked === "/slow" ? reaction : "pass",
  );
}

describe("loader/oci/tags: when it falls back", () => {
  describe("[R1] falls back when the registry gives no answer", () => {
    it.each<{
      name: string;
      fail: (warm: WarmWorld) => void | Promise<void>;
      want: RegExp;
    }>([
      {
        name: "connection refused",
        fail: ({ world }) => world.registry.stop(),
        want: /connection refused \(ECONNREFUSED\)/u,
      },
      {
        name: "connection closed",
        fail: ({ world, loader }) =>
          answerTag(world, () => {
            loader.advance(4_900);
            return "drop";
          }),
        want: /the connection was closed before an answer came/u,
      },
      {
        name: "answer broken off",
        fail: ({ world }) =>
          answerTag(world, () => ({ status: 200, body: "{", ending: "drop" })),
        want: /the answer ended early/u,
      },
      {
        name: "no answer within 5 s",
        fail: (warm) => answerLate(warm, "hang"),
        want: /no answer within 0\.\d s|no time is left to ask/u,
      },
      {
        name: "answer stalls until 5 s are over",
        fail: (warm) =>
          answerLate(warm, { status: 200, body: "{", ending: "hang" }),
        want: /the answer did not end within 0\.\d s|no time is left to ask/u,
      },
      {
        name: "token service down",
        fail: ({ world: { registry } }) => {
          registry.requireBearer(null);
          registry.intercept(({ path: asked }) =>
            asked === "/token" ? status(503) : "pass",
          );
        },
        want: /answers 503 to the request for a token/u,
      },
      ...[408, 429, 500, 501, 502, 503, 504, 599].map((code) => ({
        name: `HTTP ${code}`,
        fail: ({ world }: WarmWorld) => answerTag(world, () => status(code)),
        want: new RegExp(`HTTP ${code}`, "u"),
      })),
    ])("$name", async ({ fail, want }) => {
      const warm = await openWarmWorld();
      const { world, digest, loader } = warm;
      await fail(warm);

      const [unpinned, expecting] = await Promise.all([
        loader.load(),
        loader.load({ expectedDigest: digest }),
      ]);

      const found = { manifestDigest: digest, content: "one" };
      const warning = expect.stringMatching(want) as string;
      expect(unpinned).toEqual({ ...found, warning });
      expect(expecting).toEqual({ ...found, warning: null });
      const tags = loader.counted.filter((line) => line.startsWith("tag"));
      expect(tags.toSorted()).toEqual(["tag cache", "tag pointer"]);
      // Those of the first load.
      expect(blobsAsked(world)).toBe(1);
    });

    it("name does not resolve", async () => {
      const world = await openTagWorld();
      const { manifestDigest } = world.publish("one");
      const [, port] = world.registry.authority.split(":");
      const ref = `registry.test:${port}/a/b:v1`;
      const options = { insecureHosts: ["registry.test"] };
      const lookup = vi.spyOn(dns, "lookup");
      onTestFinished(() => lookup.mockRestore());
      lookup.mockImplementation((...args: unknown[]) => {
        doneOf(args)(null, [{ address: "127.0.0.1", family: 4 }]);
      });
      await world.open(options).load({}, ref);

      const loader = world.open(options);
      lookup.mockImplementation((...args: unknown[]) => {
        loader.advance(4_900);
        const error = Object.assign(new Error("no"), { code: "ENOTFOUND" });
        doneOf(args)(error, []);
      });
      const [unpinned, expecting] = await Promise.all([
        loader.load({}, ref),
        loader.load({ expectedDigest: manifestDigest }, ref),
      ]);

      expect(unpinned.warning).toContain("no such host (ENOTFOUND)");
      expect([unpinned.content, expecting.content]).toEqual(["one", "one"]);
    });
  });

  describe("[R1] never falls back", () => {
    const other = `sha256:${"1".repeat(64)}`;
    it.each<{
      name: string;
      answer: () => Answer;
      want: LoaderErrorCode;
      /** With an expectation; default the same. */
      wantExpecting?: LoaderErrorCode;
    }>([
      ...[
        [204, "registry-refused"] as const,
        [206, "registry-refused"] as const,
        [301, "answer-invalid"] as const,
        [304, "registry-refused"] as const,
        [400, "registry-refused"] as const,
        [401, "registry-auth-failed"] as const,
        [403, "registry-auth-failed"] as const,
        [404, "module-not-found"] as const,
        [405, "registry-refused"] as const,
        [406, "registry-refused"] as const,
        [410, "registry-refused"] as const,
        [451, "registry-refused"] as const,
      ].map(([code, want]) => ({
        name: `HTTP ${code}`,
        answer: () => status(code),
        want,
      })),
      {
        name: "redirects in a circle",
        answer: () => ({
          status: 307,
          headers: { location: "/v2/a/b/manifests/v1" },
        }),
        want: "redirect-refused",
      },
      {
        name: "a manifest that its header calls by another digest",
        answer: () => ({
          status: 200,
          headers: { "docker-content-digest": other },
          body: "{}",
        }),
        want: "digest-mismatch",
      },
      {
        name: "a body that is not JSON",
        answer: () => ({ status: 200, body: "{" }),
        want: "artifact-invalid",
        wantExpecting: "expected-digest-mismatch",
      },
      {
        name: "an empty body",
        answer: () => ({ status: 200 }),
        want: "artifact-invalid",
        wantExpecting: "expected-digest-mismatch",
      },
      {
        name: "a page of a proxy",
        answer: () => ({
          status: 200,
          headers: { "content-type": "text/html" },
          body: "<html>sign in</html>",
        }),
        want: "artifact-invalid",
        wantExpecting: "expected-digest-mismatch",
      },
      {
        name: "[R8] a manifest without end",
        answer: () => ({ status: 200, body: endless() }),
        want: "answer-too-large",
      },
    ])("$name", async ({ answer, want, wantExpecting = want }) => {
      const { world, digest, loader } = await openWarmWorld();
      answerTag(world, answer);
      const before = withoutRefusals(world);

      const [unpinned, expecting] = await Promise.all([
        refusalOf(loader.load()),
        refusalOf(loader.load({ expectedDigest: digest })),
      ]);

      expect([unpinned.code, expecting.code]).toEqual([want, wantExpecting]);
      expect(loader.counted.join()).not.toMatch(/pointer|cache|blob/u);
      expect(withoutRefusals(world)).toEqual(before);
    });

    it("a certificate that does not verify", async () => {
      const authorities = createCertificateAuthorities();
      onTestFinished(() => authorities.remove());
      const trusted = authorities.authority("trusted");
      const another = authorities.authority("another");
      const world = await openTagWorld(
        authorities.leaf({ authority: "trusted", altNames: "DNS:localhost" }),
      );
      const { manifestDigest } = world.publish("one");
      const trusting = { registryCas: new Map([["localhost", trusted]]) };
      await world.open(trusting).load();

      const loader = world.open({
        registryCas: new Map([["localhost", another]]),
      });
      const [unpinned, expecting] = await Promise.all([
        refusalOf(loader.load()),
        refusalOf(loader.load({ expectedDigest: manifestDigest })),
      ]);

      expect([unpinned.code, expecting.code]).toEqual([
        "tls-failed",
        "tls-failed",
      ]);
      expect((await world.open(trusting).load()).content).toBe("one");
    });

    it("a caller who went away or has no time left: the answer may still come", async () => {
      const { world, digest, loader } = await openWarmWorld();
      const gate = createGate();
      world.registry.intercept(async () => {
        await gate.pass();
        return "pass" as const;
      });
      const leaving = createRequestScope({ deadlineAtMs: Infinity });
      const deadlineAtMs = performance.now() + 20;

      const gone = refusalOf(loader.load({ scope: leaving }));
      const goneToo = refusalOf(
        loader.load({ scope: leaving, expectedDigest: digest }),
      );
      const late = await refusalOf(
        loader.load({ scope: createRequestScope({ deadlineAtMs }) }),
      );
      leaving.cancel();
      expect((await gone).code).toBe("resolve-cancelled");
      expect((await goneToo).code).toBe("resolve-cancelled");
      expect(late.code).toBe("still-resolving");
      expect(late.message).toContain(
        "the request's deadline came first, the fetch goes on",
      );

      // One question, which none of those who left took with them.
      const patient = loader.load();
      gate.open();
      expect((await patient).content).toBe("one");
      expect(world.requests().slice(2)).toEqual(["GET manifests/v1"]);
    });
  });
});

async function* endless(): AsyncGenerator<Uint8Array> {
  for (;;) yield await Promise.resolve(Buffer.alloc(256 * 1024, " "));
}

/** What is in the cache but the note that somebody was refused. */
function withoutRefusals(world: TagWorld): Record<string, string> {
  return Object.fromEntries(
    Object.entries(world.cached()).filter(
      ([name]) => !name.startsWith("access/"),
    ),
  );
}

function blobsAsked(world: TagWorld): number {
  return world.requests().filter((line) => line.includes(" blobs/")).length;
}

type LookupDone = (
  error: NodeJS.ErrnoException | null,
  found: dns.LookupAddress[],
) => void;

/** What a look-up is to be ended with: the last argument, as ever. */
function doneOf(args: unknown[]): LookupDone {
  const isDone = (value: unknown): value is LookupDone =>
    typeof value === "function";
  const done = args.at(-1);
  if (isDone(done)) return done;
  throw new Error("expected a callback");
}
