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
import { missingTool, type Tool } from "../support/tools.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const greeterFile = (name: string) =>
  join(root, "examples/greeter", `${name}.yaml`);

/** Every example is built from source, served by the program and rendered by the program. */
describe("integration/examples", () => {
  let dir: string;
  let server: ServerProcess;
  const built = new Map<string, Promise<void>>();

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

  const greeters: readonly { example: string; abi: number; tool?: Tool }[] = [
    { example: "c", abi: 1, tool: "clang" },
    { example: "go-raw", abi: 1, tool: "go" },
    { example: "typescript", abi: 2 },
  ];
  for (const { example, abi, tool } of greeters) {
    it.skipIf(tool !== undefined && missingTool(tool))(
      `${example} greets like every other example (ABI v${abi})`,
      async () => {
        await build(example);

        const { code, output } = await render(example, greeterFile("xr"));

        expect(code, output).toBe(0);
        expect(documents(output)).toEqual(expectedDocuments);
      },
      600_000,
    );
  }

  it("keeps what an earlier step desired, and adds labels to it", async () => {
    await build("typescript");
    await build("wat");

    // The echo must hand on what the greeter desired.
    const { code, output } = await render("typescript", greeterFile("xr"), {
      thenStep: "wat",
    });

    expect(code, output).toBe(0);
    expect(documents(output)).toEqual(expectedDocuments);
  }, 600_000);

  it("answers a greeting that is no string with a fatal result", async () => {
    await build("typescript");

    const { code, output } = await render("typescript", greeterFile("xr"), {
      greeting: 7,
    });

    expect(code).toBe(1);
    expect(output).toContain('pipeline step "greet" returned a fatal result: ');
    expect(output).toContain("greeting");
  }, 600_000);

  /** Builds `<example>.wasm`, once. */
  async function build(example: string): Promise<void> {
    const building = built.get(example) ?? buildOnce(example);
    built.set(example, building);
    await building;
  }

  async function buildOnce(example: string): Promise<void> {
    const { code, output } = await run("bash", [
      join(root, "examples", example, "build"),
    ]);
    expect(code, output).toBe(0);
    const file = example === "wat" ? "echo-v1.wasm" : "greeter.wasm";
    await copyFile(
      join(root, "examples", example, "out", file),
      join(dir, "modules", `${example}.wasm`),
    );
  }

  async function render(
    example: string,
    xrFile: string,
    options: { greeting?: unknown; thenStep?: string } = {},
  ): Promise<{ code: number | null; output: string }> {
    const step = (name: string, module: string) => ({
      step: name,
      functionRef: { name: "function-wasm" },
      input: {
        apiVersion: "wasm.fn.crossplane.io/v1",
        kind: "Input",
        module: { type: "Path", path: `${module}.wasm` },
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
            step("greet", example),
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
