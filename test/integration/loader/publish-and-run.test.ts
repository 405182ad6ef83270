import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";

import {
  DOCKER_REGISTRY_LOGIN,
  haveDockerRegistry,
  startDockerRegistry,
  type DockerRegistry,
} from "../../support/docker-registry.js";
import { guest } from "../../support/guests.js";
import { missingTool } from "../../support/tools.js";
import type { Step } from "./caller.js";
import { usePrograms, type Program } from "./program.js";

const PROGRAM = fileURLToPath(
  new URL("../../../dist/main.js", import.meta.url),
);
const DOC = readFileSync(
  new URL("../../../docs/registries.md", import.meta.url),
  "utf8",
);
const { username, password } = DOCKER_REGISTRY_LOGIN;
const ANSWER = "hello world";

/** What `module push` prints. */
interface Pushed {
  /** With the digest. */
  readonly ref: string;
  readonly digest: string;
  /** As it is to be pasted. */
  readonly module: JsonObject;
}

/** A step of a pipeline, as the documentation shows one. */
interface DocumentedStep {
  readonly credentials: readonly {
    readonly name: string;
    readonly secretRef: { readonly namespace: string; readonly name: string };
  }[];
  readonly input: { readonly module: JsonObject };
}

/** From a file of an author to a request of Crossplane, through a private registry. */
describe.skipIf(!haveDockerRegistry() || missingTool("openssl"))(
  "integration/loader/publish-and-run",
  () => {
    const programs = usePrograms("suite", [password]);
    let registry: DockerRegistry;
    let program: Program;

    beforeAll(async () => {
      registry = await startDockerRegistry({
        auth: DOCKER_REGISTRY_LOGIN,
        tls: true,
      });
      await mkdir(join(programs.dir(), "docker"));
      await writeFile(
        join(programs.dir(), "docker/config.json"),
        dockerConfigFor(registry.authority),
      );
      program = await programs.start([
        ...["--registry-ca", `${registry.authority}=${registry.caFile ?? ""}`],
      ]);
    });
    afterAll(async () => {
      await registry.stop();
    });

    async function push(
      guestName: string,
      tag: string,
      ...flags: readonly string[]
    ): Promise<Pushed> {
      const file = join(programs.dir(), "greeter.wasm");
      await writeFile(file, await guest(guestName));
      const ref = `${registry.authority}/example/greeter:${tag}`;
      const child = spawn(
        process.execPath,
        [PROGRAM, "module", "push", file, ref, ...flags],
        {
          stdio: ["ignore", "pipe", "pipe"],
          env: {
            PATH: process.env["PATH"],
            DOCKER_CONFIG: join(programs.dir(), "docker"),
            REGISTRY_CA: `${registry.authority}=${registry.caFile ?? ""}`,
          },
        },
      );
      const written = { stdout: "", stderr: "" };
      for (const name of ["stdout", "stderr"] as const)
        child[name].setEncoding("utf8").on("data", (chunk: string) => {
          written[name] += chunk;
        });
      expect(await once(child, "close"), written.stderr).toEqual([0, null]);
      const [pinned = "", ...blocks] = written.stdout.split("\n\n");
      const { module } = parse(blocks.join("\n\n")) as { module: JsonObject };
      return { ref: pinned, digest: pinned.split("@")[1] ?? "", module };
    }

    it("[C40] a private module runs as the documentation says, word for word", async () => {
      const { digest } = await push("v1/hello", "documented");
      const ref = `${registry.authority}/example/greeter@${digest}`;
      // What a reader has of his own: a registry, a login there, and a digest.
      const { step, secret } = privateRegistryOf(
        DOC.replaceAll("ghcr.io/example/greeter@sha256:2f1d…", ref)
          .replaceAll("ghcr.io", registry.authority)
          .replace("--docker-username=me", `--docker-username=${username}`)
          .replace('"$TOKEN"', password),
      );
      const named = step.credentials.map(({ name, secretRef }) => {
        expect(secretRef).toEqual(secret.ref);
        return [name, secret.data] as const;
      });

      const { messages } = await program.call({
        module: step.input.module,
        credentials: Object.fromEntries(named),
      });

      expect(messages).toEqual([ANSWER]);
    });

    it("[§9 Publish_EndToEnd] what push says to paste runs, and what it calls the digest is the tag's", async () => {
      const { digest, module, ref } = await push("v1/hello", "v1");
      const tag = `${registry.authority}/example/greeter:v1`;
      const zeros = `sha256:${"0".repeat(64)}`;

      const pasted = await program.call(withLogin(module));
      const locked = await program.call(inLockStep(tag, digest));
      const other = await program.call(inLockStep(tag, zeros));

      expect(ref).toBe(`${tag}@${digest}`);
      expect([pasted.messages, locked.messages]).toEqual([[ANSWER], [ANSWER]]);
      expect(other.messages).toEqual([
        `FATAL: cannot resolve module: module OCI ${tag}: the tag leads to ${digest}, module.oci.expectedDigest is ${zeros}`,
      ]);
    });

    it("[§9 E2E] a step in lock-step fails once its tag is published again, a pinned one goes on", async () => {
      const first = await push("v1/hello", "moving");
      const tag = `${registry.authority}/example/greeter:moving`;
      const before = await program.call(inLockStep(tag, first.digest));
      const second = await push("v1/echo", "moving", "--overwrite");

      const after = await program.call(inLockStep(tag, first.digest));
      const pinned = await program.call(withLogin(first.module));

      expect(before.messages).toEqual([ANSWER]);
      expect(second.digest).not.toBe(first.digest);
      expect(after.messages).toEqual([
        `FATAL: cannot resolve module: module OCI ${tag}: the tag leads to ${second.digest}, module.oci.expectedDigest is ${first.digest}`,
      ]);
      expect(after.response.desired).toBeUndefined();
      expect(pinned.messages).toEqual([ANSWER]);
    });

    /** A step with that `module:` and the login. */
    function withLogin({ type, oci }: JsonObject): Step {
      return {
        module: {
          ...(type === undefined ? {} : { type }),
          oci: { ...(oci as JsonObject), credentials: "pull" },
        },
        credentials: {
          pull: { ".dockerconfigjson": dockerConfigFor(registry.authority) },
        },
      };
    }

    function inLockStep(ref: string, expectedDigest: string): Step {
      return withLogin({ type: "OCI", oci: { ref, expectedDigest } });
    }
  },
);

/** As `kubectl create secret docker-registry` and `docker login` write it. */
function dockerConfigFor(server: string): string {
  const login = {
    username,
    password,
    auth: btoa(`${username}:${password}`),
  };
  return JSON.stringify({ auths: { [server]: login } });
}

/** The Secret that the documentation makes, and the step that it shows. */
function privateRegistryOf(doc: string) {
  const command =
    /kubectl create secret docker-registry (?<name>\S+) --namespace (?<namespace>\S+) \\\n +--docker-server=(?<server>\S+) --docker-username=(?<user>\S+) --docker-password="?(?<word>[^\s"]+)"?\n/u.exec(
      doc,
    )?.groups;
  const text = /```yaml\n(?<step>- step: [\s\S]*?)```/u.exec(doc)?.groups;
  const [step] = parse(text?.["step"] ?? "[]") as DocumentedStep[];
  if (command === undefined || step === undefined)
    throw new Error("the documentation shows no private registry");
  expect([command["user"], command["word"]]).toEqual([username, password]);
  return {
    step,
    secret: {
      ref: { namespace: command["namespace"], name: command["name"] },
      data: {
        ".dockerconfigjson": dockerConfigFor(command["server"] ?? ""),
      },
    },
  };
}
