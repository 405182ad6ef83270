import { Buffer } from "node:buffer";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { architectureOf } from "../../../scripts/lib/xpkg/elf.mjs";
import {
  type Image,
  layerOf,
  withLayer,
} from "../../../scripts/lib/xpkg/image.mjs";
import { runtimeImage } from "../../../scripts/lib/xpkg/runtime-image.mjs";
import { librariesIn } from "../../../scripts/lib/xpkg/shared-libraries.mjs";
import {
  type ReadEntry,
  readTar,
} from "../../../scripts/lib/xpkg/tar-reader.mjs";
import { smallImage } from "./xpkg-images.js";

const AMD64 = 0x3e;

let root: string;

beforeEach(() => {
  root = mkdtempSync(path.join(os.tmpdir(), "xpkg-image-test-"));
  const locked = {
    name: "function-wasm",
    version: "1.2.3",
    description: "what it does",
    license: "Apache-2.0",
  };
  const files = ["dist", "proto"];
  write("package.json", JSON.stringify({ ...locked, files }));
  write(
    "package-lock.json",
    JSON.stringify({ ...locked, lockfileVersion: 3, packages: { "": locked } }),
  );
  write("LICENSE", "licence");
  write("dist/main.js", "main", 0o700);
  write("dist/deep/er.js", "er", 0o600);
  write("proto/x.proto", "proto");
  write("secret.pem", "hunter2");
  write("build/native/wasmtime-compile", elf(AMD64), 0o755);
  write("build/native/wasmtime-node.node", elf(AMD64));
  write("build/native/stamp", "stamp");
});

afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

describe("scripts/build-image", () => {
  it("adds the program to the base, readable for all and owned by root, and nothing else of the clone", () => {
    const base = smallImage();

    const image = runtimeImage(root, base);

    expect(image.layers.slice(0, -1)).toEqual(base.layers);
    const files = addedFiles(image).filter(
      (entry) => !entry.path.startsWith("app/node_modules"),
    );
    expect(files.map(({ path: name, mode }) => [name, mode])).toEqual([
      ["app", 0o755],
      ["app/LICENSE", 0o644],
      ["app/build", 0o755],
      ["app/build/native", 0o755],
      ["app/build/native/wasmtime-compile", 0o755],
      ["app/build/native/wasmtime-node.node", 0o644],
      ["app/dist", 0o755],
      ["app/dist/deep", 0o755],
      ["app/dist/deep/er.js", 0o644],
      ["app/dist/main.js", 0o755],
      ["app/package.json", 0o644],
      ["app/proto", 0o755],
      ["app/proto/x.proto", 0o644],
    ]);
  });

  it("starts the program as a user that is not root, and keeps the base's settings", () => {
    const image = runtimeImage(root, smallImage());

    expect(image.config).toMatchObject({
      os: "linux",
      architecture: "amd64",
      config: {
        Entrypoint: ["/nodejs/bin/node", "/app/dist/main.js"],
        Cmd: null,
        User: "65532:65532",
        WorkingDir: "/app",
        Env: ["PATH=/nodejs/bin", "NODE_ENV=production"],
        ExposedPorts: { "9443/tcp": {}, "8080/tcp": {}, "8081/tcp": {} },
        Labels: {
          kept: "yes",
          "org.opencontainers.image.title": "function-wasm",
          "org.opencontainers.image.version": "1.2.3",
          "org.opencontainers.image.licenses": "Apache-2.0",
          "org.opencontainers.image.description": "what it does",
        },
      },
    });
  });

  it("gives the same bytes whatever the umask and the order of files were", () => {
    const first = runtimeImage(root, smallImage());
    rmSync(path.join(root, "dist"), { recursive: true });
    write("dist/deep/er.js", "er", 0o644);
    write("dist/main.js", "main", 0o755);

    const second = runtimeImage(root, smallImage());

    expect(second).toEqual(first);
  });

  it("finds Node where other base images have it", () => {
    const layer = layerOf([
      {
        path: "usr/local/bin/node",
        mode: 0o755,
        bytes: Buffer.from("node"),
      },
    ]);
    const config = { architecture: "amd64", os: "linux" };
    const base = withLayer({ config, layers: [] }, layer, "test", {});

    const image = runtimeImage(root, base);

    expect(image.config["config"]).toMatchObject({
      Entrypoint: ["/usr/local/bin/node", "/app/dist/main.js"],
    });
  });

  it.each([
    {
      name: "a base for another architecture",
      arrange: () => smallImage("arm64"),
      want: "the base image is for arm64, the program was built for amd64",
    },
    {
      name: "a base without Node",
      arrange: () => {
        const config = { architecture: "amd64", os: "linux" };
        return { config, layers: [] };
      },
      want: "the base image has no Node: expected one of nodejs/bin/node, usr/local/bin/node, usr/bin/node",
    },
    {
      name: "a clone without dist/",
      arrange: () => {
        rmSync(path.join(root, "dist"), { recursive: true });
        return smallImage();
      },
      want: "there is no dist: run npm run build first",
    },
    {
      name: "a clone without the addon",
      arrange: () => {
        rmSync(path.join(root, "build/native/wasmtime-node.node"));
        return smallImage();
      },
      want: "there is no build/native/wasmtime-node.node: run npm run build first",
    },
    {
      name: "a link, which could lead to a secret",
      arrange: () => {
        symlinkSync("../secret.pem", path.join(root, "dist/link"));
        return smallImage();
      },
      want: /dist\/link is neither a file nor a directory$/,
    },
    {
      name: "an addon for another system",
      arrange: () => {
        write("build/native/wasmtime-node.node", "MZ".repeat(20));
        return smallImage();
      },
      want: "build/native/wasmtime-node.node is not built for Linux on amd64 or arm64: build the image there",
    },
  ])("refuses $name", ({ arrange, want }) => {
    const base = arrange();

    expect(() => runtimeImage(root, base)).toThrow(want);
  });
});

describe("scripts/lib/xpkg/elf", () => {
  it("knows this machine's Node", () => {
    const want = { x64: "amd64", arm64: "arm64" }[process.arch as string];

    expect(architectureOf(readFileSync(process.execPath), "node")).toBe(want);
  });

  it.each([
    { name: "arm64", bytes: elf(0xb7), want: "arm64" },
    { name: "amd64", bytes: elf(AMD64), want: "amd64" },
  ])("knows $name", ({ bytes, want }) => {
    expect(architectureOf(bytes, "x")).toBe(want);
  });

  it("refuses others", () => {
    expect(() => architectureOf(elf(3), "x")).toThrow(/^x is not built for /);
  });
});

describe("scripts/lib/xpkg/shared-libraries", () => {
  it("takes the paths that ldd names, and not the kernel's own library", () => {
    const text =
      "\tlinux-vdso.so.1 (0x00007f801f3e1000)\n" +
      "\tlibdl.so.2 => /lib/x86_64-linux-gnu/libdl.so.2 (0x00007f801f3cb000)\n" +
      "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f801ee1e000)\n" +
      "\t/lib64/ld-linux-x86-64.so.2 (0x00007f801f3e3000)\n";

    expect(librariesIn(text)).toEqual([
      "/lib/x86_64-linux-gnu/libdl.so.2",
      "/lib/x86_64-linux-gnu/libc.so.6",
      "/lib64/ld-linux-x86-64.so.2",
    ]);
  });

  it("says which one is missing", () => {
    expect(() => librariesIn("\tlibx.so.1 => not found\n")).toThrow(
      "a shared library is missing: libx.so.1",
    );
  });
});

function addedFiles({ layers }: Image): ReadEntry[] {
  return readTar(gunzipSync(layers.at(-1)?.gzip ?? ""));
}

/** As much of an ELF header as is looked at. */
function elf(machine: number): Buffer {
  const bytes = Buffer.alloc(64);
  bytes.write("\x7fELF", "latin1");
  bytes.writeUInt16LE(machine, 18);
  return bytes;
}

function write(name: string, content: string | Buffer, mode = 0o644): void {
  const file = path.join(root, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, mode);
}
