import { readFileSync } from "node:fs";
import { X509Certificate } from "node:crypto";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { createExpiryWarning } from "../../../src/function/tls-expiry.js";
import type { TlsIdentity } from "../../../src/function/tls-files.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "./certificates.js";
import { realClock, recordingLogger } from "./fixtures.js";

const dayMs = 86_400_000;
const endMs = Date.UTC(2030, 0, 31);
const maker = createCertificateMaker();

describe.skipIf(missingTool("openssl"))("function/tls-expiry", () => {
  let leaf: X509Certificate;
  let other: X509Certificate;
  let authority: X509Certificate;

  beforeAll(() => {
    authority = new X509Certificate(readFileSync(maker.authority("ca")));
    [leaf, other] = ["server", "other"].map((name) => {
      const options = { name, authority: "ca", to: "20300131" };
      const { cert } = maker.leaf({ ...options, usage: "serverAuth" });
      return new X509Certificate(readFileSync(cert));
    }) as [X509Certificate, X509Certificate];
  });
  afterAll(() => maker.remove());

  function identity(
    certificate: X509Certificate,
    ...clientAuthorities: X509Certificate[]
  ): TlsIdentity {
    const none = Buffer.alloc(0);
    return {
      certificate: none,
      privateKey: none,
      leaf: certificate,
      clientAuthorities,
    };
  }

  function at(nowMs: number) {
    const { logger, lines } = recordingLogger();
    const clock = { ...realClock, nowMs: () => nowMs };
    return {
      lines,
      warn: createExpiryWarning(clock, logger),
      pass: (ms: number) => (nowMs += ms),
    };
  }

  it.each([
    { name: "30 days before", nowMs: endMs - 30 * dayMs, want: [] },
    {
      name: "a moment later",
      nowMs: endMs - 30 * dayMs + 1,
      want: ["certificate expires soon"],
    },
    {
      name: "once it has ended",
      nowMs: endMs + 1,
      want: ["certificate has expired"],
    },
  ])("looks at tls.crt: $name", ({ nowMs, want }) => {
    const { warn, lines } = at(nowMs);

    warn(identity(leaf, authority));

    expect(lines.map((line) => line.message)).toEqual(want);
    for (const { level, fields } of lines) {
      expect(level).toBe("warn");
      expect(fields).toEqual({
        file: "tls.crt",
        notAfter: "2030-01-31T00:00:00.000Z",
      });
    }
  });

  it("looks at every authority", () => {
    const { warn, lines } = at(endMs - dayMs);

    warn(identity(authority, authority, leaf));

    expect(lines.map((line) => line.fields["file"])).toEqual(["ca.crt"]);
  });

  it("warns of each certificate once a day, in whatever set it is", () => {
    const { warn, lines, pass } = at(endMs - 5 * dayMs);
    const set = identity(leaf);

    warn(set);
    pass(dayMs - 1);
    warn(set);
    warn(identity(leaf));
    warn(identity(leaf, authority));
    expect(lines).toHaveLength(1);
    pass(1);
    warn(identity(leaf));
    expect(lines).toHaveLength(2);
    pass(dayMs);
    warn(set);
    expect(lines).toHaveLength(3);
  });

  it("warns at once of another certificate", () => {
    const { warn, lines } = at(endMs - dayMs);

    warn(identity(authority, leaf));
    warn(identity(other, leaf));
    warn(identity(authority, leaf, leaf, other));
    warn(identity(leaf));

    expect(lines.map((line) => line.fields["file"])).toEqual([
      "ca.crt",
      "tls.crt",
      "ca.crt",
      "tls.crt",
    ]);
  });
});
