import { describe, expect, it } from "vitest";

import { runtimeCompatibility } from "../../src/admission/manifest/compatibility.js";
import { readManifest } from "../../src/admission/manifest/read-manifest.js";
import { textOf } from "./committed-files.js";

const DOC = textOf("docs/module-manifests.md");
const EXAMPLE = /```yaml\n(.*?)```/s.exec(DOC)?.[1] ?? "";

function read(yaml: string) {
  return readManifest("file", new TextEncoder().encode(yaml));
}

describe("docs/module-manifests.md", () => {
  it("has an example that is read", () => {
    expect(read(EXAMPLE)).toMatchObject({
      kind: "ok",
      value: {
        abi: 2,
        name: "greeter",
        requires: {
          env: [{ name: "DATABASE_URL", credential: "db", key: "url" }],
          credentials: ["cmdb"],
        },
      },
    });
  });

  it("has a schema in its example that says what the page says it does", () => {
    const result = read(EXAMPLE);
    const schema = result.kind === "ok" ? result.value.configSchema : null;

    expect(schema?.check({ greeting: "hi" })).toBeNull();
    expect(schema?.check({ greeting: 1 })).toBe(
      "/greeting: got number, want string",
    );
    expect(DOC).toContain("`/greeting: got number, want string`");
  });

  it("lists every field of a manifest", () => {
    const listed = Array.from(
      DOC.matchAll(/^\| `([\w.]+)`/gm),
      (match) => match[1] ?? "",
    );
    const rule = listed.slice(listed.indexOf("host"));
    const manifest = listed.slice(0, listed.indexOf("host"));
    const partsAt = (depth: number, start: string) =>
      manifest
        .filter((name) => name.startsWith(start))
        .flatMap((name) => name.split(".")[depth] ?? []);

    expect(known("{abi: 1, qqqqqqqqqqqq: 1}")).toEqual(new Set(partsAt(0, "")));
    expect(known("{abi: 1, requires: {qqqqqqqqqqqq: 1}}")).toEqual(
      new Set(partsAt(1, "requires.")),
    );
    expect(
      known("{abi: 1, requires: {egress: {http: [{qqqqqqqqqqqq: 1}]}}}"),
    ).toEqual(new Set(rule));
  });

  it("names the version this runtime is compatible with", () => {
    expect(DOC).toContain(`This one is \`v${runtimeCompatibility}\``);
  });
});

/** The fields that a refusal of an unknown one lists. */
function known(yaml: string): Set<string> {
  const result = read(yaml);
  const message = result.kind === "error" ? result.message : "";
  const names = /expected one of (?<names>.*)$/.exec(message)?.groups?.[
    "names"
  ];
  return new Set(names?.split(", "));
}
