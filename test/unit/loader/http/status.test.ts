import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import { refusalOf } from "../../../../src/loader/http/status.js";
import { answer } from "./doubles.js";

describe("loader/http/status", () => {
  it.each([
    {
      status: 401,
      code: "registry-auth-failed",
      want: "HTTP 401 Unauthorized",
    },
    { status: 403, code: "registry-auth-failed", want: "HTTP 403 Forbidden" },
    { status: 404, code: "module-not-found", want: "HTTP 404 Not Found" },
    {
      status: 408,
      code: "registry-unreachable",
      want: "HTTP 408 Request Timeout",
    },
    {
      status: 429,
      code: "registry-unreachable",
      want: "HTTP 429 Too Many Requests",
    },
    {
      status: 500,
      code: "registry-unreachable",
      want: "HTTP 500 Internal Server Error",
    },
    {
      status: 503,
      code: "registry-unreachable",
      want: "HTTP 503 Service Unavailable",
    },
    { status: 599, code: "registry-unreachable", want: "HTTP 599" },
    { status: 600, code: "registry-refused", want: "HTTP 600" },
    { status: 400, code: "registry-refused", want: "HTTP 400 Bad Request" },
    {
      status: 405,
      code: "registry-refused",
      want: "HTTP 405 Method Not Allowed",
    },
    { status: 410, code: "registry-refused", want: "HTTP 410 Gone" },
    { status: 499, code: "registry-refused", want: "HTTP 499" },
    { status: 204, code: "registry-refused", want: "HTTP 204 No Content" },
    { status: 307, code: "registry-refused", want: "HTTP 307" },
  ])("$status is $code", async ({ status, code, want }) => {
    const response = answer({ status });

    const error = await refusalOf(response, "h.test", () => "");

    expect(error).toBeInstanceOf(LoaderError);
    expect(error).toMatchObject({ code, message: `h.test: ${want}` });
    expect(response.discards).toBe(1);
  });

  it("quotes the body, of 4 KiB and not a byte more", async () => {
    const chunks = [
      Buffer.alloc(4_095, "a"),
      Buffer.from("bc"),
      Buffer.from("d"),
    ];
    const response = answer({ status: 403, chunks });

    const { message } = await refusalOf(response, "h.test", (start) => {
      const text = Buffer.from(start).toString();
      return `${text.length} ${text.slice(-2)}`;
    });

    expect(message).toBe("h.test: HTTP 403 Forbidden: 4096 ab");
    expect(response).toMatchObject({
      isBrokenOff: true,
      taken: 2,
      discards: 1,
    });
  });

  it.each([
    {
      status: 429,
      retryAfter: "30",
      want: "HTTP 429 Too Many Requests, asks to wait 30 s: busy",
    },
    {
      status: 503,
      retryAfter: "Fri, 31 Dec 1999 23:59:59 GMT",
      want: "HTTP 503 Service Unavailable, asks to wait until 1999-12-31T23:59:59.000Z: busy",
    },
    {
      status: 429,
      retryAfter: "\u001b[31m",
      want: "HTTP 429 Too Many Requests: busy",
    },
    { status: 403, retryAfter: "30", want: "HTTP 403 Forbidden: busy" },
  ])(
    "says how long $status asks to wait: $retryAfter",
    async ({ status, retryAfter, want }) => {
      const response = answer({
        status,
        headers: { "retry-after": [retryAfter] },
      });

      const { message } = await refusalOf(response, "h.test", () => "busy");

      expect(message).toBe(`h.test: ${want}`);
    },
  );

  it("quotes nothing of a body that fails", async () => {
    const response = answer({
      status: 500,
      chunks: [Buffer.from("a")],
      failure: new Error("reset"),
    });

    const error = await refusalOf(response, "h.test", (start) =>
      start.length.toString(),
    );

    expect(error).toMatchObject({
      code: "registry-unreachable",
      message: "h.test: HTTP 500 Internal Server Error: 0",
    });
    expect(response.discards).toBe(1);
  });
});
