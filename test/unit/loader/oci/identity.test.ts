import { describe, expect, it } from "vitest";
import type { Credential } from "../../../../src/loader/oci/credential.js";
import { identityOf } from "../../../../src/loader/oci/identity.js";

const basic = (username: string, password: string): Credential => ({
  kind: "basic",
  username,
  password,
});

describe("loader/oci/identity", () => {
  it("calls nobody anonymous", () => {
    expect(identityOf(null)).toBe("anonymous");
  });

  it("gives the same credential the same identity, which shows nothing of it", () => {
    const identity = identityOf(basic("user", "hunter2"));

    expect(identity).toBe(identityOf(basic("user", "hunter2")));
    expect(identity).toMatch(/^[0-9a-f]{64}$/u);
  });

  it("tells credentials apart that differ in kind, in a field, or in where a field ends", () => {
    const credentials: Credential[] = [
      basic("a", "bc"),
      basic("ab", "c"),
      basic("a", "1:bc"),
      basic("a1:b", "c"),
      basic("bc", "a"),
      basic("a", ""),
      { kind: "identity-token", token: "a" },
      { kind: "registry-token", token: "a" },
      { kind: "registry-token", token: "b" },
    ];

    const identities = new Set(credentials.map(identityOf));

    expect(identities.size).toBe(credentials.length);
  });
});
