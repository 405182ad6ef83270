import { describe, expect, it } from "vitest";
import {
  createIsPlainHttp,
  plainOnLoopback,
} from "../../../src/loader/registry-scheme.js";

describe("loader/registry-scheme", () => {
  const isPlainHttp = createIsPlainHttp({
    insecureHosts: ["plain.test", "port.test:5000", "both.test", "[fd00::1]"],
    registryCas: new Map([
      ["both.test", "pem"],
      ["localhost:5001", "pem"],
      ["127.0.0.2", "pem"],
      ["[::1]", "pem"],
    ]),
  });

  it.each([
    { authority: "ghcr.io", want: false, why: "nobody named it" },
    { authority: "plain.test", want: true, why: "it is named" },
    { authority: "plain.test:8080", want: true, why: "on every port" },
    { authority: "sub.plain.test", want: false, why: "itself, nothing below" },
    { authority: "port.test:5000", want: true, why: "on this port" },
    { authority: "port.test", want: false, why: "on that port only" },
    { authority: "port.test:5001", want: false, why: "on that port only" },
    { authority: "[fd00::1]:5000", want: true, why: "IPv6 is named alike" },
    { authority: "both.test", want: false, why: "a CA means TLS" },
    { authority: "both.test:5000", want: false, why: "a CA is for every port" },
    { authority: "localhost", want: true, why: "this very machine" },
    { authority: "127.0.0.1:5000", want: true, why: "this very machine" },
    { authority: "localhost:5001", want: false, why: "it has a CA" },
    { authority: "localhost:5002", want: true, why: "another port has it" },
    { authority: "127.0.0.2:5000", want: false, why: "it has a CA" },
    { authority: "[::1]:5000", want: false, why: "it has a CA" },
  ])("says $want of $authority: $why", ({ authority, want }) => {
    expect(isPlainHttp(authority)).toBe(want);
  });

  it.each([
    { authority: "localhost:5000", want: true },
    { authority: "[::1]", want: true },
    { authority: "plain.test", want: false },
    { authority: "localhost.evil.test", want: false },
  ])("says $want of $authority without flags", ({ authority, want }) => {
    expect(plainOnLoopback(authority)).toBe(want);
  });
});
