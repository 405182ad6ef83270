import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import {
  componentEmbed,
  componentNew,
  parse,
} from "@bytecodealliance/jco-transpile/wasm-tools";

const guestsDir = fileURLToPath(new URL("../guests/", import.meta.url));
const assembled = new Map<string, Promise<Uint8Array>>();

/** Every guest under `test/guests/`, as `folder/name`, sorted. */
export function guestNames(): string[] {
  return readdirSync(guestsDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".wat"))
    .map((entry) =>
      join(relative(guestsDir, entry.parentPath), basename(entry.name, ".wat")),
    )
    .sort();
}

/**
 * The bytes of `test/guests/<name>.wat`, assembled once. With a `<name>.wit` beside it, the text is
 * the core of a component whose world that file describes.
 */
export function guest(name: string): Promise<Uint8Array> {
  let bytes = assembled.get(name);
  if (bytes === undefined) {
    bytes = assemble(name);
    assembled.set(name, bytes);
  }
  return bytes;
}

/** Assembles WebAssembly text, of a module or a component. Does not validate it. */
export async function assembleText(text: string): Promise<Uint8Array> {
  try {
    return await parse(text);
  } catch (thrown) {
    throw new Error(reason(thrown), { cause: thrown });
  }
}

async function assemble(name: string): Promise<Uint8Array> {
  const core = await assembleText(source(`${name}.wat`));
  if (!existsSync(join(guestsDir, `${name}.wit`))) return core;
  const witSource = source(`${name}.wit`);
  try {
    const embedded = await componentEmbed({
      binary: core,
      witSource,
      world: "guest",
    });
    return await componentNew(embedded);
  } catch (thrown) {
    throw new Error(`${name}: ${reason(thrown)}`, { cause: thrown });
  }
}

function source(file: string): string {
  return readFileSync(join(guestsDir, file), "utf8");
}

/** The tools throw plain objects that carry the sentence. */
function reason(thrown: unknown): string {
  if (thrown instanceof Error && !("payload" in thrown)) return thrown.message;
  const { payload } = thrown as { payload?: unknown };
  return typeof payload === "string" ? payload : JSON.stringify(thrown);
}
