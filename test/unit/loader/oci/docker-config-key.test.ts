import { describe, expect, it } from "vitest";
import {
  mostSpecific,
  parseDockerConfigKey,
} from "../../../../src/loader/oci/docker-config-key.js";
import { parseReference } from "../../../../src/loader/reference.js";
import { createIsPlainHttp } from "../../../../src/loader/registry-scheme.js";

const isPlainHttp = createIsPlainHttp({
  insecureHosts: ["plain.example.com", "plain"],
  registryCas: new Map(),
});
const ECR = "123.dkr.ecr.eu-west-1.amazonaws.com";

describe("loader/oci/docker-config-key", () => {
  it.each([
    { key: "ghcr.io", ref: "ghcr.io/org/x", want: true },
    { key: "GHCR.io.", ref: "ghcr.io/org/x", want: true },
    { key: "ghcr.io:443", ref: "ghcr.io/org/x", want: true },
    { key: "https://ghcr.io", ref: "ghcr.io/org/x", want: true },
    { key: "https://ghcr.io/", ref: "ghcr.io/org/x", want: true },
    { key: "HTTPS://ghcr.io", ref: "ghcr.io/org/x", want: true },
    { key: "https://quay.io/v1/", ref: "quay.io/org/x", want: true },
    { key: "https://quay.io/v2/", ref: "quay.io/org/x", want: true },
    { key: "quay.io/v2", ref: "quay.io/org/x", want: true },
    { key: "http://reg:5000", ref: "reg:5000/x", want: true },
    { key: "http://reg:5000/", ref: "reg:5000/x", want: true },
    { key: "reg", ref: "reg:443/x", want: true },
    { key: "localhost:5000", ref: "localhost:5000/x", want: true },
    { key: "[::1]:5000", ref: "[::1]:5000/x", want: true },
    { key: "ghcr.io", ref: "ghcr.io:8443/org/x", want: false },
    { key: "ghcr.io:8443", ref: "ghcr.io/org/x", want: false },
    { key: "ghcr.io", ref: "a.ghcr.io/org/x", want: false },
    { key: "a.io", ref: "b.io/x", want: false },
    { key: "ghcr.io", ref: "ghcr.io.evil.com/x", want: false },

    { key: "localhost", ref: "localhost:80/x", want: true },
    { key: "localhost:443", ref: "localhost/x", want: false },
    { key: "plain.example.com", ref: "plain.example.com/x", want: true },
    { key: "plain.example.com:80", ref: "plain.example.com/x", want: true },
    { key: "plain.example.com:443", ref: "plain.example.com/x", want: false },
    { key: "ghcr.io:80", ref: "ghcr.io/org/x", want: false },
    { key: "plain", ref: "plain:80/x", want: true },
    { key: "plain", ref: "plain:443/x", want: false },

    { key: "https://index.docker.io/v1/", ref: "nginx", want: true },
    { key: "docker.io", ref: "nginx", want: true },
    { key: "index.docker.io", ref: "docker.io/org/x", want: true },
    { key: "registry-1.docker.io", ref: "nginx", want: true },
    { key: "docker.io/org", ref: "org/x", want: true },
    { key: "docker.io/org", ref: "nginx", want: false },

    { key: "ghcr.io/org-a", ref: "ghcr.io/org-a/x", want: true },
    { key: "ghcr.io/org-a/", ref: "ghcr.io/org-a/x", want: true },
    { key: "https://ghcr.io/org-a", ref: "ghcr.io/org-a", want: true },
    { key: "ghcr.io/org-a/x", ref: "ghcr.io/org-a/x/y", want: true },
    { key: "ghcr.io/org-a", ref: "ghcr.io/org-b/x", want: false },
    { key: "ghcr.io/org-a", ref: "ghcr.io/org-ab/x", want: false },
    { key: "ghcr.io/org-a/x", ref: "ghcr.io/org-a", want: false },
    { key: "ghcr.io//org-a", ref: "ghcr.io/org-a/x", want: false },
    { key: "ghcr.io/*", ref: "ghcr.io/org-a/x", want: false },

    {
      key: "*.dkr.ecr.eu-west-1.amazonaws.com",
      ref: `${ECR}/x`,
      want: true,
    },
    {
      key: "https://*.DKR.ecr.eu-west-1.amazonaws.com./v2/",
      ref: `${ECR}/x`,
      want: true,
    },
    {
      key: "*.ecr.eu-west-1.amazonaws.com",
      ref: `${ECR}/x`,
      want: false,
    },
    { key: "*.example.com", ref: "example.com/x", want: false },
    { key: "*.example.com", ref: "a.b.example.com/x", want: false },
    { key: "*.example.com", ref: "a.example.org/x", want: false },
    { key: "reg.*.com", ref: "reg.example.com/x", want: true },
    { key: "reg*.example.com", ref: "reg-eu.example.com/x", want: true },
    { key: "reg*.example.com", ref: "reg.example.com/x", want: true },
    { key: "*-eu.example.com", ref: "reg-eu.example.com/x", want: true },
    { key: "*-eu.example.com", ref: "reg-us.example.com/x", want: false },
    { key: "ab*ba.example.com", ref: "aba.example.com/x", want: false },
    { key: "*.example.com", ref: "a.example.com:5000/x", want: false },
    { key: "*.example.com:5000", ref: "a.example.com:5000/x", want: true },
    { key: "*.example.com:443", ref: "a.example.com/x", want: true },
    { key: "pl*.example.com:80", ref: "plain.example.com/x", want: true },
    { key: "pl*.example.com:443", ref: "plain.example.com/x", want: false },
    { key: "re*", ref: "reg:443/x", want: true },
    { key: "re*", ref: "reg:5000/x", want: false },
    { key: "*.docker.io", ref: "nginx", want: true },
    { key: "*.example.com/org-a", ref: "a.example.com/org-a/x", want: true },
    { key: "*.example.com/org-a", ref: "a.example.com/org-b/x", want: false },
  ])("key $key for $ref: $want", ({ key, ref, want }) => {
    expect(findIn([key], ref)).toBe(want ? key : null);
  });

  it.each([
    { name: "an empty one", key: "" },
    { name: "a scheme alone", key: "https://" },
    { name: "user info", key: "https://user:hunter2@ghcr.io" },
    { name: "a query", key: "ghcr.io?x" },
    { name: "a fragment", key: "ghcr.io#x" },
    { name: "a blank", key: "ghcr .io" },
    { name: "another scheme", key: "ftp://ghcr.io" },
    { name: "a port that is none", key: "ghcr.io:70000" },
    { name: "another spelling of an address", key: "0x7f.1" },
    { name: "two stars in a label", key: "*a*.example.com" },
    { name: "an empty label in a glob", key: "*..example.com" },
    { name: "other glob characters", key: "[a-z]*.example.com" },
    { name: "a port that is none in a glob", key: "*.example.com:x" },
    { name: "more than 1024 characters", key: `ghcr.io/${"a".repeat(1017)}` },
  ])("makes nothing of $name", ({ key }) => {
    expect(parseDockerConfigKey(key, isPlainHttp)).toBeNull();
  });

  it("names a key without its scheme, on one line", () => {
    const key = parseDockerConfigKey(
      "https://GHCR.io:443/or\u202eg\n/",
      isPlainHttp,
    );

    expect(key?.text).toBe("ghcr.io/or\\u202eg\\u000a");
  });

  it("does not hang on a key that is all slashes", () => {
    expect(
      parseDockerConfigKey(`a.io${"/".repeat(1_000)}`, isPlainHttp)?.path,
    ).toBe("");
  });

  it.each([
    {
      name: "the longest path",
      keys: ["ghcr.io", "ghcr.io/a/b", "ghcr.io/a"],
      want: "ghcr.io/a/b",
    },
    {
      name: "a path on a glob before a host without one",
      keys: ["ghcr.io", "*.io/a"],
      want: "*.io/a",
    },
    {
      name: "the host before a glob",
      keys: ["*.io", "ghcr.io", "gh*.io"],
      want: "ghcr.io",
    },
    {
      name: "the host before a glob on one path",
      keys: ["*.io/a", "ghcr.io/a"],
      want: "ghcr.io/a",
    },
    { name: "the longer glob", keys: ["*.io", "gh*.io"], want: "gh*.io" },
    {
      name: "the first of equals",
      keys: ["https://ghcr.io", "ghcr.io"],
      want: "https://ghcr.io",
    },
    { name: "none of others", keys: ["a.io", "b.io"], want: null },
  ])("chooses $name", ({ keys, want }) => {
    expect(findIn(keys, "ghcr.io/a/b/c")).toBe(want);
  });
});

/** Which of the keys is for the reference. */
function findIn(keys: readonly string[], ref: string): string | null {
  const parsed = parseReference(ref, isPlainHttp);
  if (parsed.kind === "error") throw new Error(parsed.message);
  const { registry, repository } = parsed.value;
  const entries = keys.flatMap((name) => {
    const key = parseDockerConfigKey(name, isPlainHttp);
    return key === null ? [] : [{ key, name }];
  });
  return mostSpecific(entries, registry, repository)?.name ?? null;
}
