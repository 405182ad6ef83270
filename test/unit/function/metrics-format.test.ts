import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { chooseMetricsFormat } from "../../../src/function/metrics-format.js";

const prometheusDefault =
  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
const prometheusTextFirst =
  "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2";

describe("function/metrics-format", () => {
  it.each([
    { name: "no header", accept: undefined, want: "openmetrics" },
    { name: "an empty header", accept: "", want: "openmetrics" },
    { name: "blanks and commas", accept: " , ,", want: "openmetrics" },
    { name: "anything", accept: "*/*", want: "openmetrics" },
    { name: "Prometheus", accept: prometheusDefault, want: "openmetrics" },
    {
      name: "Prometheus set to text first",
      accept: prometheusTextFirst,
      want: "text",
    },
    {
      name: "a browser",
      accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
      want: "openmetrics",
    },
    { name: "text only", accept: "text/plain", want: "text" },
    {
      name: "text with a version",
      accept: "text/plain; version=0.0.4; charset=utf-8",
      want: "text",
    },
    { name: "text in capitals", accept: "Text/PLAIN;Q=0.5", want: "text" },
    {
      name: "text between blanks",
      accept: " \ttext/plain\t; q=0.5 ",
      want: "text",
    },
    { name: "text before anything", accept: "text/plain, */*", want: "text" },
    {
      name: "text before anything, by q",
      accept: "*/*;q=0.1, text/plain;q=0.9",
      want: "text",
    },
    {
      name: "anything before text, by q",
      accept: "*/*;q=0.9, text/plain;q=0.1",
      want: "openmetrics",
    },
    { name: "any text", accept: "text/*", want: "text" },
    { name: "any text before anything", accept: "*/*, text/*", want: "text" },
    {
      name: "any text or any application",
      accept: "text/*, application/*",
      want: "openmetrics",
    },
    {
      name: "any application",
      accept: "application/*",
      want: "openmetrics",
    },
    {
      name: "OpenMetrics only",
      accept: "application/openmetrics-text",
      want: "openmetrics",
    },
    {
      name: "both alike",
      accept: "text/plain, application/openmetrics-text",
      want: "openmetrics",
    },
    {
      name: "both, OpenMetrics first",
      accept: "text/plain;q=0.4, application/openmetrics-text;q=0.5",
      want: "openmetrics",
    },
    {
      name: "both, text first",
      accept: "application/openmetrics-text;q=0.4, text/plain;q=0.5",
      want: "text",
    },
    {
      name: "the higher q of two versions",
      accept:
        "application/openmetrics-text;version=1.0.0;q=0.7, application/openmetrics-text;version=0.0.1;q=0.1, text/plain;q=0.5",
      want: "openmetrics",
    },
    {
      name: "one version excluded",
      accept:
        "application/openmetrics-text;version=2.0.0;q=0, application/openmetrics-text, text/plain;q=0.5",
      want: "openmetrics",
    },
    { name: "text excluded", accept: "text/plain;q=0", want: "openmetrics" },
    {
      name: "text excluded at length",
      accept: "text/plain;q=0.000",
      want: "openmetrics",
    },
    {
      name: "text excluded, any other text",
      accept: "text/*, text/plain;q=0",
      want: "openmetrics",
    },
    {
      name: "text excluded, anything else",
      accept: "text/plain;q=0, */*;q=0.1",
      want: "openmetrics",
    },
    {
      name: "OpenMetrics excluded",
      accept: "application/openmetrics-text;q=0",
      want: "text",
    },
    {
      name: "OpenMetrics excluded, text with a small q",
      accept: "application/openmetrics-text;q=0.0, text/plain;q=0.001",
      want: "text",
    },
    {
      name: "OpenMetrics excluded, anything else",
      accept: "*/*;q=0.1, application/openmetrics-text;q=0",
      want: "text",
    },
    {
      name: "any application excluded",
      accept: "application/*;q=0, */*",
      want: "text",
    },
    { name: "everything excluded", accept: "*/*;q=0", want: "openmetrics" },
    {
      name: "everything but text excluded",
      accept: "*/*;q=0, text/plain;q=0.1",
      want: "text",
    },
    {
      name: "both excluded by name",
      accept: "text/plain;q=0, application/openmetrics-text;q=0",
      want: "openmetrics",
    },
    {
      name: "neither",
      accept: "application/json, application/vnd.google.protobuf",
      want: "openmetrics",
    },
    { name: "a longer name", accept: "text/plain2", want: "openmetrics" },
    {
      name: "text as a parameter",
      accept: "a/b;c=text/plain",
      want: "openmetrics",
    },
    {
      name: "a parameter that ends in q",
      accept: "text/plain;seq=0",
      want: "text",
    },
    { name: "q of 1", accept: "text/plain;q=1.000, */*", want: "text" },
    {
      name: "the first q of two",
      accept: "text/plain;q=1;q=0",
      want: "text",
    },
    ...["", "-1", "1.1", "2", "0x1", "1e0", ".5", "nan", '"1"', "0 1"].map(
      (q) => ({
        name: `no q: ${q}`,
        accept: `text/plain;q=${q}`,
        want: "openmetrics",
      }),
    ),
  ])("answers $name with $want", ({ accept, want }) => {
    expect(chooseMetricsFormat(accept)).toBe(want);
  });

  it("does not care for the order of the ranges", () => {
    const range = fc
      .tuple(
        fc.constantFrom(
          "text/plain",
          "text/*",
          "application/openmetrics-text",
          "application/*",
          "*/*",
          "image/png",
        ),
        fc.constantFrom("", ";q=0", ";q=0.5", ";q=1", ";q=x"),
      )
      .map((parts) => parts.join(""));

    fc.assert(
      fc.property(fc.array(range, { maxLength: 8 }), (ranges) => {
        expect(chooseMetricsFormat(ranges.toReversed().join(","))).toBe(
          chooseMetricsFormat(ranges.join(",")),
        );
      }),
    );
  });

  it("has an answer for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (accept) => {
        expect(["openmetrics", "text"]).toContain(chooseMetricsFormat(accept));
      }),
    );
  });
});
