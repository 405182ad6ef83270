import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";

import {
  startFunction,
  type ServerProcess,
} from "../../bench/server-process.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const greeterFile = (name: string) =>
  join(root, "examples/greeter", `${name}.yaml`);

/** Every example is built from source, served by the program and rendered by the program. */
describe("integration/examples", () => {
  let dir: string;
  let server: ServerProcess;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "examples-test-"));
    await mkdir(join(dir, "modules"));
    server = await startFunction({
      moduleDir: join(dir, "modules"),
      cacheDir: join(dir, "cache"),
    });
  });

  afterAll(async () => {
    await server.stop();
    await rm(dir, { recursive: true, force: true });
  });

  it.each([
    { example: "c", abi: 1 },
    { example: "go-raw", abi: 1 },
    { example: "typescript", abi: 2 },
  ])(
    "$example greets like every other example (ABI v$abi)",
    async ({ example }) => {
      await build(example);

      const { code, output } = await render("greeter.wasm", greeterFile("xr"));

      expect(code, output).toBe(0);
      expect(documents(output)).toEqual(expectedDocuments);
    },
    600_000,
  );

  it("keeps what an earlier step desired, and adds labels to it", async () => {
    await build("c");
    await build("wat");

    const { code, output } = await render(
      "greeter.wasm",
      greeterFile("xr"),
      // The echo must hand on what the greeter desired.
      { thenStep: "echo-v1.wasm" },
    );

    expect(code, output).toBe(0);
    expect(documents(output)).toEqual(expectedDocuments);
  }, 600_000);

  it("answers a greeting that is no string with a fatal result", async () => {
    await build("c");

    const { code, output } = await render("greeter.wasm", greeterFile("xr"), {
      greeting: 7,
    });

    expect(code).toBe(1);
    expect(output).toContain('pipeline step "greet" returned a fatal result: ');
    expect(output).toContain("greeting");
  }, 600_000);

  async function build(example: string): Promise<void> {
    const { code, output } = await run("bash", [
      join(root, "examples", example, "build"),
    ]);
    expect(code, output).toBe(0);
    const file = example === "wat" ? "echo-v1.wasm" : "greeter.wasm";
    await copyFile(
      join(root, "examples", example, "out", file),
      join(dir, "modules", file),
    );
  }

  async function render(
    modulePath: string,
    xrFile: string,
    options: { greeting?: unknown; thenStep?: string } = {},
  ): Promise<{ code: number | null; output: string }> {
    const step = (name: string, path: string) => ({
      step: name,
      functionRef: { name: "function-wasm" },
      input: {
        apiVersion: "wasm.fn.crossplane.io/v1",
        kind: "Input",
        module: { type: "Path", path },
        config: {
          greeting: options.greeting ?? "hello",
          labels: { team: "platform" },
        },
      },
    });
    const composition = join(dir, "composition.json");
    await writeFile(
      composition,
      JSON.stringify({
        apiVersion: "apiextensions.crossplane.io/v1",
        kind: "Composition",
        metadata: { name: "greeting" },
        spec: {
          compositeTypeRef: {
            apiVersion: "example.crossplane.io/v1",
            kind: "Greeting",
          },
          mode: "Pipeline",
          pipeline: [
            step("greet", modulePath),
            ...(options.thenStep === undefined
              ? []
              : [step("echo", options.thenStep)]),
          ],
        },
      }),
    );
    return await run(process.execPath, [
      join(root, "dist/main.js"),
      "render",
      ...[xrFile, composition, greeterFile("functions")],
      ...["--target", server.address, "--timeout", "3m"],
    ]);
  }
});

const expectedDocuments = [
  expect.objectContaining({
    apiVersion: "example.crossplane.io/v1",
    kind: "Greeting",
  }) as unknown,
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: expect.objectContaining({
      labels: {
        "app.kubernetes.io/managed-by": "function-wasm",
        "crossplane.io/composite": "world",
        team: "platform",
      },
    }) as unknown,
    data: { greeting: "hello, world" },
  },
];

function documents(output: string): unknown[] {
  return parseAllDocuments(output).map(
    (document) => document.toJS() as unknown,
  );
}

async function run(
  command: string,
  args: string[],
): Promise<{ code: number | null; output: string }> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}
