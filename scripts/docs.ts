// Writes docs/flags.md from the flag table: `npm run docs`.
import { writeFileSync } from "node:fs";

import { format } from "prettier";

import { flags, type Flag } from "../src/config.js";
import {
  unsupportedFlags,
  type UnsupportedFlag,
} from "../src/unsupported-flags.js";

const file = new URL("../docs/flags.md", import.meta.url);
writeFileSync(
  file,
  await format(flagsPage(flags, unsupportedFlags), { parser: "markdown" }),
);

function flagsPage(
  table: readonly Flag[],
  unsupported: readonly UnsupportedFlag[],
): string {
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
    "<!-- Written by `npm run docs` from src/config.ts and src/unsupported-flags.ts: change it there. -->",
    "# Flags of `serve`",
    "A flag wins over its environment variable, and that over the default. A value that cannot be " +
      "read stops the start and names the flag.",
    "A switch is a flag that is shown without a value. `--debug` and `--debug=true` turn it on, " +
      "`--no-debug` and `--debug=false` off, and the last one given wins. The next argument is never its " +
      "value. Its variable is `true` or `false`; like after `=`, `1`, `t`, `0`, `f` and capitals will do.",
    "A size is a whole number of MB (1024² bytes) or KB (1024 bytes), whichever the flag has, or a " +
      "Kubernetes quantity with a suffix: `--max-module-size=64`, `64Mi` and `0.0625Gi` are the same. " +
      "Other numbers without a suffix, such as `1.5` and `1e3`, are refused.",
    ...sections,
    "## Flags of other systems",
    "The Rust function-wasm has these, too. They stop the start, by flag or variable, rather than " +
      "do nothing, unless they have the value that turns them off.",
    [
      "| flag | environment | off, and accepted | why all else is refused |",
      "| --- | --- | --- | --- |",
      ...unsupported.map(unsupportedRow),
    ].join("\n"),
  ].join("\n\n");
}

function unsupportedRow({ name, env, off, why }: UnsupportedFlag): string {
  const code = (text: string | null) => (text === null ? "" : `\`${text}\``);
  return `| \`--${name}\` | ${code(env)} | ${code(off)} | ${why} |`;
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
