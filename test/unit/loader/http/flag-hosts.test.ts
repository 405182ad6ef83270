import { describe, expect, it } from "vitest";
import {
  parseInsecureHosts,
  parseRegistryCas,
} from "../../../../src/loader/http/flag-hosts.js";

describe("loader/http/flag-hosts", () => {
  it.each([
    { text: "h.test", want: ["h.test"] },
    { text: "H.Test.:5000", want: ["h.test:5000"] },
    { text: "h.test:1, [::1]:65535", want: ["h.test:1", "[::1]:65535"] },
    { text: "[FD00:0::1]", want: ["[fd00::1]"] },
    { text: "10.0.0.1:80,a", want: ["10.0.0.1:80", "a"] },
  ])("reads the hosts $text", ({ text, want }) => {
    expect(parseInsecureHosts(text)).toEqual({ kind: "ok", value: want });
  });

  it.each([
    { text: "", want: '"" is no host with a port' },
    { text: "a,,b", want: '"" is no host with a port' },
    { text: "a, ", want: '"" is no host with a port' },
    { text: ":80", want: 'host "" is no host name' },
    { text: "a:0", want: 'port "0" is not from 1 to 65535' },
    { text: "a:", want: 'port "" is not from 1 to 65535' },
    { text: "a:080", want: 'port "080" is not from 1 to 65535' },
    { text: "a:65536", want: 'port "65536" is not from 1 to 65535' },
    { text: "a:1:2", want: 'port "1:2" is not from 1 to 65535' },
    { text: "::1", want: 'host "" is no host name' },
    { text: "[::1]x", want: '"[::1]x" is no host with a port' },
    { text: "http://a", want: '"http://a" has a scheme' },
    { text: "a/b", want: 'host "a/b" is no host name' },
    { text: "*.a.test", want: 'host "*.a.test" is no host name' },
    {
      text: "ok,127.1",
      want: 'host "127.1" is another spelling of 127.0.0.1, write that',
    },
  ])("refuses the hosts $text", ({ text, want }) => {
    expect(parseInsecureHosts(text)).toMatchObject({
      kind: "error",
      message: expect.stringContaining(want) as string,
    });
  });

  it.each([
    { text: "a=/ca.crt", want: [{ host: "a", file: "/ca.crt" }] },
    {
      text: "A.:5000=./x=y.pem,[::1]:1=z",
      want: [
        { host: "a:5000", file: "./x=y.pem" },
        { host: "[::1]:1", file: "z" },
      ],
    },
    {
      text: "a=1, a:1=1",
      want: [
        { host: "a", file: "1" },
        { host: "a:1", file: "1" },
      ],
    },
  ])("reads the CAs $text", ({ text, want }) => {
    expect(parseRegistryCas(text)).toEqual({ kind: "ok", value: want });
  });

  it.each([
    { text: "", want: 'no file for ""' },
    { text: "a", want: 'no file for "a"' },
    { text: "a=", want: 'no file for "a="' },
    { text: "a=1,", want: 'no file for ""' },
    { text: "=1", want: '"" is no host with a port' },
    { text: "a:0=1", want: 'port "0" is not from 1 to 65535' },
    { text: "a b=1", want: 'host "a b" is no host name' },
    { text: "a=1,A=2", want: "a is there twice, put its CAs into one file" },
  ])("refuses the CAs $text", ({ text, want }) => {
    expect(parseRegistryCas(text)).toEqual({ kind: "error", message: want });
  });
});
