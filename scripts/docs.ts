// Writes docs/flags.md from the flag table: `npm run docs`.
import { writeFileSync } from "node:fs";

import { format } from "prettier";

import { flags, type Flag } from "../src/config.js";

const file = new URL("../docs/flags.md", import.meta.url);
writeFileSync(file, await format(flagsPage(flags), { parser: "markdown" }));

function flagsPage(table: readonly Flag[]): string {
  const groups = [...new Set(table.map((flag) => flag.group))].sort();
  const sections = groups.map((group) =>
    [
      `## ${group}`,
      "",
      "| flag | environment | default | |",
      "| --- | --- | --- | --- |",
      ...table.filter((flag) => flag.group === group).map(row),
    ].join("\n"),
  );
  return [
    "<!-- Written by `npm run docs` from src/config.ts: change it there. -->",
    "# Flags of `serve`",
    "A flag wins over its environment variable, and that over the default. A value that cannot be " +
      "read stops the start and names the flag.",
    ...sections,
  ].join("\n\n");
}

function row(flag: Flag): string {
  const value = flag.unit === null ? "" : ` <${flag.unit}>`;
  const short = flag.short === undefined ? "" : `\`-${flag.short}\`, `;
  const other = flag.alias === undefined ? "" : `, \`--${flag.alias}\``;
  const cells = [
    `${short}\`--${flag.name}${value}\`${other}`,
    `\`${flag.env}\``,
    flag.default === null ? "unset" : `\`${flag.default}\``,
    flag.help,
  ];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
