import { inspect } from "node:util";

import { describe, expect, it } from "vitest";

import {
  findPlantedSecrets,
  maskPlantedSecrets,
  PLANTED_SECRET,
} from "../../support/planted-secret.js";

const bytes = Buffer.from(PLANTED_SECRET);

/** What comes before it decides how base64 cuts it. */
const alignments = ["", "u", "u:"].flatMap((before) =>
  ["", ":", "::", "-cmdb"].map((after) => ({
    before,
    after,
    text: `${before}${PLANTED_SECRET}${after}`,
  })),
);

describe("support/planted-secret", () => {
  it.each([
    { name: "itself", output: "password hunter2!", form: "text" },
    { name: "other letters", output: "HUNTER2 Hunter2", form: "text" },
    {
      name: "JSON in JSON",
      output: JSON.stringify(JSON.stringify({ password: "hunter2\n" })),
      form: "text",
    },
    {
      name: "a URL",
      output: new URL("https://u:hunter2@h/?sig=hunter2%3D").href,
      form: "text",
    },
    { name: "hex", output: bytes.toString("hex"), form: "hex" },
    {
      name: "hex in capitals",
      output: bytes.toString("hex").toUpperCase(),
      form: "hex",
    },
    { name: "a Buffer", output: inspect(bytes), form: "hex" },
    { name: "hex with colons", output: hexWith(":"), form: "hex" },
    {
      name: "a Buffer as JSON",
      output: JSON.stringify(Buffer.from("u:hunter2")),
      form: "decimal bytes",
    },
    {
      name: "a Uint8Array",
      output: inspect(new Uint8Array(Buffer.from("a longer text: hunter2"))),
      form: "decimal bytes",
    },
    {
      name: "a Uint8Array as JSON",
      output: JSON.stringify(new Uint8Array(bytes)),
      form: "decimal bytes",
    },
    {
      name: "a private key",
      output: "-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEE",
      form: "private key",
    },
    {
      name: "a private key of another kind",
      output: "-----BEGIN PRIVATE KEY-----",
      form: "private key",
    },
  ])("finds $name", ({ output, form }) => {
    for (const given of [output, Buffer.from(output)]) {
      const found = findPlantedSecrets(given);

      expect(found.map((each) => each.form)).toContain(form);
    }
    expect(findPlantedSecrets(maskPlantedSecrets(output))).toEqual([]);
  });

  it.each(alignments)(
    'finds base64 of "$before", the secret and "$after"',
    ({ text }) => {
      for (const alphabet of ["base64", "base64url"] as const) {
        const output = `auth=${Buffer.from(text).toString(alphabet)}`;

        const found = findPlantedSecrets(output);

        expect(found).toMatchObject([{ form: "base64" }]);
        expect(findPlantedSecrets(maskPlantedSecrets(output))).toEqual([]);
      }
    },
  );

  it("says where all of them are, in bytes", () => {
    const output = `ä ${hexWith("")} hunter2`;

    expect(findPlantedSecrets(output)).toEqual([
      { form: "hex", offset: 3, length: 14 },
      { form: "text", offset: 18, length: 7 },
    ]);
  });

  it.each([
    { name: "nothing", output: "" },
    { name: "a part of it", output: "hunter 2, hunter, unter2, aHVudGVy" },
    {
      name: "other bytes that end alike",
      output: "[1104,117,110,116,101,114,50] [104,117,110,116,101,114,500]",
    },
    { name: "a certificate", output: "-----BEGIN CERTIFICATE-----" },
  ])("finds nothing in $name", ({ output }) => {
    expect(findPlantedSecrets(output)).toEqual([]);
  });

  it("masks every one and nothing else", () => {
    expect(maskPlantedSecrets("a hunter2, HUNTER2-b, (u) é")).toBe(
      "a ***, ***-b, (u) é",
    );
  });
});

function hexWith(separator: string): string {
  return Array.from(bytes, (byte) => byte.toString(16)).join(separator);
}
