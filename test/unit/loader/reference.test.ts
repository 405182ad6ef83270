import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseReference } from "../../../src/loader/reference.js";
import { createIsPlainHttp } from "../../../src/loader/registry-scheme.js";

const HEX = "0123456789abcdef".repeat(4);
const DIGEST = `sha256:${HEX}`;

describe("loader/reference", () => {
  describe("reads", () => {
    it.each([
      // Docker Hub (C31)
      { text: "ubuntu", want: "index.docker.io/library/ubuntu" },
      { text: "acme/x", want: "index.docker.io/acme/x" },
      { text: "acme/x/y", want: "index.docker.io/acme/x/y" },
      { text: "docker.io/x", want: "index.docker.io/library/x" },
      { text: "docker.io/acme/x", want: "index.docker.io/acme/x" },
      { text: "index.docker.io/x", want: "index.docker.io/library/x" },
      { text: "index.docker.io/library/x", want: "index.docker.io/library/x" },
      { text: "registry-1.docker.io/acme/x", want: "index.docker.io/acme/x" },
      { text: "registry.hub.docker.com/x", want: "index.docker.io/library/x" },
      { text: "hub.docker.com/acme/x", want: "hub.docker.com/acme/x" },
      { text: "DOCKER.io.:443/acme/x", want: "index.docker.io/acme/x" },
      { text: "docker.io:5000/x", want: "docker.io:5000/x" },
      { text: "quay.docker.io/x", want: "quay.docker.io/x" },
      { text: "ghcr/x", want: "index.docker.io/ghcr/x" },
      { text: "ghcr.io", want: "index.docker.io/library/ghcr.io" },
      // what counts as a registry (C31)
      { text: "a.b/c", want: "a.b/c" },
      { text: "localhost/a", want: "localhost/a" },
      { text: "LocalHost/a", want: "localhost/a" },
      { text: "localhost:5000/a", want: "localhost:5000/a" },
      { text: "reg:5000/a", want: "reg:5000/a" },
      { text: "my_reg:5000/a", want: "my_reg:5000/a" },
      { text: "127.0.0.1:5000/a", want: "127.0.0.1:5000/a" },
      { text: "[::1]:5000/a", want: "[::1]:5000/a" },
      { text: "[::1]/a", want: "[::1]/a" },
      { text: "[0:0:0:0:0:0:0:1]:5000/a", want: "[::1]:5000/a" },
      { text: "[2001:DB8::A]/a", want: "[2001:db8::a]/a" },
      // one place, one spelling (C48)
      { text: "GHCR.IO/secure/x", want: "ghcr.io/secure/x" },
      { text: "ghcr.io:443/secure/x", want: "ghcr.io/secure/x" },
      { text: "ghcr.io./secure/x", want: "ghcr.io/secure/x" },
      { text: "ghcr.io.:443/secure/x", want: "ghcr.io/secure/x" },
      { text: "ghcr.io:80/secure/x", want: "ghcr.io:80/secure/x" },
      { text: "ghcr.io:65535/secure/x", want: "ghcr.io:65535/secure/x" },
      { text: "xn--bcher-kva.example/x", want: "xn--bcher-kva.example/x" },
      // on loopback the default port is that of http
      { text: "localhost:80/a", want: "localhost/a" },
      { text: "127.0.0.1:80/a", want: "127.0.0.1/a" },
      { text: "[::1]:80/a", want: "[::1]/a" },
      { text: "localhost:443/a", want: "localhost:443/a" },
      { text: "localhost./a", want: "localhost/a" },
      // not loopback, whatever it looks like (C33)
      { text: "localhost.evil.test/x", want: "localhost.evil.test/x" },
      { text: "127.0.0.1.evil.test/x", want: "127.0.0.1.evil.test/x" },
      { text: "127.0.0.1.evil.test:80/x", want: "127.0.0.1.evil.test:80/x" },
      { text: "127.0.0.1.evil.test:443/x", want: "127.0.0.1.evil.test/x" },
      { text: "localhost.evil.test:80/x", want: "localhost.evil.test:80/x" },
      { text: "localhost.evil.test:443/x", want: "localhost.evil.test/x" },
      { text: "localhost5000.evil.test/x", want: "localhost5000.evil.test/x" },
      { text: "[2001:db8::1]:80/x", want: "[2001:db8::1]:80/x" },
      { text: "128.0.0.1:80/x", want: "128.0.0.1:80/x" },
      { text: "127.8.9.10:80/x", want: "127.8.9.10/x" },
      // without its port the name would be a repository's
      { text: "reg:443/a", want: "reg:443/a" },
      { text: "reg./a", want: "reg:443/a" },
      // repository grammar
      { text: "a.b/c-d_e__f.g---h/0", want: "a.b/c-d_e__f.g---h/0" },
      {
        text: `a.b/${"c".repeat(255)}`,
        want: `a.b/${"c".repeat(255)}`,
      },
    ])("the place of $text", ({ text, want }) => {
      const slash = want.indexOf("/");
      const place = {
        registry: want.slice(0, slash),
        repository: want.slice(slash + 1),
        location: want,
      };

      expect(parseReference(`${text}@${DIGEST}`)).toEqual({
        kind: "ok",
        value: {
          ...place,
          tag: null,
          digest: DIGEST,
          text: `${want}@${DIGEST}`,
        },
      });
      expect(parseReference(`${text}:v1`)).toMatchObject({
        value: { ...place, tag: "v1", digest: null, text: `${want}:v1` },
      });
    });

    it.each([
      { text: `a.b/c:v1@${DIGEST}`, tag: "v1", digest: DIGEST },
      { text: "a.b/c:V_1.0-rc.1", tag: "V_1.0-rc.1", digest: null },
      { text: "a.b/c:_", tag: "_", digest: null },
      { text: `a.b/c:${"t".repeat(128)}`, tag: "t".repeat(128), digest: null },
      { text: "localhost:5000/c:5000", tag: "5000", digest: null },
      { text: "c:5000", tag: "5000", digest: null },
      { text: "a.b:5000", tag: "5000", digest: null },
      { text: "a.b/c", tag: null, digest: null },
    ])("the tag and digest of $text", ({ text, tag, digest }) => {
      expect(parseReference(text)).toMatchObject({ value: { tag, digest } });
    });
  });

  describe("refuses", () => {
    const FORM = ", expected registry/repository[:tag]@sha256:<64 hex digits>";
    const USER = `a reference has no user name or password, and one "@" at most${FORM}`;
    const DIGITS = "expected sha256: and 64 lower-case hex digits";
    const component = (name: string) =>
      `repository component "${name}": expected lower-case letters and digits with ".", "_", "__" or "-" between them`;
    const EMPTY = "the repository, or a component of it, is empty";
    const tag = (name: string) =>
      `tag "${name}": expected a letter, a digit or "_", then up to 127 of these, "." and "-"`;

    it.each([
      // junk in the registry (C32)
      { text: `user:hunter2@ghcr.io/x@${DIGEST}`, want: USER },
      { text: "user:hunter2@ghcr.io/x:v1", want: USER },
      { text: `user@ghcr.io@x@${DIGEST}`, want: USER },
      { text: `@ghcr.io/x@${DIGEST}`, want: USER },
      {
        text: `ghcr.io#.evil.io/x@${DIGEST}`,
        want: `a reference has no "#" in it${FORM}`,
      },
      {
        text: `ghcr.io?y/x@${DIGEST}`,
        want: `a reference has no "?" in it${FORM}`,
      },
      {
        text: `ghcr.io%2fx/y@${DIGEST}`,
        want: `a reference has no "%" in it${FORM}`,
      },
      {
        text: "ghcr.io\\x/y:v1",
        want: `a reference has no "\\\\" in it${FORM}`,
      },
      { text: " ghcr.io/x:v1", want: `a reference has no " " in it${FORM}` },
      {
        text: `ghcr.io/x@${DIGEST}\n`,
        want: `a reference has no "\\u000a" in it${FORM}`,
      },
      {
        text: "ghcr.io/x\0:v1",
        want: `a reference has no "\\u0000" in it${FORM}`,
      },
      { text: "ghçr.io/x:v1", want: `a reference has no "ç" in it${FORM}` },
      { text: "ghcr。io/x:v1", want: `a reference has no "。" in it${FORM}` },
      {
        text: "https://ghcr.io/x:v1",
        want: `a reference has no "https://"${FORM}`,
      },
      {
        text: "OCI://user:hunter2@ghcr.io/x:v1",
        want: `a reference has no "OCI://"${FORM}`,
      },
      {
        text: `${"a/".repeat(512)}a`,
        want: `the reference is 1025 characters long, at most 1024 are allowed${FORM}`,
      },
      // registry
      {
        text: "0x7f.1/x:v1",
        want: 'registry host "0x7f.1" is another spelling of 127.0.0.1, write that',
      },
      {
        text: "2130706433:5000/x:v1",
        want: 'registry host "2130706433" is another spelling of 127.0.0.1, write that',
      },
      {
        text: "127.1:5000/x:v1",
        want: 'registry host "127.1" is another spelling of 127.0.0.1, write that',
      },
      {
        text: "0177.0.0.1/x:v1",
        want: 'registry host "0177.0.0.1" is another spelling of 127.0.0.1, write that',
      },
      {
        text: "127.0.0.01/x:v1",
        want: 'registry host "127.0.0.01" is another spelling of 127.0.0.1, write that',
      },
      ...[
        // IPv4-mapped, -compatible and -translated, NAT64, 6to4, Teredo
        ...["::ffff:127.0.0.1", "::FFFF:7f00:1", "0:0:0:0:0:ffff:a00:1"],
        ...["::127.0.0.1", "::2", "::ffff:0:7f00:1", "64:ff9b::7f00:1"],
        ...["64:ff9b:1::7f00:1", "2002:7f00:1::1", "2001:0:a00:1::1"],
      ].map((address) => ({
        text: `[${address}]:5000/x:v1`,
        want: `registry host "[${address}]" is an IPv6 address with an IPv4 address inside, write the IPv4 address`,
      })),
      {
        text: "256.0.0.1/x:v1",
        want: 'registry host "256.0.0.1" is no host name',
      },
      {
        text: "1.2.3.4.5/x:v1",
        want: 'registry host "1.2.3.4.5" is no host name',
      },
      { text: "../x:v1", want: 'registry host ".." is no host name' },
      { text: "./x:v1", want: 'registry host "." is no host name' },
      {
        text: "ghcr.io../x:v1",
        want: 'registry host "ghcr.io.." is no host name',
      },
      {
        text: ".ghcr.io/x:v1",
        want: 'registry host ".ghcr.io" is no host name',
      },
      { text: "-a.io/x:v1", want: 'registry host "-a.io" is no host name' },
      { text: "a-.io/x:v1", want: 'registry host "a-.io" is no host name' },
      { text: "a+b.io/x:v1", want: 'registry host "a+b.io" is no host name' },
      {
        text: "xn--a.io/x:v1",
        want: 'registry host "xn--a.io" is no host name',
      },
      {
        text: `${"a".repeat(64)}.io/x:v1`,
        want: `registry host "${"a".repeat(64)}.io" is no host name`,
      },
      {
        text: `${"a.".repeat(127)}io/x:v1`,
        want: `registry host "${"a.".repeat(60)}…" is no host name`,
      },
      { text: ":5000/x:v1", want: 'registry host "" is no host name' },
      { text: "::1/x:v1", want: 'registry host "" is no host name' },
      {
        text: "[::1/x:v1",
        want: 'registry "[::1": expected a host and maybe a port',
      },
      {
        text: "[::1].:5/x:v1",
        want: 'registry "[::1].:5": expected a host and maybe a port',
      },
      { text: "[]:5/x:v1", want: 'registry host "[]" is no host name' },
      { text: "[a.b]/x:v1", want: 'registry host "[a.b]" is no host name' },
      {
        text: "[1::2::3]/x:v1",
        want: 'registry host "[1::2::3]" is no host name',
      },
      { text: "ghcr.io:/x:v1", want: 'registry port "": expected 1 to 65535' },
      {
        text: "ghcr.io:0/x:v1",
        want: 'registry port "0": expected 1 to 65535',
      },
      {
        text: "ghcr.io:0443/x:v1",
        want: 'registry port "0443": expected 1 to 65535',
      },
      {
        text: "ghcr.io:65536/x:v1",
        want: 'registry port "65536": expected 1 to 65535',
      },
      {
        text: "ghcr.io:5000:1/x:v1",
        want: 'registry port "5000:1": expected 1 to 65535',
      },
      {
        text: "ghcr.io:http/x:v1",
        want: 'registry port "http": expected 1 to 65535',
      },
      // repository
      { text: "", want: EMPTY },
      { text: `@${DIGEST}`, want: EMPTY },
      { text: "/x:v1", want: EMPTY },
      { text: "ghcr.io/:v1", want: EMPTY },
      { text: "ghcr.io//x:v1", want: EMPTY },
      { text: "ghcr.io/x/:v1", want: EMPTY },
      { text: `a.b/C@${DIGEST}`, want: component("C") },
      { text: "GHCR/x:v1", want: component("GHCR") },
      { text: "a.b/../c:v1", want: component("..") },
      { text: "a.b/.c:v1", want: component(".c") },
      { text: "a.b/c.:v1", want: component("c.") },
      { text: "a.b/c..d:v1", want: component("c..d") },
      { text: "a.b/c___d:v1", want: component("c___d") },
      { text: "a.b/c._d:v1", want: component("c._d") },
      { text: "a.b/-c:v1", want: component("-c") },
      { text: "a.b/c+d:v1", want: component("c+d") },
      { text: "a.b/[c]:v1", want: component("[c]") },
      {
        text: `a.b/${"c".repeat(256)}:v1`,
        want: "the repository is 256 characters long, expected at most 255",
      },
      {
        text: `${"c".repeat(248)}:v1`,
        want: "the repository is 256 characters long, expected at most 255",
      },
      // tag
      { text: "a.b/c:", want: tag("") },
      { text: `a.b/c:@${DIGEST}`, want: tag("") },
      { text: "a.b/c:.v1", want: tag(".v1") },
      { text: "a.b/c:-v1", want: tag("-v1") },
      { text: "a.b/c:v1+b", want: tag("v1+b") },
      { text: "a.b/c:v1/d", want: tag("v1/d") },
      { text: "a.b/c:v1:v2", want: tag("v1:v2") },
      { text: `a.b/c:${"t".repeat(129)}`, want: tag(`${"t".repeat(120)}…`) },
      // digest (C31)
      {
        text: `a.b/c@sha256:${HEX.slice(1)}`,
        want: `${DIGITS}, got "sha256:${HEX.slice(1)}"`,
      },
      {
        text: `a.b/c@sha256:${HEX.toUpperCase()}`,
        want: `${DIGITS}, got "sha256:${HEX.toUpperCase()}"`,
      },
      { text: `a.b/c@SHA256:${HEX}`, want: `${DIGITS}, got "SHA256:${HEX}"` },
      { text: "a.b/c@", want: `${DIGITS}, got ""` },
      { text: "a.b/c@v1", want: `${DIGITS}, got "v1"` },
      {
        text: `a.b/c@sha512:${HEX}${HEX}`,
        want: `digest algorithm "sha512" is not supported, ${DIGITS}`,
      },
      {
        text: `a.b/c@sha256+b64u:${HEX}`,
        want: `digest algorithm "sha256+b64u" is not supported, ${DIGITS}`,
      },
    ])("$text", ({ text, want }) => {
      expect(parseReference(text)).toEqual({ kind: "error", message: want });
    });
  });

  describe("drops the port that is the default of how a registry is spoken to", () => {
    const named = ["reg.test"];
    const at443 = ["reg.test:443"];
    const at80 = ["reg.test:80"];
    const at5000 = ["reg.test:5000"];

    it.each<{
      text: string;
      want: string;
      /** Whether what is wanted is spoken to in the clear. */
      isPlain: boolean;
      insecureHosts?: readonly string[];
      cas?: readonly string[];
    }>([
      // an insecure host, on every port
      {
        insecureHosts: named,
        text: "reg.test",
        want: "reg.test",
        isPlain: true,
      },
      {
        insecureHosts: named,
        text: "REG.test.:80",
        want: "reg.test",
        isPlain: true,
      },
      {
        insecureHosts: named,
        text: "reg.test:443",
        want: "reg.test:443",
        isPlain: true,
      },
      {
        insecureHosts: named,
        text: "reg.test:5000",
        want: "reg.test:5000",
        isPlain: true,
      },
      {
        insecureHosts: named,
        text: "x.reg.test:443",
        want: "x.reg.test",
        isPlain: false,
      },
      {
        insecureHosts: named,
        text: "x.reg.test:80",
        want: "x.reg.test:80",
        isPlain: false,
      },
      // port 443 alone, which is where https would have gone
      {
        insecureHosts: at443,
        text: "reg.test",
        want: "reg.test:443",
        isPlain: true,
      },
      {
        insecureHosts: at443,
        text: "reg.test:443",
        want: "reg.test:443",
        isPlain: true,
      },
      {
        insecureHosts: at443,
        text: "reg.test:80",
        want: "reg.test:80",
        isPlain: false,
      },
      // port 80 alone
      {
        insecureHosts: at80,
        text: "reg.test",
        want: "reg.test",
        isPlain: true,
      },
      {
        insecureHosts: at80,
        text: "reg.test:80",
        want: "reg.test",
        isPlain: true,
      },
      {
        insecureHosts: at80,
        text: "reg.test:443",
        want: "reg.test:443",
        isPlain: false,
      },
      // another port alone
      {
        insecureHosts: at5000,
        text: "reg.test",
        want: "reg.test",
        isPlain: false,
      },
      {
        insecureHosts: at5000,
        text: "reg.test:443",
        want: "reg.test",
        isPlain: false,
      },
      {
        insecureHosts: at5000,
        text: "reg.test:80",
        want: "reg.test:80",
        isPlain: false,
      },
      {
        insecureHosts: at5000,
        text: "reg.test:5000",
        want: "reg.test:5000",
        isPlain: true,
      },
      {
        insecureHosts: at5000,
        text: "reg.test:50000",
        want: "reg.test:50000",
        isPlain: false,
      },
      // a CA means TLS, on loopback and for an insecure host, too
      {
        cas: ["localhost"],
        text: "localhost",
        want: "localhost",
        isPlain: false,
      },
      {
        cas: ["localhost"],
        text: "localhost:443",
        want: "localhost",
        isPlain: false,
      },
      {
        cas: ["localhost"],
        text: "localhost:80",
        want: "localhost:80",
        isPlain: false,
      },
      {
        cas: ["localhost"],
        text: "localhost:5000",
        want: "localhost:5000",
        isPlain: false,
      },
      {
        cas: ["localhost"],
        text: "127.0.0.1:80",
        want: "127.0.0.1",
        isPlain: true,
      },
      {
        cas: ["localhost:5000"],
        text: "localhost:5000",
        want: "localhost:5000",
        isPlain: false,
      },
      {
        cas: ["localhost:5000"],
        text: "localhost:80",
        want: "localhost",
        isPlain: true,
      },
      {
        cas: ["localhost:5000"],
        text: "localhost:443",
        want: "localhost:443",
        isPlain: true,
      },
      {
        cas: ["localhost:80"],
        text: "localhost:80",
        want: "localhost:80",
        isPlain: false,
      },
      {
        cas: ["localhost:443"],
        text: "localhost:443",
        want: "localhost:443",
        isPlain: false,
      },
      { cas: ["[::1]"], text: "[::1]:443", want: "[::1]", isPlain: false },
      {
        insecureHosts: named,
        cas: named,
        text: "reg.test:443",
        want: "reg.test",
        isPlain: false,
      },
      {
        insecureHosts: named,
        cas: named,
        text: "reg.test:80",
        want: "reg.test:80",
        isPlain: false,
      },
    ])(
      "$text with insecure $insecureHosts and CAs for $cas",
      ({ text, want, isPlain, insecureHosts = [], cas = [] }) => {
        const isPlainHttp = createIsPlainHttp({
          insecureHosts,
          registryCas: new Map(cas.map((host) => [host, "PEM"])),
        });

        const result = parseReference(`${text}/x:v1`, isPlainHttp);

        expect(result).toMatchObject({
          value: { registry: want, location: `${want}/x` },
        });
        expect(isPlainHttp(want)).toBe(isPlain);
        // It is read as the same again.
        expect(parseReference(`${want}/x:v1`, isPlainHttp)).toEqual(result);
      },
    );
  });

  it("reads what it has written as the same again", () => {
    const host = fc.oneof(
      fc.domain(),
      fc.ipV4(),
      fc.ipV6().map((address) => `[${address}]`),
      fc.constantFrom("reg", "reg.", "localhost", "docker.io", "A.b.", "127.1"),
    );
    const text = fc
      .tuple(
        fc.option(host),
        fc.constantFrom("", ":80", ":443", ":5000"),
        fc.array(fc.stringMatching(/^[a-z0-9]+([._-][a-z0-9]+)?$/), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.constantFrom("", ":v1", `@${DIGEST}`, `:V.1@${DIGEST}`),
      )
      .map(([registry, port, path, rest]) =>
        [
          ...(registry === null ? [] : [`${registry}${port}`]),
          `${path.join("/")}${rest}`,
        ].join("/"),
      );
    const read = (any: string) => {
      const result = parseReference(any);
      return result.kind === "ok" ? result.value : undefined;
    };

    fc.assert(
      fc.property(text, (any) => {
        const once = read(any);
        fc.pre(once !== undefined);

        expect(read(once.text)).toEqual(once);
        expect(read(once.location)).toEqual({
          ...once,
          tag: null,
          digest: null,
          text: once.location,
        });
        expect(once.location).toMatch(/^[^A-Z@\s%?#\\]+$/u);
        expect(once.location).not.toContain("..");
        // What is dialled is what the fence saw.
        expect(new URL(`https://${once.location}`).hostname).toBe(
          once.registry.replace(/:[0-9]+$/, ""),
        );
      }),
    );
  });

  it("never throws and stays on one short line, whatever the text", () => {
    const text = fc
      .tuple(
        fc.constantFrom("", "ghcr.io/", "ghcr.io:", "ghcr.io/x:", "ghcr.io/x@"),
        fc.string({ unit: "binary", maxLength: 200 }),
      )
      .map((parts) => parts.join(""));

    fc.assert(
      fc.property(text, (any) => {
        const result = parseReference(any);

        if (result.kind === "error")
          expect(result.message).toMatch(/^[^\p{C}]{1,1500}$/u);
      }),
    );
  });
});
