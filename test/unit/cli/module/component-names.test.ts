import { open } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, it } from "vitest";

import {
  type ComponentNames,
  readComponentNames,
} from "../../../../src/cli/module/component-names.js";
import { assembleText, guest } from "../../../support/guests.js";
import { dirOf } from "./run-module.js";

describe("cli/module/component-names", () => {
  it.each([
    {
      name: "v2/hello",
      want: { imports: [], exports: ["run"] },
    },
    {
      name: "p2/stdio",
      want: {
        imports: expect.arrayContaining([
          expect.stringMatching(/^wasi:io\/streams@0\.2\.\d+$/),
        ]) as string[],
        exports: ["run"],
      },
    },
    {
      name: "v2/log",
      want: {
        imports: expect.arrayContaining(["log"]) as string[],
        exports: ["run"],
      },
    },
  ])("reads the names of the guest $name", async ({ name, want }) => {
    expect(await namesOf(await guest(name))).toEqual(want);
  });

  it("reads every kind of import and export, in their order", async () => {
    const component = await assembleText(`(component
      (import "f" (func $f (param "x" u8)))
      (import "a:b/i@1.2.3" (instance $i (export "g" (func))))
      (import "r" (type $r (sub resource)))
      (import "t" (type $t (eq $r)))
      (import "c" (component $c))
      (import "m" (core module $m))
      (export "e1" (func $f))
      (export "a:b/e2" (instance $i))
      (import "late" (func))
      (export "e3" (type $r))
      (export "e4" (func $f) (func (param "x" u8)))
      (export "e5" (component $c))
      (export "e6" (core module $m))
    )`);

    expect(await namesOf(component)).toEqual({
      imports: ["f", "a:b/i@1.2.3", "r", "t", "c", "m", "late"],
      exports: ["e1", "a:b/e2", "e3", "e4", "e5", "e6"],
    });
  });

  it("leaves the names of what is nested out", async () => {
    const component = await assembleText(`(component
      (component (import "inner" (func)) (export "innermost" (func 0)))
      (core module (import "core" "inner" (func)) (export "core" (func 0)))
      (import "outer" (func))
    )`);

    expect(await namesOf(component)).toEqual({
      imports: ["outer"],
      exports: [],
    });
  });

  it("reads lengths of several bytes, and names that are no ASCII", async () => {
    const content = [0x81, 0, ...name("é".repeat(100)), 1, 0x80, 1];

    expect(await namesOf(component(section(10, content)))).toEqual({
      imports: ["é".repeat(100)],
      exports: [],
    });
  });

  it.each([
    { name: "nothing", bytes: Buffer.alloc(0), want: /too soon$/ },
    {
      name: "a core module",
      bytes: Buffer.from("\0asm\x01\0\0\0"),
      want: /its preamble$/,
    },
    {
      name: "a section that is longer than the file",
      bytes: component([3, 100, 0]),
      want: /the length of a section$/,
    },
    {
      name: "a length that is no 32-bit number",
      bytes: component([3, 0xff, 0xff, 0xff, 0xff, 0x1f]),
      want: /a number$/,
    },
    {
      name: "a length without end",
      bytes: component([3, 0xff, 0xff, 0xff, 0xff, 0xff, 0]),
      want: /a number$/,
    },
    {
      name: "more imports than there are",
      bytes: component(section(10, [2, ...name("a"), 1, 0])),
      want: /too soon$/,
    },
    {
      name: "fewer imports than there are",
      bytes: component(section(10, [0, 0])),
      want: /what follows its names$/,
    },
    {
      name: "a name that goes beyond its section",
      bytes: component(section(10, [1, 0, 5, 0x61])),
      want: /too soon$/,
    },
    {
      name: "a name that is no UTF-8",
      bytes: component(section(10, [1, 0, 1, 0xff, 1, 0])),
      want: /not valid/,
    },
    {
      name: "a name of a kind to come",
      bytes: component(section(10, [1, 2, 1, 0x61, 0, 1, 0])),
      want: /the kind of a name$/,
    },
    {
      name: "a value",
      bytes: component(section(10, [1, ...name("a"), 2, 1, 0x7f])),
      want: /the kind of a definition$/,
    },
    {
      name: "a core function",
      bytes: component(section(11, [1, ...name("a"), 0, 0, 0, 0])),
      want: /the kind of a definition$/,
    },
    {
      name: "more than a mebibyte of names",
      bytes: component(
        section(10, [1, ...name("a".repeat(700_000)), 1, 0]),
        section(11, [1, ...name("b".repeat(700_000)), 1, 0, 0]),
      ),
      want: /the length of its names$/,
    },
  ])("refuses $name", async ({ bytes, want }) => {
    await expect(namesOf(bytes)).rejects.toThrow(want);
  });
});

async function namesOf(bytes: Uint8Array): Promise<ComponentNames> {
  const dir = await dirOf({ "c.wasm": bytes });
  const file = await open(join(dir, "c.wasm"));
  try {
    return await readComponentNames(file, bytes.length);
  } finally {
    await file.close();
  }
}

function component(...sections: readonly (readonly number[])[]): Buffer {
  return Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0, ...sections.flat()]);
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...leb(content.length), ...content];
}

function name(text: string): number[] {
  const bytes = Buffer.from(text, "utf8");
  return [0, ...leb(bytes.length), ...bytes];
}

function leb(value: number): number[] {
  return value < 0x80
    ? [value]
    : [(value & 0x7f) | 0x80, ...leb(Math.floor(value / 0x80))];
}
