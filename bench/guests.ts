import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { parse } from "@bytecodealliance/jco-transpile/wasm-tools";

/** A module in the module directory. */
export interface Guest {
  readonly name: string;
  /** File name under the module directory. */
  readonly path: string;
  readonly sizeBytes: number;
}

/** The modules of one benchmark run. */
export interface Guests {
  /** ABI v1; answers with the desired state it got. */
  readonly echo: Guest;
  /** The same as a component, ABI v2. */
  readonly echoComponent: Guest;
  /** Never returns. */
  readonly spin: Guest;
  /** Real modules that were built beforehand; those that were not are left out. */
  readonly built: readonly Guest[];
  /** Names of the real modules that were not built, and the command for each. */
  readonly missing: readonly {
    readonly name: string;
    readonly build: string;
  }[];
}

const EXAMPLES = ["go-raw", "go-sdk", "c", "typescript"] as const;

/** Puts every guest there is into `moduleDir`. */
export async function prepareGuests(moduleDir: string): Promise<Guests> {
  const built: Guest[] = [];
  const missing: { name: string; build: string }[] = [];
  for (const name of EXAMPLES) {
    const guest = await copyExample(moduleDir, name);
    if (guest === null) missing.push({ name, build: `examples/${name}/build` });
    else built.push(guest);
  }
  return {
    echo: await assemble(moduleDir, "echo"),
    echoComponent: await assemble(moduleDir, "echo-component"),
    spin: await assemble(moduleDir, "spin"),
    built,
    missing,
  };
}

/** Compiles `guests/<name>.wat` to `<name>.wasm` in `moduleDir`. */
export async function assemble(
  moduleDir: string,
  name: string,
): Promise<Guest> {
  const text = await readFile(
    new URL(`./guests/${name}.wat`, import.meta.url),
    "utf8",
  );
  return write(moduleDir, name, await parse(text));
}

/** `count` modules that do the same and differ in their digest. */
export async function variants(
  moduleDir: string,
  guest: Guest,
  count: number,
): Promise<Guest[]> {
  const bytes = await readFile(join(moduleDir, guest.path));
  return Promise.all(
    Array.from({ length: count }, (_, index) => {
      const name = `${guest.name}-${index}`;
      return write(
        moduleDir,
        name,
        Buffer.concat([bytes, customSection(name)]),
      );
    }),
  );
}

async function copyExample(
  moduleDir: string,
  name: string,
): Promise<Guest | null> {
  const source = fileURLToPath(
    new URL(`../examples/${name}/out/greeter.wasm`, import.meta.url),
  );
  const path = `${name}.wasm`;
  try {
    await copyFile(source, join(moduleDir, path));
  } catch {
    return null;
  }
  const { length } = await readFile(join(moduleDir, path));
  return { name, path, sizeBytes: length };
}

async function write(
  moduleDir: string,
  name: string,
  bytes: Uint8Array,
): Promise<Guest> {
  const path = `${name}.wasm`;
  await writeFile(join(moduleDir, path), bytes);
  return { name, path, sizeBytes: bytes.length };
}

/** An empty custom section; `name` is shorter than 127 bytes. */
function customSection(name: string): Uint8Array {
  const text = Buffer.from(name, "utf8");
  return Buffer.from([0, text.length + 1, text.length, ...text]);
}
