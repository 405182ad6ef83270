import { describe, expect, it } from "vitest";
import {
  allowsPlainHttp,
  hostOf,
  settingFor,
} from "../../../../src/loader/http/authority.js";

describe("loader/http/authority", () => {
  it.each([
    { url: "https://h.test:443/a", want: "h.test" },
    { url: "https://h.test:8443/a?b", want: "h.test:8443" },
    { url: "http://[::1]:80/", want: "[::1]" },
  ])("calls the server of $url $want", ({ url, want }) => {
    expect(hostOf(new URL(url))).toBe(want);
  });

  it.each([
    // this machine
    { authority: "localhost", insecure: [], want: true },
    { authority: "localhost:5000", insecure: [], want: true },
    { authority: "127.1.2.3:5000", insecure: [], want: true },
    { authority: "[::1]", insecure: [], want: true },
    { authority: "[::1]:5000", insecure: [], want: true },
    { authority: "localhost.h.test", insecure: [], want: false },
    { authority: "127.0.0.1.h.test:80", insecure: [], want: false },
    { authority: "[::2]:5000", insecure: [], want: false },
    // a host of the operator's
    { authority: "h.test", insecure: ["h.test"], want: true },
    { authority: "h.test:5000", insecure: ["h.test"], want: true },
    { authority: "a.h.test", insecure: ["h.test"], want: false },
    { authority: "h.test.a", insecure: ["h.test"], want: false },
    { authority: "h.test", insecure: [], want: false },
    // one port of it
    {
      authority: "h.test:5000",
      insecure: ["a.test", "h.test:5000"],
      want: true,
    },
    { authority: "h.test:5001", insecure: ["h.test:5000"], want: false },
    { authority: "h.test:50", insecure: ["h.test:5000"], want: false },
    { authority: "h.test", insecure: ["h.test:5000"], want: false },
    { authority: "h.test", insecure: ["h.test:80"], want: true },
    { authority: "h.test", insecure: ["h.test:443"], want: false },
    { authority: "[fd00::1]:80", insecure: ["[fd00::1]"], want: true },
    // no authority at all
    { authority: "h.test:5000:1", insecure: ["h.test:5000"], want: false },
    { authority: "", insecure: [], want: false },
  ])(
    "http to $authority with $insecure: $want",
    ({ authority, insecure, want }) => {
      expect(allowsPlainHttp(authority, insecure)).toBe(want);
    },
  );

  it.each([
    { url: "https://a.test/", want: "a" },
    { url: "https://a.test:444/", want: "a" },
    { url: "https://b.test/", want: "b443" },
    { url: "https://b.test:444/", want: "b" },
    { url: "http://b.test:443/", want: "b443" },
    { url: "http://c.test/", want: "c80" },
    { url: "https://c.test/", want: undefined },
    { url: "https://x.a.test/", want: undefined },
    { url: "https://[::1]:7/", want: "6" },
  ])("what is set for $url is $want", ({ url, want }) => {
    const settings = new Map([
      ["a.test", "a"],
      ["b.test", "b"],
      ["b.test:443", "b443"],
      ["c.test:80", "c80"],
      ["[::1]:7", "6"],
    ]);

    expect(settingFor(new URL(url), settings)).toBe(want);
  });
});
