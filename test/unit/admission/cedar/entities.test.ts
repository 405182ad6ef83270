import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  hostAncestors,
  maxLevels,
  repositoryAncestors,
} from "../../../../src/admission/cedar/entities.js";

const segment = fc.stringMatching(/^[a-z0-9._-]{1,8}$/);
const label = fc.stringMatching(/^[a-z][a-z0-9-]{0,6}$/);

describe("admission/cedar/entities", () => {
  describe("repositoryAncestors", () => {
    it.each([
      {
        name: "an OCI repository",
        location: "ghcr.io/example/greeter",
        want: [
          "ghcr.io",
          "ghcr.io/",
          "ghcr.io/example",
          "ghcr.io/example/",
          "ghcr.io/example/greeter/",
        ],
      },
      {
        name: "a registry with a port",
        location: "localhost:5000/a",
        want: ["localhost:5000", "localhost:5000/", "localhost:5000/a/"],
      },
      {
        name: "a URL, whose scheme is no prefix",
        location: "https://example.com/a/fn.wasm",
        want: [
          "https://example.com",
          "https://example.com/",
          "https://example.com/a",
          "https://example.com/a/",
          "https://example.com/a/fn.wasm/",
        ],
      },
      {
        name: "a URL with a port and an empty segment",
        location: "https://example.com:8443//a",
        want: [
          "https://example.com:8443",
          "https://example.com:8443/",
          "https://example.com:8443//",
          "https://example.com:8443//a/",
        ],
      },
      {
        name: "a URL that ends in a slash",
        location: "https://example.com/a/",
        want: [
          "https://example.com",
          "https://example.com/",
          "https://example.com/a",
        ],
      },
      {
        name: "a name without a slash",
        location: "ghcr.io",
        want: ["ghcr.io/"],
      },
    ])("gives the prefixes of $name", ({ location, want }) => {
      expect(repositoryAncestors(location)?.sort()).toEqual(want.sort());
    });

    it("gives those that end at a slash, and no others", () => {
      fc.assert(
        fc.property(
          fc.constantFrom("", "https://", "http://"),
          fc.array(segment, { minLength: 1, maxLength: 6 }),
          (scheme, segments) => {
            const location = scheme + segments.join("/");
            const prefixes = Array.from(location, (_, i) =>
              location.slice(0, i + 1),
            ).filter((prefix) => prefix.length > scheme.length);
            const want = prefixes.filter(
              (prefix) =>
                `${location}/`.startsWith(`${prefix}/`) || prefix.endsWith("/"),
            );

            expect(
              new Set([...(repositoryAncestors(location) ?? []), location]),
            ).toEqual(new Set([...want, `${location}/`]));
          },
        ),
      );
    });

    it("gives up on a location with too many segments", () => {
      expect(repositoryAncestors(`a${"/a".repeat(maxLevels)}`)).toHaveLength(
        2 * maxLevels + 1,
      );
      expect(repositoryAncestors(`a${"/a".repeat(maxLevels + 1)}`)).toBeNull();
    });
  });

  describe("hostAncestors", () => {
    it.each([
      {
        name: "a host",
        host: "api.example.com",
        want: ["example.com", "*.example.com", "com", "*.com"],
      },
      {
        name: "a pattern",
        host: "*.example.com",
        want: ["example.com", "com", "*.com"],
      },
      {
        name: "an apex, which is not under its own pattern",
        host: "example.com",
        want: ["com", "*.com"],
      },
      { name: "a single label", host: "localhost", want: [] },
      { name: "an IPv4 address", host: "10.0.0.1", want: [] },
      { name: "an IPv6 address", host: "::ffff:10.0.0.1", want: [] },
      {
        name: "an IPv6 address in brackets",
        host: "[::ffff:1.2.3.4]",
        want: [],
      },
    ])("gives what $name is in", ({ host, want }) => {
      expect(hostAncestors(host)).toEqual(want);
    });

    it("gives whole domains above the host, and no others", () => {
      fc.assert(
        fc.property(
          fc.array(label, { minLength: 1, maxLength: 6 }),
          fc.boolean(),
          (labels, isPattern) => {
            const host = [...(isPattern ? ["*"] : []), ...labels].join(".");
            const ancestors = hostAncestors(host) ?? [];
            const domains = ancestors.filter((a) => !a.startsWith("*."));
            const patterns = ancestors.filter((a) => a.startsWith("*."));

            expect(ancestors).not.toContain(host);
            expect(domains).toHaveLength(host.split(".").length - 1);
            for (const domain of domains)
              expect(host.endsWith(`.${domain}`)).toBe(true);
            for (const pattern of patterns) {
              expect(host.endsWith(pattern.slice(1))).toBe(true);
              expect(host).not.toBe(pattern.slice(2));
            }
          },
        ),
      );
    });

    it("gives up on a host with too many labels", () => {
      expect(hostAncestors(`a${".a".repeat(maxLevels)}`)).not.toBeNull();
      expect(hostAncestors(`a${".a".repeat(maxLevels + 1)}`)).toBeNull();
    });
  });
});
