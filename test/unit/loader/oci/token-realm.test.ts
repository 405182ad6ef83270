import { describe, expect, it } from "vitest";
import {
  admitAnonymousRealm,
  admitRealm,
  isRegistryUrl,
} from "../../../../src/loader/oci/token-realm.js";

const INSECURE = ["127.0.0.1:5000", "127.0.0.1", "reg.local:5000", "[::1]"];

describe("loader/oci/token-realm", () => {
  it.each([
    { registry: "ghcr.io", realm: "https://ghcr.io/token" },
    { registry: "ghcr.io", realm: "HTTPS://GHCR.IO:443/token" },
    { registry: "ghcr.io:8443", realm: "https://ghcr.io:8443/token" },
    { registry: "quay.io", realm: "https://quay.io/v2/auth" },
    { registry: "gcr.io", realm: "https://gcr.io/v2/token" },
    {
      registry: "us-docker.pkg.dev",
      realm: "https://us-docker.pkg.dev/v2/token",
    },
    { registry: "index.docker.io", realm: "https://auth.docker.io/token" },
    { registry: "registry.gitlab.com", realm: "https://gitlab.com/jwt/auth" },
    {
      registry: "registry.digitalocean.com",
      realm: "https://api.digitalocean.com/v2/registry/auth",
    },
    { registry: "127.0.0.1:5000", realm: "http://127.0.0.1:5000/token" },
    { registry: "127.0.0.1", realm: "http://127.0.0.1/token" },
    { registry: "127.0.0.1", realm: "http://127.0.0.1:80/token" },
    { registry: "[::1]", realm: "http://[0:0::1]/token" },
    { registry: "reg.local:5000", realm: "http://reg.local:5000/token" },
    { registry: "reg.local:5000", realm: "https://reg.local:5000/token" },
  ])("lets a credential for $registry go to $realm", ({ registry, realm }) => {
    const admitted = admitRealm(realm, registry, isInsecure);

    expect(admitted).toEqual({ kind: "ok", value: new URL(realm) });
  });

  it.each([
    {
      name: "[C01] another port of the same host",
      registry: "127.0.0.1:5000",
      realm: "http://127.0.0.1:5001/t?x=hunter2",
      server: "http://127.0.0.1:5001",
    },
    {
      name: "another name of the same machine",
      registry: "127.0.0.1:5000",
      realm: "http://localhost:5000/t",
      server: "http://localhost:5000",
    },
    {
      name: "443 of a machine whose registry is on port 80",
      registry: "127.0.0.1",
      realm: "https://127.0.0.1/t",
      server: "https://127.0.0.1",
    },
    {
      name: "[C01] another host",
      registry: "ghcr.io",
      realm: "https://evil.example/ghcr.io",
      server: "https://evil.example",
    },
    {
      name: "a host under the registry's",
      registry: "ghcr.io",
      realm: "https://auth.ghcr.io/token",
      server: "https://auth.ghcr.io",
    },
    {
      name: "a host that begins with the registry's name",
      registry: "ghcr.io",
      realm: "https://ghcr.io.evil.example/token",
      server: "https://ghcr.io.evil.example",
    },
    {
      name: "a host before a backslash, which ends it",
      registry: "ghcr.io",
      realm: "https://evil.example\\@ghcr.io/token",
      server: "https://evil.example",
    },
    {
      name: "the registry in the clear",
      registry: "ghcr.io",
      realm: "http://ghcr.io/token",
      server: "http://ghcr.io",
    },
    {
      name: "a token server in the clear",
      registry: "index.docker.io",
      realm: "http://auth.docker.io/token",
      server: "http://auth.docker.io",
    },
    {
      name: "another port of a token server",
      registry: "index.docker.io",
      realm: "https://auth.docker.io:8443/token",
      server: "https://auth.docker.io:8443",
    },
    {
      name: "the token server of another registry",
      registry: "registry.gitlab.com",
      realm: "https://auth.docker.io/token",
      server: "https://auth.docker.io",
    },
    {
      name: "a token server, from another port of its registry's host",
      registry: "registry.gitlab.com:5000",
      realm: "https://gitlab.com/jwt/auth",
      server: "https://gitlab.com",
    },
    {
      name: "a host with a trailing dot",
      registry: "ghcr.io",
      realm: "https://ghcr.io./token",
      server: "https://ghcr.io.",
    },
  ])("keeps a credential from $name", ({ registry, realm, server }) => {
    const admitted = admitRealm(realm, registry, isInsecure);

    expect(admitted).toEqual({
      kind: "error",
      message: `${registry} sends for tokens to ${server}, which is not known to be its token server (--registry-token-server)`,
    });
  });

  it.each([
    { name: "user info", realm: "https://u:hunter2@ghcr.io/token" },
    { name: "a user name", realm: "https://u@ghcr.io/token" },
    { name: "a fragment", realm: "https://ghcr.io/token#pw" },
    { name: "an empty fragment", realm: "https://ghcr.io/token#" },
  ])("refuses a realm with $name, to anybody", ({ realm }) => {
    const admitted = [
      admitRealm(realm, "ghcr.io", isInsecure),
      admitAnonymousRealm(realm, "ghcr.io"),
    ];

    const want = {
      kind: "error",
      message:
        "ghcr.io sends for tokens to https://ghcr.io by a URL with user info or a fragment",
    };
    expect(admitted).toEqual([want, want]);
  });

  it.each([
    "",
    "/token",
    "ghcr.io/token",
    "ftp://ghcr.io/",
    "file:///etc",
    "x",
  ])("refuses the realm %j, to anybody", (realm) => {
    const admitted = [
      admitRealm(realm, "ghcr.io", isInsecure),
      admitAnonymousRealm(realm, "ghcr.io"),
    ];

    const want = {
      kind: "error",
      message:
        "ghcr.io sends for tokens to a realm that is no http or https URL",
    };
    expect(admitted).toEqual([want, want]);
  });

  it("lets anybody ask another host without a credential, over https", () => {
    const realm = "https://tokens.example:8443/t?x=1";

    const admitted = admitAnonymousRealm(realm, "ghcr.io");

    expect(admitted).toEqual({ kind: "ok", value: new URL(realm) });
  });

  it.each([
    { server: "http://tokens.example" },
    { server: "http://127.0.0.1:5001" },
    { server: "https://127.0.0.1:5001" },
    { server: "https://localhost" },
    { server: "https://169.254.169.254" },
    { server: "https://10.0.0.1" },
    { server: "https://[fd00::1]" },
  ])("lets nobody ask $server", ({ server }) => {
    const admitted = admitAnonymousRealm(`${server}/t`, "ghcr.io");

    expect(admitted).toEqual({
      kind: "error",
      message: `ghcr.io sends for tokens to ${server}, which is not known to be its token server (--registry-token-server)`,
    });
  });

  it.each([
    { url: "https://ghcr.io/v2/", registry: "ghcr.io", want: true },
    { url: "https://ghcr.io:444/v2/", registry: "ghcr.io", want: false },
    { url: "http://ghcr.io/v2/", registry: "ghcr.io", want: false },
    {
      url: "https://index.docker.io/v2/",
      registry: "index.docker.io",
      want: true,
    },
    {
      url: "https://auth.docker.io/v2/",
      registry: "index.docker.io",
      want: false,
    },
    { url: "http://127.0.0.1:5000/", registry: "127.0.0.1:5000", want: true },
    { url: "http://127.0.0.1:5001/", registry: "127.0.0.1:5000", want: false },
    { url: "https://builder:443/", registry: "builder:443", want: true },
    { url: "http://127.0.0.1/", registry: "127.0.0.1", want: true },
    { url: "https://127.0.0.1/", registry: "127.0.0.1", want: false },
    { url: "https://localhost/", registry: "localhost", want: true },
  ])("$url is on $registry: $want", ({ url, registry, want }) => {
    expect(isRegistryUrl(new URL(url), registry, isInsecure)).toBe(want);
  });
});

function isInsecure(authority: string): boolean {
  return INSECURE.includes(authority);
}
