import path from "node:path";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { describe, expect, it } from "vitest";

import { flags } from "../../src/config.js";
import { NATIVE_FILES } from "../../scripts/lib/xpkg/app-files.mjs";
import {
  packageStream,
  readDocuments,
} from "../../scripts/lib/xpkg/package-stream.mjs";
import { committedFiles, root, textOf } from "./committed-files.js";
import { deploymentRuntimeConfigSchema } from "./deployment-runtime-config.js";
import { type Instruction, readDockerfile, type Stage } from "./dockerfile.js";

const MANIFEST = JSON.parse(textOf("package.json")) as {
  readonly name: string;
  readonly license: string;
  readonly files: readonly string[];
};

describe("package/", () => {
  it("is one Function for Compositions that Crossplane would accept, and the Input's CRD", () => {
    const stream = packageStream(path.join(root, "package"));

    const [meta, ...others] = readDocuments(stream, "package.yaml");
    expect(meta).toMatchObject({
      apiVersion: "meta.pkg.crossplane.io/v1",
      kind: "Function",
      metadata: {
        name: MANIFEST.name,
        annotations: { "meta.crossplane.io/license": MANIFEST.license },
      },
      spec: {
        crossplane: { version: ">=v1.17.0-0" },
        capabilities: ["composition"],
      },
    });
    expect(others).toEqual([
      parse(textOf("package/input/wasm.fn.crossplane.io_inputs.yaml")),
    ]);
  });
});

/** Docker is not available to these tests: they read the file, and do not build it. */
describe("Dockerfile", () => {
  const stages = readDockerfile(textOf("Dockerfile"));
  const [native, build, runtime] = stages;

  it("builds with Rust 1.95 and Node 24 and runs on Node 24 without a shell, all on Debian 12", () => {
    expect(stages.map(({ base, alias }) => ({ base, alias }))).toEqual([
      { base: "docker.io/library/rust:1.95-slim-bookworm", alias: "native" },
      { base: "docker.io/library/node:24-bookworm-slim", alias: "build" },
      { base: "gcr.io/distroless/nodejs24-debian12", alias: null },
    ]);
  });

  it("builds the native parts from the lock file, under the names that the program looks for", () => {
    const text = of(native, "RUN").join(" && ");

    expect(of(native, "COPY")).toEqual(["native native"]);
    expect(text).toContain("cargo build --release --locked --workspace");
    expect(of(build, "COPY")).toContain("/out build/native");
    for (const name of NATIVE_FILES)
      expect(text.split(" ")).toContain(path.basename(name));
  });

  it("installs from the lock file, without running what packages bring, and leaves development out", () => {
    const commands = of(build, "RUN")
      .flatMap((text) => text.split("&&"))
      .map((text) => text.trim());
    const installs = commands.filter((text) => text.startsWith("npm "));

    expect(installs).toEqual([
      "npm ci --ignore-scripts",
      "npm ci --ignore-scripts --omit=dev",
    ]);
  });

  it("has in it what package.json says belongs to the program", () => {
    const copied = instructions(build, "COPY")
      .filter(({ flags: given }) => given.length === 0)
      .flatMap(sources);
    const moved = of(build, "RUN").join(" ");

    for (const name of MANIFEST.files.filter((each) => each !== "dist"))
      expect(copied).toContain(name);
    expect(copied).toEqual(expect.arrayContaining(["package.json", "LICENSE"]));
    expect(moved).toContain("mv /src/dist /src/node_modules .");
  });

  it("makes everything readable for all before the last stage takes it", () => {
    const last = of(build, "RUN").at(-1)?.split(" && ");

    expect(build?.instructions.at(-1)?.name).toBe("RUN");
    expect(last).toContain("chmod -R u=rwX,go=rX .");
    expect(instructions(runtime, "COPY")).toEqual([
      { name: "COPY", flags: ["--from=build"], rest: "/app /app" },
    ]);
  });

  it("runs nothing in the last stage, so that it needs no shell", () => {
    const names = runtime?.instructions.map(({ name }) => name);

    expect(names).toEqual([
      ...["ENV", "WORKDIR", "COPY", "EXPOSE", "USER", "ENTRYPOINT"],
    ]);
  });

  it("starts the program by ENTRYPOINT in exec form, as a numeric user that is not root", () => {
    const [entrypoint = ""] = of(runtime, "ENTRYPOINT");
    const [user = ""] = of(runtime, "USER");

    expect(JSON.parse(entrypoint)).toEqual([
      "/nodejs/bin/node",
      "/app/dist/main.js",
    ]);
    const ids = user.split(":").map(Number);
    expect(ids).toHaveLength(2);
    expect(ids.every((id) => Number.isInteger(id) && id > 0)).toBe(true);
    expect(of(runtime, "WORKDIR")).toEqual(["/app"]);
    expect(of(runtime, "ENV")).toEqual(["NODE_ENV=production"]);
  });

  it("exposes the ports that the program has by default", () => {
    const defaults = ["address", "metrics-address", "health-address"].map(
      (name) => flags.find((flag) => flag.name === name)?.default?.slice(1),
    );

    expect(of(runtime, "EXPOSE")[0]?.split(" ")).toEqual(defaults);
  });

  it("gets no secrets, neither as variables nor as files", () => {
    const all = stages.flatMap((stage) => stage.instructions);
    const variables = all
      .filter(({ name }) => name === "ARG" || name === "ENV")
      .map(({ rest }) => rest.split("=")[0]);

    expect(variables).toEqual(["CARGO_TARGET_DIR", "NODE_ENV"]);
    expect(all.flatMap(({ flags: given }) => given)).toEqual([
      "--from=native",
      "--from=build",
    ]);
  });

  it("is given the files that it copies, and no others", () => {
    const lines = textOf(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    const copied = stages
      .flatMap((stage) => instructions(stage, "COPY"))
      .filter(({ flags: given }) => given.length === 0)
      .flatMap(sources);
    const files = committedFiles();

    expect(lines[0]).toBe("*");
    const admitted = lines.filter((line) => line.startsWith("!"));
    expect(new Set(admitted.map((line) => line.slice(1)))).toEqual(
      new Set(copied),
    );
    // What cargo leaves in a clone that is built by hand.
    expect(lines.at(-1)).toBe("native/target");
    for (const name of copied)
      expect(
        files.some((file) => file === name || file.startsWith(`${name}/`)),
      ).toBe(true);
  });
});

describe("examples/package/deployment-runtime-config.yaml", () => {
  const config = parse(
    textOf("examples/package/deployment-runtime-config.yaml"),
  ) as RuntimeConfig;
  const deployment = config.spec.deploymentTemplate.spec;
  const pod = deployment.template.spec;
  const [container] = pod.containers;
  const validate = new Ajv({ allowUnionTypes: true }).compile(
    deploymentRuntimeConfigSchema,
  );

  it("has the fields that the API server asks for, and none that it does not know", () => {
    validate(config);

    expect(validate.errors).toBeNull();
  });

  it.each([
    {
      name: "no selector",
      edit: (copy: RuntimeConfig) => {
        delete copy.spec.deploymentTemplate.spec.selector;
      },
      want: "must have required property 'selector'",
    },
    {
      name: "no template",
      edit: (copy: RuntimeConfig) => {
        Reflect.deleteProperty(copy.spec.deploymentTemplate.spec, "template");
      },
      want: "must have required property 'template'",
    },
    {
      name: "a misspelt field",
      edit: (copy: RuntimeConfig) => {
        const [first] =
          copy.spec.deploymentTemplate.spec.template.spec.containers;
        Object.assign(first ?? {}, { readinesProbe: {} });
      },
      want: "must NOT have additional properties",
    },
  ])("would be refused with $name", ({ edit, want }) => {
    const copy = structuredClone(config);
    edit(copy);

    expect(validate(copy)).toBe(false);
    expect(validate.errors?.[0]?.message).toBe(want);
  });

  it("is of the container that Crossplane runs, and of no other", () => {
    expect(pod.containers.map(({ name }) => name)).toEqual(["package-runtime"]);
    expect(deployment.selector).toEqual({});
  });

  it("gives flags that there are, and no variable that Crossplane sets", () => {
    const names = container?.args.map((arg) => arg.split("=")[0]?.slice(2));
    const known: string[] = flags.map(({ name }) => name);

    expect(names).toContain("cache-dir");
    for (const name of names ?? []) expect(known).toContain(name);
    expect(container?.env).toBeUndefined();
  });

  it("has a read-only root, and a bounded volume for the cache", () => {
    const cacheDir = valueOf("cache-dir");
    const mount = container?.volumeMounts.find(
      ({ mountPath }) => mountPath === cacheDir,
    );
    const volume = pod.volumes.find(({ name }) => name === mount?.name);

    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      privileged: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: 2000,
      runAsGroup: 2000,
      capabilities: { drop: ["ALL"] },
    });
    expect(mount?.readOnly).toBeUndefined();
    expect(volume?.emptyDir?.sizeLimit).toBe("2Gi");
    expect(Number(valueOf("max-cache-size")) * 2 ** 20).toBeLessThan(2 ** 31);
    expect(Number(valueOf("max-cache-size"))).toBeGreaterThan(0);
  });

  it("mounts the policy where the flag looks for it", () => {
    const dir = path.dirname(valueOf("sandbox-policy-file"));
    const mount = container?.volumeMounts.find(
      ({ mountPath }) => mountPath === dir,
    );
    const volume = pod.volumes.find(({ name }) => name === mount?.name);

    expect(mount?.readOnly).toBe(true);
    expect(volume?.configMap?.name).toBe("function-wasm-policy");
    expect(textOf("docs/install.md")).toContain(
      "create configmap function-wasm-policy",
    );
  });

  it("is probed where the program answers, and bounded", () => {
    const port = Number(
      flags.find(({ name }) => name === "health-address")?.default?.slice(1),
    );

    expect(container?.readinessProbe.httpGet).toEqual({
      path: "/readyz",
      port,
    });
    expect(container?.livenessProbe.httpGet).toEqual({ path: "/livez", port });
    expect(container?.resources.limits).toEqual({ memory: "2Gi" });
    expect(Number(valueOf("max-total-run-memory"))).toBeLessThan(2048);
  });

  it("is what the example's Function names", () => {
    expect(parse(textOf("examples/package/function.yaml"))).toMatchObject({
      apiVersion: "pkg.crossplane.io/v1",
      kind: "Function",
      metadata: { name: MANIFEST.name },
      spec: {
        runtimeConfigRef: {
          apiVersion: config.apiVersion,
          kind: config.kind,
          name: config.metadata.name,
        },
      },
    });
  });

  function valueOf(name: string): string {
    const arg = container?.args.find((each) => each.startsWith(`--${name}=`));
    return arg?.slice(name.length + 3) ?? "";
  }
});

describe("docs/install.md and docs/releasing.md", () => {
  it.each(["install", "releasing"])("%s names files that there are", (name) => {
    const text = textOf(`docs/${name}.md`);
    const named = [
      ...text.matchAll(/\b(?:examples\/package|scripts)\/[\w.-]+\w/g),
    ].map(([file]) => file);

    expect(named.length).toBeGreaterThan(2);
    const files = committedFiles();
    expect(named.filter((file) => !files.includes(file))).toEqual([]);
  });
});

describe("docs/install.md", () => {
  it("gives kubectl files by their places in the clone", () => {
    const named = [
      ...textOf("docs/install.md").matchAll(/ (?:--from-file|-f) (\S+)/g),
    ].map(([, file]) => file);

    expect(named.length).toBeGreaterThan(2);
    const files = committedFiles();
    expect(named.filter((file) => !files.includes(file ?? ""))).toEqual([]);
  });
});

interface RuntimeConfig {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly deploymentTemplate: {
      readonly spec: {
        selector?: object;
        readonly template: {
          readonly spec: {
            readonly containers: readonly Container[];
            readonly volumes: readonly {
              readonly name: string;
              readonly emptyDir?: { readonly sizeLimit: string };
              readonly configMap?: { readonly name: string };
            }[];
          };
        };
      };
    };
  };
}

interface Container {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: unknown;
  readonly readinessProbe: { readonly httpGet: object };
  readonly livenessProbe: { readonly httpGet: object };
  readonly resources: { readonly limits: object };
  readonly securityContext: object;
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
}

function instructions(stage: Stage | undefined, name: string): Instruction[] {
  return (stage?.instructions ?? []).filter((each) => each.name === name);
}

function of(stage: Stage | undefined, name: string): string[] {
  return instructions(stage, name).map(({ rest }) => rest);
}

/** What a COPY takes. */
function sources({ rest }: Instruction): string[] {
  return rest.split(" ").slice(0, -1);
}
