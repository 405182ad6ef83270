import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import { failureOf } from "../../../../src/loader/http/failure.js";

const UNTRUSTED =
  "the TLS certificate does not verify, --registry-ca names a CA to trust for this host";

describe("loader/http/failure", () => {
  it.each([
    { name: "ENOTFOUND", code: "registry-unreachable", want: "no such host" },
    {
      name: "EAI_AGAIN",
      code: "registry-unreachable",
      want: "the name does not resolve",
    },
    {
      name: "ECONNREFUSED",
      code: "registry-unreachable",
      want: "connection refused",
    },
    {
      name: "EHOSTUNREACH",
      code: "registry-unreachable",
      want: "connection failed",
    },
    {
      name: "ETIMEDOUT",
      code: "registry-unreachable",
      want: "connection failed",
    },
    {
      name: "EPIPE",
      code: "registry-unreachable",
      want: "the connection was closed before an answer came",
    },
    {
      name: "DEPTH_ZERO_SELF_SIGNED_CERT",
      code: "tls-failed",
      want: UNTRUSTED,
    },
    { name: "SELF_SIGNED_CERT_IN_CHAIN", code: "tls-failed", want: UNTRUSTED },
    {
      name: "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
      code: "tls-failed",
      want: UNTRUSTED,
    },
    { name: "CERT_HAS_EXPIRED", code: "tls-failed", want: UNTRUSTED },
    { name: "CRL_HAS_EXPIRED", code: "tls-failed", want: UNTRUSTED },
    {
      name: "ERROR_IN_CERT_NOT_AFTER_FIELD",
      code: "tls-failed",
      want: UNTRUSTED,
    },
    { name: "INVALID_CA", code: "tls-failed", want: UNTRUSTED },
    { name: "INVALID_PURPOSE", code: "tls-failed", want: UNTRUSTED },
    { name: "PATH_LENGTH_EXCEEDED", code: "tls-failed", want: UNTRUSTED },
    { name: "UNSPECIFIED", code: "tls-failed", want: UNTRUSTED },
    {
      name: "HOSTNAME_MISMATCH",
      code: "tls-failed",
      want: "the TLS certificate is for another host",
    },
    {
      name: "ERR_TLS_HANDSHAKE_TIMEOUT",
      code: "tls-failed",
      want: "TLS failed",
    },
    {
      name: "ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR",
      code: "tls-failed",
      want: "TLS failed",
    },
    { name: "EPROTO", code: "tls-failed", want: "TLS failed" },
    // These say nothing about the server, so no cache makes up for them.
    ...["EMFILE", "ENFILE", "EADDRNOTAVAIL", "ENOBUFS", "ENOMEM"].map(
      (name) => ({
        name,
        code: "cache-unwritable",
        want: "this machine has no handles left",
      }),
    ),
    // Nothing that is not known makes caches step in.
    {
      name: "ERR_NEW_THING",
      code: "answer-invalid",
      want: "the answer is not valid HTTP",
    },
    {
      name: "UND_ERR_NEW",
      code: "answer-invalid",
      want: "the answer is not valid HTTP",
    },
  ])("$name is $code", ({ name, code, want }) => {
    const error = Object.assign(new Error("hunter2"), { code: name });

    const failure = failureOf(error, "h.test", "headers");

    expect(failure).toMatchObject({
      code,
      message: `h.test: ${want} (${name})`,
      cause: error,
    });
  });

  it.each([
    { thrown: new TypeError("hunter2"), want: "TypeError" },
    { thrown: Object.assign(new Error("hunter2"), { code: 7 }), want: "Error" },
    { thrown: "hunter2", want: "unknown error" },
  ])("shows nothing of $thrown", ({ thrown, want }) => {
    expect(failureOf(thrown, "h.test", "body")).toMatchObject({
      code: "answer-invalid",
      message: `h.test: the answer is not valid HTTP (${want})`,
    });
  });

  it("leaves a LoaderError as it is", () => {
    const error = new LoaderError("module-changed", "x");

    expect(failureOf(error, "h.test", "headers")).toBe(error);
  });
});
