import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { guest } from "../support/guests.js";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The built program, as a shell runs it. */
describe("integration/validate", () => {
  let dir: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "validate-test-"));
    for (const name of ["modules", "tmp"]) await mkdir(join(dir, name));
    const put = (name: string, content: string | Uint8Array) =>
      writeFile(join(dir, "modules", name), content);
    await put("v1.wasm", await guest("v1/hello"));
    await put("v2.wasm", await guest("v2/hello"));
    await put("shape.wasm", await guest("shape/no-run"));
    await put("text.wasm", "<html>");
    await put("v1.yaml", "abi: 1\nrequires: {credentials: [db]}\n");
  });

  afterAll(async () => {
    await rm(dir, { recursive: true, force: true });
  });

  it("ends with 0, and writes nothing but its report", async () => {
    const file = await write("good.yaml", composition({ path: "v1.wasm" }));

    expect(await validate([file])).toEqual({
      code: 0,
      stderr: "",
      stdout: `\
${file}: Composition/things pipeline[0] a: OK (Path v1.wasm, limits timeout 30s memory 512Mi, compositionPolicy)
  warning: module.type Path names a file under the --module-dir of each runtime, and nothing pins what is in it: use OCI or HTTP in a Composition
1 admitted, 0 refused, 1 warning
`,
    });
  });

  it("ends with 1 when a step is refused", async () => {
    const text = composition({ path: "v1.wasm" }) + composition({ pth: "x" });
    const { code, stdout, stderr } = await validate(["-"], text);

    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toContain(
      "<stdin>: Composition/things pipeline[0] a: refused [field-unknown]: unknown field module.pth, did you mean module.path\n",
    );
    expect(stdout).toMatch(/\n1 admitted, 1 refused, 1 warning\n$/);
  });

  it.each([
    {
      name: "a file that is not there",
      argv: ["/nowhere.yaml"],
      want: /^validate: cannot read "\/nowhere\.yaml": ENOENT.*\n$/,
    },
    {
      name: "nothing to judge",
      argv: ["-"],
      want: /^validate: nothing to judge: .*\n$/,
    },
    {
      name: "a flag that does not parse",
      argv: ["-", "--module-timeout=x"],
      want: /^validate: --module-timeout: expected .*\n$/,
    },
    {
      name: "a flag that there is not",
      argv: ["-", "--nope"],
      want: /^error: unknown option '--nope'\n/,
    },
    {
      name: "no file",
      argv: [],
      want: /^error: missing required argument 'files'\n/,
    },
    {
      name: "a bad operator policy",
      argv: ["-", "--sandbox-policy-file=/nowhere"],
      want: /^validate: cannot read the operator policy .*\n$/,
    },
    {
      name: "aliases of aliases",
      argv: ["-"],
      stdin: bomb(),
      want: /^validate: <stdin>, line \d: the aliases repeat more than 1000000 values\n$/,
    },
    {
      name: "a flow list 5000 levels deep",
      argv: ["-"],
      stdin: "[".repeat(5000) + "]".repeat(5000),
      want: /^validate: <stdin>, line 1: it nests deeper than 256 levels\n$/,
    },
    {
      name: "a key that comes twice",
      argv: ["-"],
      stdin: "a: 1\r\nb: 2\r\na: 3\r\n",
      want: /^validate: <stdin>, line 3: the key "a" comes twice\n$/,
    },
  ])("ends with 2 for $name", async ({ argv, stdin = "", want }) => {
    const { code, stdout, stderr } = await validate(argv, stdin);

    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(want);
  });

  it("explains itself", async () => {
    const { code, stdout, stderr } = await validate(["--help"]);

    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("Exit code: 0 every Input is admitted");
    expect(stdout).toContain("--module-memory-limit <MB>");
    expect(stdout).toContain("--sandbox-policy-file <file>");
    expect(stdout).not.toContain("SIGHUP");
    expect(stdout).not.toContain("--address");
  });

  it("compiles modules with --resolve, and leaves nothing behind", async () => {
    const steps = ["v1", "v2", "shape", "text", "gone"].map((name) =>
      composition({ path: `${name}.wasm` }),
    );

    const { code, stdout, stderr } = await validate(
      ["-", "--resolve", "--output=json"],
      steps.join(""),
    );

    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(lines).toMatchObject([
      { verdict: "admitted", credentials: [], env: [] },
      { verdict: "admitted" },
      { verdict: "refused", code: "module-invalid" },
      { verdict: "refused", code: "module-invalid" },
      { verdict: "refused", code: "module-not-found" },
    ]);
    expect(lines[2]?.["message"]).toMatch(/^module Path shape\.wasm /);
    expect(await readdir(join(dir, "tmp"))).toEqual([]);
  });

  it("grants what both policies permit with --resolve", async () => {
    const policy = await write(
      "p.cedar",
      'permit(principal, action == Action::"spendCredential", resource == Credential::"db");\n',
    );
    const input = composition({ path: "v1.wasm", manifestPath: "v1.yaml" }, [
      {
        name: "db",
        source: "Secret",
        secretRef: { namespace: "a", name: "b" },
      },
    ]);

    const granted = await validate(
      ["-", "--resolve", `--sandbox-policy-file=${policy}`],
      input,
    );
    const refused = await validate(["-", "--resolve"], input);

    expect(granted).toMatchObject({ code: 0, stderr: "" });
    expect(granted.stdout).toContain("\n  credentials: db\n");
    expect(refused.stdout).toContain("refused [operator-policy-missing]");
    expect(refused.code).toBe(1);
  });

  it("judges thousands of steps", async () => {
    const text = Array.from({ length: 2000 }, (_, i) =>
      composition({ path: `m-${i}.wasm` }),
    ).join("");

    const { code, stdout } = await validate(["-"], text);

    expect(code).toBe(0);
    expect(stdout).toMatch(/\n2000 admitted, 0 refused, 2000 warnings\n$/);
  });

  it("admits the Compositions of the examples", async () => {
    const { code, stdout, stderr } = await validate([
      join(root, "examples/greeter/composition.yaml"),
    ]);

    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/\n[1-9]\d* admitted, 0 refused, /);
  });

  it("does not take a report that nobody reads for a success", async () => {
    const text = Array.from({ length: 2000 }, () =>
      composition({ path: "v1.wasm" }),
    ).join("");
    const child = start(["-"]);
    child.stdout.destroy();
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk;
    });

    child.stdin.end(text);

    const [code] = (await once(child, "close")) as [number | null];
    expect({ code, stderr }).toEqual({ code: 2, stderr: "" });
  });

  function start(argv: readonly string[]) {
    return spawn(
      process.execPath,
      [
        join(root, "dist/main.js"),
        "validate",
        ...argv,
        `--module-dir=${join(dir, "modules")}`,
      ],
      {
        stdio: ["pipe", "pipe", "pipe"],
        env: { PATH: process.env["PATH"], TMPDIR: join(dir, "tmp") },
      },
    );
  }

  async function validate(
    argv: readonly string[],
    stdin = "",
  ): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = start(argv);
    const written = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (chunk: string) => {
        written[name] += chunk;
      });
    }
    // It may have ended already.
    child.stdin.on("error", () => undefined).end(stdin);
    const [code] = (await once(child, "close")) as [number | null];
    return { code, ...written };
  }

  async function write(name: string, content: string): Promise<string> {
    const file = join(dir, name);
    await writeFile(file, content);
    return file;
  }
});

/** A document: a Composition of one step, whose module is this Path source. */
function composition(
  module: Readonly<Record<string, string>>,
  credentials: readonly unknown[] = [],
): string {
  const input = {
    apiVersion: "wasm.fn.crossplane.io/v1",
    kind: "Input",
    module: { type: "Path", ...module },
    compositionPolicy:
      'permit(principal, action == Action::"pullModule", resource);',
  };
  const step = { step: "a", functionRef: { name: "fn" }, input, credentials };
  const object = {
    apiVersion: "apiextensions.crossplane.io/v1",
    kind: "Composition",
    metadata: { name: "things" },
    spec: { mode: "Pipeline", pipeline: [step] },
  };
  return `---\n${JSON.stringify(object)}\n`;
}

/** A few hundred bytes that stand for more than 10^8 values. */
function bomb(): string {
  const names = "bcdefgh".split("");
  const lines = names.map((name, i) => {
    const previous = `*${"abcdefg".charAt(i)},`;
    return `${name}: &${name} [${previous.repeat(10)}]\n`;
  });
  return `a: &a [${"x,".repeat(10)}]\n${lines.join("")}`;
}
