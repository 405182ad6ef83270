import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";

import {
  DOCKER_REGISTRY_LOGIN,
  haveDockerRegistry,
  startDockerRegistry,
  type DockerRegistry,
} from "../../support/docker-registry.js";
import { guest } from "../../support/guests.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "../../unit/function/certificates.js";
import type { Step } from "./caller.js";
import { usePrograms, type Program, type Programs } from "./program.js";
import { createPublisher, type Publisher } from "./publish.js";

const { username, password } = DOCKER_REGISTRY_LOGIN;
const AUTH = btoa(`${username}:${password}`);
const WRONG_PASSWORD = "hunter2-wrong";
const WRONG_AUTH = btoa(`${username}:${WRONG_PASSWORD}`);
const SECRETS = [password, AUTH, WRONG_PASSWORD, WRONG_AUTH];

/** What `wasmfn.yaml` becomes in an artifact. */
const MANIFEST = JSON.stringify({
  abi: 1,
  name: "environ-dump",
  requires: {
    env: [{ name: "DATABASE_URL", fromCredential: { name: "db", key: "url" } }],
  },
});
const DATABASE = { db: { url: "postgres://u:hunter2@db" } };
const ANSWER = "DATABASE_URL=postgres://u:hunter2@db;";

/** A private registry with TLS by its own authority, as people have them, and the whole program. */
describe.skipIf(!haveDockerRegistry() || missingTool("openssl"))(
  "integration/loader/registry",
  () => {
    let registry: DockerRegistry;
    let publisher: Publisher;
    let isStopped = false;
    /** `localhost:<port>/team/environ-dump@sha256:…` */
    let pinned: string;
    let manifestDigest: string;

    beforeAll(async () => {
      registry = await startDockerRegistry({
        auth: DOCKER_REGISTRY_LOGIN,
        tls: true,
      });
      publisher = createPublisher(registry);
      const wasm = await guest("wasi/environ-dump");
      const repository = "team/environ-dump";
      const module = { wasm, manifest: MANIFEST, tag: "v1" };
      ({ manifestDigest } = await publisher.module(repository, module));
      pinned = `${registry.authority}/${repository}@${manifestDigest}`;
    });
    afterEach(async () => {
      if (isStopped) await registry.restart();
      isStopped = false;
    });
    afterAll(async () => {
      await publisher.close();
      await registry.stop();
    });

    async function goOffline(): Promise<void> {
      isStopped = true;
      await registry.stop({ keepFiles: true });
    }

    async function start(
      programs: Programs,
      ...flags: readonly string[]
    ): Promise<Program> {
      const policyFile = join(programs.dir(), "policy.cedar");
      const keyFile = join(programs.dir(), "key");
      await writeFile(policyFile, "permit (principal, action, resource);");
      // The same one for every program of a test.
      await writeFile(keyFile, "hunter2".padEnd(32), { flag: "wx" }).catch(
        () => null,
      );
      return await programs.start([
        ...["--registry-ca", `${registry.authority}=${registry.caFile ?? ""}`],
        ...["--sandbox-policy-file", policyFile],
        ...["--artifact-key-file", keyFile],
        // All that it can say, among which no secret may be.
        "--debug",
        ...flags,
      ]);
    }

    /** A step with the right pull credential, unless it says otherwise. */
    function step(
      oci: Readonly<Record<string, string>>,
      pull: { readonly auth: string } | null = { auth: AUTH },
    ): Step {
      const config = { auths: { [registry.authority]: pull } };
      const secret = { ".dockerconfigjson": JSON.stringify(config) };
      return {
        module: { type: "OCI", oci: { credentials: "pull", ...oci } },
        credentials: { ...DATABASE, ...(pull && { pull: secret }) },
      };
    }

    /** A step that names no pull credential and has none. */
    function anonymous(ref: string): Step {
      return {
        module: { type: "OCI", oci: { ref } },
        credentials: DATABASE,
      };
    }

    const messagesOf = async (program: Program, asked: Step) =>
      (await program.call(asked)).messages;

    async function fatalOf(program: Program, asked: Step): Promise<string> {
      const { messages, bytes } = await program.call(asked);
      expect(messages).toHaveLength(1);
      const [message = ""] = messages;
      expect(message).toMatch(/^FATAL: [^\p{Cc}]*[^\p{Cc}.]$/u);
      for (const secret of SECRETS)
        expect(bytes.toString("latin1")).not.toContain(secret);
      return message;
    }

    describe("one program that runs on", () => {
      const programs = usePrograms("suite", SECRETS);
      let program: Program;
      beforeAll(async () => {
        program = await start(programs);
      });

      it("[C35] runs a pinned module by its manifest, with the step's credential", async () => {
        expect(await messagesOf(program, step({ ref: pinned }))).toEqual([
          ANSWER,
        ]);
      });

      it("[§6.4] refuses who cannot pull what is in the cache", async () => {
        await program.call(step({ ref: pinned }));

        const wrong = await fatalOf(
          program,
          step({ ref: pinned }, { auth: WRONG_AUTH }),
        );
        const none = await fatalOf(program, anonymous(pinned));

        const name = `FATAL: cannot resolve module: module OCI ${pinned}: ${registry.authority}`;
        expect(wrong).toMatch(`${name} refused the credential`);
        expect(none).toMatch(
          `${name}: the registry wants a credential and there is none for it`,
        );
        expect(await messagesOf(program, step({ ref: pinned }))).toEqual([
          ANSWER,
        ]);
        const codes = () =>
          program.lines("request refused").map(({ code }) => code);
        await expect
          .poll(codes)
          .toEqual(["registry-auth-failed", "registry-auth-failed"]);
      });

      it("[C15] says that the step has no such credential before any request", async () => {
        const before = await registry.requests();

        expect(await fatalOf(program, step({ ref: pinned }, null))).toContain(
          'module.oci.credentials names "pull", expected a credential of that name on the pipeline step, got none',
        );
        expect(await registry.requests()).toEqual(before);
      });

      it("[§6.3] wants --allow-unpinned-tags for a tag alone", async () => {
        const ref = `${registry.authority}/team/environ-dump:v1`;
        const before = await registry.requests();

        expect(await fatalOf(program, step({ ref }))).toContain(
          "has a tag and no digest, which needs the runtime's --allow-unpinned-tags",
        );
        expect(await registry.requests()).toEqual(before);
      });

      it("[C21] refuses an index by name", async () => {
        const wasm = await guest("v1/hello");
        const child = await publisher.module("team/index", { wasm });
        const mediaType = "application/vnd.oci.image.index.v1+json";
        const index = {
          schemaVersion: 2,
          mediaType,
          manifests: [
            {
              mediaType: "application/vnd.oci.image.manifest.v1+json",
              digest: child.manifestDigest,
              size: 1,
              platform: { os: "wasi", architecture: "wasm" },
            },
          ],
        };
        const bytes = Buffer.from(JSON.stringify(index));
        const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
        await publisher.manifest("team/index", digest, { bytes, mediaType });
        const ref = `${registry.authority}/team/index@${digest}`;

        expect(await fatalOf(program, step({ ref }))).toBe(
          `FATAL: cannot resolve module: module OCI ${ref}: the reference leads to an image index (${mediaType}), expected an image manifest: pin the digest of one manifest in it: ${child.manifestDigest} (wasi/wasm)`,
        );
      });

      it("[C55] shows a module no pull credential", async () => {
        const wasm = await guest("v1/echo");
        const echo = await publisher.module("team/echo", { wasm });
        const ref = `${registry.authority}/team/echo@${echo.manifestDigest}`;

        const { messages, response, bytes } = await program.call(step({ ref }));

        // It reads its request as an answer, in which a credential would be no valid field.
        expect(messages).toEqual([]);
        expect(response.desired?.composite?.resource).toMatchObject({
          metadata: { name: "app" },
        });
        for (const secret of [
          ...SECRETS,
          "dockerconfigjson",
          "postgres://u:hunter2@db",
        ])
          expect(bytes.toString("latin1")).not.toContain(secret);
      });
    });

    describe("programs that come and go", () => {
      const programs = usePrograms("test", SECRETS);

      it("[§6.4] runs a pinned module after a restart without the registry", async () => {
        const online = await start(programs);
        await online.call(step({ ref: pinned }));
        await online.stop();
        await goOffline();
        const offline = await start(programs);

        expect(await messagesOf(offline, step({ ref: pinned }))).toEqual([
          ANSWER,
        ]);
        expect(
          await fatalOf(offline, step({ ref: pinned }, { auth: WRONG_AUTH })),
        ).toContain("nothing shows that this step may pull it");
        expect(await fatalOf(offline, anonymous(pinned))).toContain(
          "nothing shows that this step may pull it",
        );
        await offline.stop();
        expect(online.lines("compiled")).toHaveLength(1);
        expect(offline.lines("compiled")).toEqual([]);
        expect(offline.lines("module loaded")).toHaveLength(1);
      });

      it("[§6.3] holds a tag to expectedDigest, with and without the registry", async () => {
        const ref = `${registry.authority}/team/environ-dump:v1`;
        const locked = step({ ref, expectedDigest: manifestDigest });
        const other = `sha256:${"0".repeat(64)}`;
        const broken = step({ ref, expectedDigest: other });
        const online = await start(programs);

        expect(await messagesOf(online, locked)).toEqual([ANSWER]);
        expect(await fatalOf(online, broken)).toBe(
          `FATAL: cannot resolve module: module OCI ${ref}: the tag leads to ${manifestDigest}, module.oci.expectedDigest is ${other}`,
        );

        await online.stop();
        await goOffline();
        const offline = await start(programs);

        expect(await messagesOf(offline, locked)).toEqual([ANSWER]);
        expect(await fatalOf(offline, broken)).toContain(
          `${registry.authority}: connection refused`,
        );
        expect(await fatalOf(offline, broken)).toContain(
          `module.oci.expectedDigest ${other} is not in the cache`,
        );
      });

      it("[§6.3] warns once that a tag was not looked up", async () => {
        const program = await start(programs, "--allow-unpinned-tags");
        const tag = `${registry.authority}/team/environ-dump:v1`;
        const asked = step({ ref: tag });

        expect(await messagesOf(program, asked)).toEqual([ANSWER]);
        await goOffline();
        const first = await messagesOf(program, asked);
        const second = await messagesOf(program, asked);

        expect(first.toSorted()).toEqual([
          ANSWER,
          expect.stringMatching(
            `^WARNING: ${tag}: ${registry.authority}: .*; using ${manifestDigest}, which the tag led to [0-9]+ s ago$`,
          ),
        ]);
        expect(second).toEqual([ANSWER]);
      });

      it("[§6.3] runs the new module when its tag was moved", async () => {
        const program = await start(programs, "--allow-unpinned-tags");
        const asked = step({ ref: `${registry.authority}/team/moving:latest` });
        const publish = async (name: string) => {
          const wasm = await guest(name);
          await publisher.module("team/moving", { wasm, tag: "latest" });
        };

        await publish("v1/hello");
        const before = await messagesOf(program, asked);
        await publish("wasi/environ-dump");
        const after = await messagesOf(program, asked);

        expect(before).toEqual(["hello world"]);
        expect(after).toEqual([""]);
        await program.stop();
        expect(program.lines("a tag was moved")).toHaveLength(1);
      });

      it("[C35] trusts no other authority than the registry's own", async () => {
        const maker = createCertificateMaker();
        const caFile = maker.authority("other");
        const program = await programs.start([
          ...["--registry-ca", `${registry.authority}=${caFile}`],
        ]);
        maker.remove();

        expect(await fatalOf(program, step({ ref: pinned }))).toContain(
          `module OCI ${pinned}: ${registry.authority}: the TLS certificate does not verify, --registry-ca names a CA to trust for this host`,
        );
      });
    });
  },
);
