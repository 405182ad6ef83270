import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseHttpUrl } from "../../../src/loader/http-url.js";

describe("loader/http-url", () => {
  describe("reads", () => {
    it.each([
      { text: "https://h.test/a.wasm", want: "https://h.test/a.wasm" },
      { text: "HTTPS://H.Test/A.wasm", want: "https://h.test/A.wasm" },
      { text: "https://h.test", want: "https://h.test/" },
      { text: "https://:@h.test/a", want: "https://h.test/a" },
      { text: "https://h.test/a/", want: "https://h.test/a/" },
      // one host, one spelling (C48)
      { text: "https://h.test:443/a", want: "https://h.test/a" },
      { text: "https://h.test.:0443/a", want: "https://h.test/a" },
      { text: "https://h.test./a", want: "https://h.test/a" },
      { text: "https://h.test:8443/a", want: "https://h.test:8443/a" },
      { text: "https://h.test:80/a", want: "https://h.test:80/a" },
      {
        text: "https://my_bucket.h.test/a",
        want: "https://my_bucket.h.test/a",
      },
      { text: "https://bücher.test/a", want: "https://xn--bcher-kva.test/a" },
      { text: "https://0x7f.1/a", want: "https://127.0.0.1/a" },
      { text: "https://2130706433/a", want: "https://127.0.0.1/a" },
      { text: "https://[0:0::1]/a", want: "https://[::1]/a" },
      // a path that leads elsewhere is fenced as what is fetched (W9)
      { text: "https://h.test/ok/../secret", want: "https://h.test/secret" },
      {
        text: "https://h.test/ok/%2e%2e/secret",
        want: "https://h.test/secret",
      },
      { text: "https://h.test/ok/.%2E/secret", want: "https://h.test/secret" },
      { text: "https://h.test/ok/%2e/x", want: "https://h.test/ok/x" },
      { text: "https://h.test/../../x", want: "https://h.test/x" },
      { text: "https://h.test/ok/..", want: "https://h.test/" },
      {
        text: "https://h.test/ok/%252e%252e/x",
        want: "https://h.test/ok/%252e%252e/x",
      },
      // one path, one spelling
      { text: "https://h.test/s%65cure/x", want: "https://h.test/secure/x" },
      { text: "https://h.test/%7Eme", want: "https://h.test/~me" },
      { text: "https://h.test/a%20b", want: "https://h.test/a%20b" },
      { text: "https://h.test/%c3%a9", want: "https://h.test/%C3%A9" },
      { text: "https://h.test/é", want: "https://h.test/%C3%A9" },
      { text: "https://h.test/a|b", want: "https://h.test/a%7Cb" },
      { text: "https://h.test/a%7cb", want: "https://h.test/a%7Cb" },
      {
        text: "https://h.test/%40a%3Ab%24%26%2C%3B%3D!'()*",
        want: "https://h.test/@a:b$&,;=!'()*",
      },
      {
        text: "https://h.test/@a:b$&,;=!'()*",
        want: "https://h.test/@a:b$&,;=!'()*",
      },
      {
        text: "https://h.test/a;b/..c;/...;/.d;",
        want: "https://h.test/a;b/..c;/...;/.d;",
      },
      { text: "https://h.test/1.0%2Bb", want: "https://h.test/1.0%2Bb" },
      { text: "https://h.test/1.0+b", want: "https://h.test/1.0%2Bb" },
      // http on this machine only (C33)
      { text: "http://localhost:8080/a", want: "http://localhost:8080/a" },
      { text: "http://LOCALHOST.:80/a", want: "http://localhost/a" },
      { text: "http://127.0.0.1/a", want: "http://127.0.0.1/a" },
      { text: "http://127.255.3.4:1/a", want: "http://127.255.3.4:1/a" },
      { text: "http://127.1/a", want: "http://127.0.0.1/a" },
      { text: "http://[::1]:8080/a", want: "http://[::1]:8080/a" },
    ])("$text", ({ text, want }) => {
      expect(parseHttpUrl(text)).toEqual({
        kind: "ok",
        value: { href: want, location: want },
      });
    });

    it.each([
      {
        text: "https://h.test/a?sig=hunter2",
        href: "https://h.test/a?sig=hunter2",
      },
      { text: "https://h.test?x=/../y", href: "https://h.test/?x=/../y" },
      { text: "https://h.test/a?", href: "https://h.test/a" },
      { text: "https://h.test/a?b=é", href: "https://h.test/a?b=%C3%A9" },
    ])("a query, which is fetched and not shown: $text", ({ text, href }) => {
      expect(parseHttpUrl(text)).toEqual({
        kind: "ok",
        value: { href, location: href.replace(/\?.*/, "") },
      });
    });
  });

  describe("refuses", () => {
    const EXAMPLE = "expected a URL such as https://example.com/fn.wasm";
    const USER = "a URL with a user name or password is refused";
    const FRAGMENT = "a URL with a fragment (#) is refused";
    const PARSE =
      "the URL does not parse, expected one such as https://example.com/fn.wasm";
    const ENCODED =
      "the path has an encoded slash, backslash or control character, which servers read in different ways";
    const PARAMETERS =
      'the path has a segment "", "." or ".." with parameters after it (";"), which servers read in different ways';
    const clear = (host: string) =>
      `http is for localhost, 127.0.0.0/8, [::1] and the hosts in --insecure-registry only, expected https for host "${host}"`;

    it.each([
      { text: "", want: EXAMPLE },
      { text: "h.test/a.wasm", want: EXAMPLE },
      { text: "//h.test/a.wasm", want: EXAMPLE },
      { text: "https:h.test/a.wasm", want: EXAMPLE },
      { text: "https:/h.test/a.wasm", want: EXAMPLE },
      { text: "https:\\\\h.test/a.wasm", want: EXAMPLE },
      { text: " https://h.test/a.wasm", want: EXAMPLE },
      { text: "user:hunter2@h.test/a.wasm", want: EXAMPLE },
      { text: "oci://h.test/a", want: 'expected a URL with https, got "oci"' },
      { text: "file:///a.wasm", want: 'expected a URL with https, got "file"' },
      { text: "ftp://h.test/a", want: 'expected a URL with https, got "ftp"' },
      {
        text: "httpss://h.test/",
        want: 'expected a URL with https, got "httpss"',
      },
      { text: "https://", want: PARSE },
      { text: "https://?x", want: PARSE },
      { text: "https://hunter2:x@[bad/a", want: PARSE },
      { text: "https://h.test:65536/a", want: PARSE },
      { text: "https://h%2ftest/a", want: PARSE },
      { text: "https://1.2.3.4.5/a", want: PARSE },
      { text: "https://h.test:0/a", want: "port 0 is refused" },
      // user info
      { text: "https://user:hunter2@h.test/a", want: USER },
      { text: "https://user@h.test/a", want: USER },
      { text: "https://:hunter2@h.test/a", want: USER },
      { text: "http://localhost:hunter2@evil.test/a", want: USER },
      // fragment
      { text: "https://h.test/a#b", want: FRAGMENT },
      { text: "https://h.test/a#", want: FRAGMENT },
      { text: "https://h.test#.evil.test/a", want: FRAGMENT },
      { text: "https://h.test/a?hunter2#b", want: FRAGMENT },
      // what a URL parser drops or rewrites (W9)
      {
        text: "https://h.test/ok/..\\secret",
        want: 'a URL has no "\\\\" in it',
      },
      {
        text: "https://h.test\\@evil.test/",
        want: 'a URL has no "\\\\" in it',
      },
      {
        text: "https://h.test/ok/.\t./x",
        want: 'a URL has no "\\u0009" in it',
      },
      { text: "https://h.test/a\n", want: 'a URL has no "\\u000a" in it' },
      { text: "https://h.test/a b", want: 'a URL has no " " in it' },
      { text: "https://h.test/a\0", want: 'a URL has no "\\u0000" in it' },
      { text: "https://h.test/\u202ea", want: 'a URL has no "\\u202e" in it' },
      { text: "https://h.t\u00adest/a", want: 'a URL has no "\\u00ad" in it' },
      // what servers read in more than one way
      { text: "https://h.test/ok/..%2fsecret", want: ENCODED },
      { text: "https://h.test/ok/..%2Fsecret", want: ENCODED },
      { text: "https://h.test/ok/..%5csecret", want: ENCODED },
      { text: "https://h.test/a.wasm%00.txt", want: ENCODED },
      { text: "https://h.test/a%0d%0ab", want: ENCODED },
      { text: "https://h.test/a%7f", want: ENCODED },
      { text: "https://h.test/a%C2%85", want: ENCODED },
      {
        text: "https://h.test//secure/x",
        want: 'the path has an empty segment ("//")',
      },
      {
        text: "https://h.test/a//x",
        want: 'the path has an empty segment ("//")',
      },
      {
        text: "https://h.test/a//",
        want: 'the path has an empty segment ("//")',
      },
      ...["..;/", "..;", "..;x=y/", "..%3b/", "..%3Bx", "%2e%2e;x/"].map(
        (segment) => ({
          text: `https://h.test/ok/${segment}secret`,
          want: PARAMETERS,
        }),
      ),
      { text: "https://h.test/ok/.;/x", want: PARAMETERS },
      { text: "https://h.test/ok/.%2e%3b", want: PARAMETERS },
      { text: "https://h.test/;/secure/x", want: PARAMETERS },
      { text: "https://h.test/%3bx/secure/x", want: PARAMETERS },
      {
        text: "https://h.test/a%",
        want: "the path has a percent sign that encodes no UTF-8",
      },
      {
        text: "https://h.test/a%zz",
        want: "the path has a percent sign that encodes no UTF-8",
      },
      {
        text: "https://h.test/%ff",
        want: "the path has a percent sign that encodes no UTF-8",
      },
      {
        text: "https://h.test/%c0%ae%c0%ae/x",
        want: "the path has a percent sign that encodes no UTF-8",
      },
      // hosts
      { text: "https://h.test../a", want: 'host "h.test.." is no host name' },
      { text: "https://a..b/a", want: 'host "a..b" is no host name' },
      { text: "https://a!b.test/a", want: 'host "a!b.test" is no host name' },
      { text: "https://-a.test/a", want: 'host "-a.test" is no host name' },
      // in the clear (C33)
      { text: "http://h.test/a", want: clear("h.test") },
      {
        text: "http://localhost.evil.test/x",
        want: clear("localhost.evil.test"),
      },
      {
        text: "http://127.0.0.1.evil.test/x",
        want: clear("127.0.0.1.evil.test"),
      },
      { text: "http://x.localhost/x", want: clear("x.localhost") },
      { text: "http://128.0.0.1/x", want: clear("128.0.0.1") },
      { text: "http://0.0.0.0/x", want: clear("0.0.0.0") },
      { text: "http://[::]/x", want: clear("[::]") },
      {
        text: "http://[::ffff:127.0.0.1]/x",
        want: 'host "[::ffff:7f00:1]" is an IPv6 address with an IPv4 address inside, write the IPv4 address',
      },
      {
        text: "https://[64:ff9b::10.0.0.1]/x",
        want: 'host "[64:ff9b::a00:1]" is an IPv6 address with an IPv4 address inside, write the IPv4 address',
      },
      // size
      {
        text: `https://h.test/${"a".repeat(4082)}`,
        want: "the URL is 4097 characters long, expected at most 4096",
      },
      {
        text: `https://h.test/${"é".repeat(700)}`,
        want: "the URL is 4215 characters long, expected at most 4096",
      },
    ])("$text", ({ text, want }) => {
      const result = parseHttpUrl(text);

      expect(result).toEqual({ kind: "error", message: want });
      expect(JSON.stringify(result)).not.toMatch(/user:|hunter2|\?/);
    });
  });

  it("reads what it has written as the same again", () => {
    const segment = fc.oneof(
      fc.webSegment(),
      fc.constantFrom(
        "..",
        "%2e%2e",
        "a%2Fb",
        "s%65c",
        "..;",
        "+",
        "%2B",
        "[|]",
        "é",
      ),
    );
    const text = fc
      .tuple(
        fc.constantFrom("https://", "http://"),
        fc.oneof(
          fc.domain(),
          fc.ipV4Extended(),
          fc.ipV6().map((address) => `[${address}]`),
          fc.constantFrom("localhost", "H.test.", "127.1"),
        ),
        fc.constantFrom("", ":80", ":443", ":8443"),
        fc.array(segment, { maxLength: 4 }),
        fc.option(fc.webQueryParameters()),
      )
      .map(
        ([scheme, host, port, path, query]) =>
          `${scheme}${host}${port}/${path.join("/")}${query === null ? "" : `?${query}`}`,
      );

    fc.assert(
      fc.property(text, (any) => {
        const once = parseHttpUrl(any);
        fc.pre(once.kind === "ok");
        const { href, location } = once.value;

        expect(parseHttpUrl(href)).toEqual(once);
        expect(parseHttpUrl(location)).toMatchObject({ value: { location } });
        // What is fetched is what the fence saw, to every WHATWG parser.
        expect(new URL(href).href).toBe(href);
        expect(href.replace(/\?.*/, "")).toBe(location);
        expect(new URL(location).hostname).toMatch(/^[^A-Z]*[^A-Z.]$/);
        expect(location).toMatch(/^[^\s?#\\]+$/u);
        expect(location.split("/")).not.toContain("..");
      }),
    );
  });

  it("never throws and stays on one short line, whatever the text", () => {
    const text = fc
      .tuple(
        fc.constantFrom("", "https://", "https://h.test/", "http://h.test:"),
        fc.string({ unit: "binary", maxLength: 200 }),
      )
      .map((parts) => parts.join(""));

    fc.assert(
      fc.property(text, (any) => {
        const result = parseHttpUrl(any);

        if (result.kind === "error")
          expect(result.message).toMatch(/^[^\p{C}]{1,1500}$/u);
      }),
    );
  });
});
