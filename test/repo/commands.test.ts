import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";

import { committedFiles, root, textOf } from "./committed-files.js";

const { scripts } = JSON.parse(textOf("package.json")) as {
  scripts: Record<string, string>;
};

describe("repo/commands", () => {
  it.each(["demo", "test"])(
    "npm run %s is what the README begins with, and sets the clone up first",
    (name) => {
      const command = name === "test" ? "npm test" : `npm run ${name}`;

      expect(textOf("README.md")).toMatch(
        new RegExp(`^${command}(?: .*)?$`, "m"),
      );
      expect(scripts).toHaveProperty([name]);
      expect(scripts[`pre${name}`]).toBe("node scripts/setup.mjs");
    },
  );

  it("npm scripts that the documents name exist", () => {
    const named = committedFiles()
      .filter((file) => /\.md$|^\.ci\/run$/.test(file))
      .filter((file) => !file.startsWith("examples/"))
      .flatMap((file) =>
        [...textOf(file).matchAll(/npm run (?<name>[a-z][a-z:-]*)/g)].map(
          (match) => match.groups?.["name"] ?? "",
        ),
      );

    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((name) => !(name in scripts))).toEqual([]);
  });

  it("the README runs examples that are in the clone, on files that are", () => {
    const lines = textOf("README.md")
      .split("\n")
      .filter((line) => /^(?:node dist\/main\.js|examples\/)/.test(line));
    const files = lines.flatMap((line) =>
      line.split(" ").filter((word) => /\.yaml$|\/build$/.test(word)),
    );
    const moduleDirs = lines.flatMap(
      (line) => /--module-dir (?<dir>\S+)/.exec(line)?.groups?.["dir"] ?? [],
    );

    expect(files.length).toBeGreaterThan(5);
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual(
      [],
    );
    expect(moduleDirs.length).toBeGreaterThan(1);
    for (const dir of moduleDirs)
      expect(files).toContain(dir.replace(/out$/, "build"));
  });

  it("npm scripts run files that exist", () => {
    const files = Object.values(scripts).flatMap((script) =>
      [...script.matchAll(/(?:scripts|bench)\/[\w/.-]+\.(?:mjs|ts)/g)].map(
        ([file]) => file,
      ),
    );

    expect(files.length).toBeGreaterThan(2);
    expect(files.filter((file) => !existsSync(path.join(root, file)))).toEqual(
      [],
    );
  });

  it("relative links in the documents lead somewhere", () => {
    const broken = committedFiles()
      .filter((file) => file.endsWith(".md"))
      .flatMap((file) =>
        [...textOf(file).matchAll(/\]\((?!\w+:|#)(?<to>[^)#\s]+)/g)]
          .map((match) => match.groups?.["to"] ?? "")
          .filter((to) => !existsSync(path.join(root, path.dirname(file), to)))
          .map((to) => `${file}: ${to}`),
      );

    expect(broken).toEqual([]);
  });

  it(".ci/run can be run", () => {
    expect(statSync(path.join(root, ".ci/run")).mode & 0o111).toBe(0o111);
  });
});
