import { describe, expect, it } from "vitest";
import type { HttpResponse } from "../../../../src/loader/http/transport.js";
import { uploadUrl } from "../../../../src/loader/oci/upload-location.js";
import type { Digest } from "../../../../src/ports.js";

const DIGEST: Digest = `sha256:${"ab".repeat(32)}`;
const DIGEST_QUERY = `digest=sha256%3A${"ab".repeat(32)}`;
const HTTPS = "https://reg.test/v2/a/b/blobs/uploads/";
const HTTP = "http://localhost:5000/v2/a/b/blobs/uploads/";

describe("loader/oci/upload-location", () => {
  it.each([
    {
      name: "an absolute path",
      location: "/v2/a/b/blobs/uploads/1",
      want: "https://reg.test/v2/a/b/blobs/uploads/1?",
    },
    {
      name: "a path relative to the request's",
      location: "1",
      want: "https://reg.test/v2/a/b/blobs/uploads/1?",
    },
    {
      name: "a query alone",
      location: "?u=1",
      want: "https://reg.test/v2/a/b/blobs/uploads/?u=1&",
    },
    {
      name: "another host without a scheme",
      location: "//store.test/1",
      want: "https://store.test/1?",
    },
    {
      name: "another host and port",
      location: "https://store.test:8443/1?x=y",
      want: "https://store.test:8443/1?x=y&",
    },
    {
      name: "another spelling of the registry",
      location: "https://REG.test.:0443/1",
      want: "https://reg.test/1?",
    },
    {
      name: "an empty query",
      location: "/1?",
      want: "https://reg.test/1?",
    },
    {
      name: "a query that would be written in another way",
      location: "/1?a=%2f+%20~&b&c=%3D=",
      want: "https://reg.test/1?a=%2f+%20~&b&c=%3D=&",
    },
    {
      name: "a fragment, which no server sees",
      location: "/1?a#frag",
      want: "https://reg.test/1?a&",
    },
    {
      name: "http from a registry in the clear",
      from: HTTP,
      location: "http://localhost:5001/1",
      want: "http://localhost:5001/1?",
    },
    {
      name: "https from a registry in the clear",
      from: HTTP,
      location: "https://store.test/1",
      want: "https://store.test/1?",
    },
  ])("follows $name", ({ from = HTTPS, location, want }) => {
    const url = uploadUrl(opened(from, [location]), DIGEST, "reg.test/a/b");

    expect(url.href).toBe(`${want}${DIGEST_QUERY}`);
  });

  it.each([
    {
      name: "no Location",
      locations: [],
      code: "answer-invalid",
      message:
        "reg.test/a/b: expected one Location header in the answer that opens an upload, got 0",
    },
    {
      name: "two of them",
      locations: ["/1", "https://evil.test/1"],
      code: "answer-invalid",
      message:
        "reg.test/a/b: expected one Location header in the answer that opens an upload, got 2",
    },
    {
      name: "no URL",
      locations: ["https://[hunter2/1"],
      code: "answer-invalid",
      message:
        "reg.test/a/b: the Location header of the answer that opens an upload is no URL",
    },
    {
      name: "http after https, even on the same host",
      locations: ["http://reg.test/1?hunter2"],
      code: "redirect-refused",
      message:
        'reg.test/a/b: the upload is sent to a URL with "http:", expected "https:"',
    },
    {
      name: "another scheme",
      from: HTTP,
      locations: ["file:///etc/passwd"],
      code: "redirect-refused",
      message:
        'reg.test/a/b: the upload is sent to a URL with "file:", expected "https:"',
    },
    {
      name: "a host that is another one in disguise",
      locations: ["https://[::ffff:7f00:1]/1"],
      code: "redirect-refused",
      message:
        'reg.test/a/b: where the upload is sent: host "[::ffff:7f00:1]" is an IPv6 address with an IPv4 address inside, write the IPv4 address',
    },
    {
      name: "a user name",
      locations: ["https://user@reg.test/1"],
      code: "redirect-refused",
      message:
        "reg.test/a/b: the upload is sent to a URL with a user name or password",
    },
    {
      name: "a password",
      locations: ["https://:hunter2@reg.test/1"],
      code: "redirect-refused",
      message:
        "reg.test/a/b: the upload is sent to a URL with a user name or password",
    },
  ])("refuses $name", ({ from = HTTPS, locations, code, message }) => {
    const act = () =>
      uploadUrl(opened(from, locations), DIGEST, "reg.test/a/b");

    expect(act).toThrow(expect.objectContaining({ code, message }));
  });
});

function opened(url: string, locations: readonly string[]): HttpResponse {
  return {
    url: new URL(url),
    status: 202,
    headers: (name) => (name === "location" ? locations : []),
    body: (async function* () {})(),
    discard: () => Promise.resolve(),
  };
}
