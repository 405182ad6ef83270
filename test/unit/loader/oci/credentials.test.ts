import {
  existsSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type {
  Credential,
  StepCredential,
} from "../../../../src/loader/oci/credential.js";
import {
  createCredentials,
  type Credentials,
} from "../../../../src/loader/oci/credentials.js";
import type { LogFields, Logger } from "../../../../src/ports.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { recordingLogger } from "../../../support/recorded-log.js";

const U_P_AUTH = btoa("u:hunter2");
const X_Y_AUTH = btoa("x:hunter2-y");
const U_P: Credential = { kind: "basic", username: "u", password: "hunter2" };
const X_Y: Credential = { kind: "basic", username: "x", password: "hunter2-y" };
const CONFIG = "the runtime's Docker config (DOCKER_CONFIG)";

let dir: string;
let nowMs: number;
let warnings: [LogFields, string][];

describe("loader/oci/credentials", () => {
  beforeEach(() => {
    dir = mkdtempSync(path.join(tmpdir(), "function-wasm-credentials-"));
    nowMs = 5_000;
    warnings = [];
  });
  afterEach(() => {
    rmSync(dir, { recursive: true });
  });

  describe("of the runtime", () => {
    it("is anonymous without a Docker config", async () => {
      expect(await create(null)("ghcr.io/x")).toBeNull();
      expect(await create()("ghcr.io/x")).toBeNull();
    });

    it("is the entry that is for the repository, and for no other", async () => {
      writeConfig({
        auths: {
          "ghcr.io/org-a": { auth: U_P_AUTH },
          "https://index.docker.io/v1/": { auth: X_Y_AUTH },
        },
      });
      const credentialFor = create();

      expect(await credentialFor("ghcr.io/org-a/x")).toEqual(U_P);
      expect(await credentialFor("ghcr.io/org-b/x")).toBeNull();
      expect(await credentialFor("index.docker.io/library/nginx")).toEqual(X_Y);
      expect(await credentialFor("a.io/x")).toBeNull();
      expect(warnings).toEqual([]);
    });

    it("drops default ports by the operator's own rules", async () => {
      writeConfig({ auths: { "plain.io:80": { auth: U_P_AUTH } } });

      expect(await create()("plain.io/x")).toEqual(U_P);
    });

    it("[C09] warns once of an entry without a secret, which breaks no other", async () => {
      writeConfig({ auths: { "a.io": {}, "ghcr.io": { auth: U_P_AUTH } } });
      const credentialFor = create();

      expect(await credentialFor("a.io/x")).toBeNull();
      expect(await credentialFor("a.io/x")).toBeNull();
      expect(await credentialFor("ghcr.io/x")).toEqual(U_P);
      expect(warnings).toEqual([
        [
          { key: "a.io" },
          "a Docker config entry has no secret, pulling anonymously",
        ],
      ]);
    });

    it("[W7] fails with an entry that cannot be used, from its host alone", async () => {
      writeConfig({
        auths: { "a.io": { auth: "hunter2!" }, "ghcr.io": { auth: U_P_AUTH } },
      });
      const credentialFor = create();

      await expect(credentialFor("a.io/x")).rejects.toMatchObject({
        code: "pull-credential-invalid",
        message: `a.io: ${CONFIG}: the entry for a.io cannot be used: auth is not base64`,
      });
      expect(await credentialFor("ghcr.io/x")).toEqual(U_P);
    });

    it("fails when the file is no Docker config, until it is one", async () => {
      writeConfig("hunter2");
      const credentialFor = create();

      await expect(credentialFor("ghcr.io/x")).rejects.toMatchObject({
        code: "pull-credential-invalid",
        message: `ghcr.io: ${CONFIG}: it is not JSON`,
      });
      writeConfig({ auths: { "ghcr.io": { auth: U_P_AUTH } } });
      nowMs += 1_000;
      expect(await credentialFor("ghcr.io/x")).toEqual(U_P);
    });

    it("is the helper's of the registry before the entry and the store", async () => {
      writeHelper("own", "u", "hunter2");
      writeHelper("store", "store", "hunter2-s");
      writeConfig({
        auths: { "a.io": { auth: X_Y_AUTH } },
        credHelpers: { "https://a.io/v1/": "own" },
        credsStore: "store",
      });

      expect(await create()("a.io/x")).toEqual(U_P);
      expect(serversAsked("own")).toEqual(["a.io"]);
      expect(existsSync(path.join(dir, "store.asked"))).toBe(false);
    });

    it("is the store's before the entry, which calls Docker Hub by its old name", async () => {
      writeHelper("store", "u", "hunter2");
      writeConfig({
        auths: { "docker.io": { auth: X_Y_AUTH }, "a.io": {} },
        credsStore: "store",
      });
      const credentialFor = create();

      expect(await credentialFor("index.docker.io/library/x")).toEqual(U_P);
      expect(await credentialFor("a.io/x")).toEqual(U_P);
      expect(serversAsked("store")).toEqual([
        "https://index.docker.io/v1/",
        "a.io",
      ]);
      expect(warnings).toEqual([]);
    });

    it.each([
      {
        name: "the helper of the registry has none",
        config: { credHelpers: { "a.io": "none" } },
      },
      { name: "the store has none", config: { credsStore: "none" } },
      {
        name: "the registry has no helper by the config's own words",
        config: { credHelpers: { "a.io": "" }, credsStore: "broken" },
      },
      {
        name: "[C12] there is no such store",
        config: { credsStore: "desktop" },
      },
    ])("is the entry's when $name", async ({ config }) => {
      writeHelper("none");
      writeConfig({ auths: { "a.io": { auth: U_P_AUTH } }, ...config });

      expect(await create()("a.io/x")).toEqual(U_P);
    });

    it("is anonymous when nobody has one", async () => {
      writeHelper("none");
      writeConfig({ credHelpers: { "a.io": "none" }, credsStore: "none" });

      expect(await create()("a.io/x")).toBeNull();
      expect(await create()("b.io/x")).toBeNull();
    });

    it("[C12] fails for the registry whose helper is missing, others go on", async () => {
      writeConfig({
        auths: { "a.io": { auth: U_P_AUTH }, "ghcr.io": { auth: U_P_AUTH } },
        credHelpers: { "a.io": "nope" },
        credsStore: "desktop",
      });
      const credentialFor = create();

      await expect(credentialFor("a.io/x")).rejects.toMatchObject({
        code: "pull-credential-invalid",
        message: `a.io: ${CONFIG}: the credential helper docker-credential-nope is not in the PATH`,
      });
      expect(await credentialFor("ghcr.io/x")).toEqual(U_P);
      expect(await credentialFor("b.io/x")).toBeNull();
      expect(warnings).toEqual([
        [{ helper: "desktop" }, "the Docker config's credsStore is missing"],
      ]);
    });

    it("fails when the store is missing that has the registry's secret", async () => {
      writeConfig({ auths: { "a.io": {} }, credsStore: "desktop" });

      await expect(create()("a.io/x")).rejects.toMatchObject({
        code: "pull-credential-invalid",
        message: `a.io: ${CONFIG}: the credential helper docker-credential-desktop is not in the PATH`,
      });
    });

    it.each([
      {
        name: "the store fails",
        config: { credsStore: "broken" },
        want: 'the credential helper docker-credential-broken failed (1): "locked"',
      },
      {
        name: "the helper of the registry fails",
        config: { credHelpers: { "a.io": "broken" } },
        want: 'the credential helper docker-credential-broken failed (1): "locked"',
      },
      {
        name: "the helper's name is no name",
        config: { credHelpers: { "a.io": "../broken" } },
        want: 'the credential helper\'s name "../broken" is not made of letters, digits, ".", "_" and "-"',
      },
      {
        name: "the helper's name is a number",
        config: { credHelpers: { "a.io": 5 } },
        want: "the helper for a.io is no string",
      },
    ])("fails when $name, whatever the entry", async ({ config, want }) => {
      writeExecutable("broken", "echo hunter2; echo locked >&2; exit 1");
      writeConfig({ auths: { "a.io": { auth: U_P_AUTH } }, ...config });

      await expect(create()("a.io/x")).rejects.toMatchObject({
        code: "pull-credential-invalid",
        message: `a.io: ${CONFIG}: ${want}`,
      });
    });

    it("asks a helper once for many pulls", async () => {
      writeHelper("store", "u", "hunter2");
      writeConfig({ credsStore: "store" });
      const credentialFor = create();

      await Promise.all([credentialFor("a.io/x"), credentialFor("a.io/y")]);
      await credentialFor("a.io/z");

      expect(serversAsked("store")).toEqual(["a.io"]);
    });
  });

  describe("of a step", () => {
    it("is the step's alone, whatever the runtime has", async () => {
      writeConfig({
        auths: { "ghcr.io": { auth: X_Y_AUTH }, "b.io": { auth: X_Y_AUTH } },
      });
      const credentialFor = create();
      const regcred = step({ auths: { "ghcr.io": { auth: U_P_AUTH } } });

      expect(await credentialFor("ghcr.io/x", regcred)).toEqual(U_P);
      await expect(credentialFor("b.io/x", regcred)).rejects.toMatchObject({
        code: "pull-credential-invalid",
        message:
          'the step credential "regcred" has no entry for b.io (it has: ghcr.io)',
      });
    });

    it("needs no readable Docker config of the runtime", async () => {
      writeConfig("hunter2");
      const regcred = step({ auths: { "ghcr.io": { auth: U_P_AUTH } } });

      expect(await create()("ghcr.io/x", regcred)).toEqual(U_P);
    });

    it("runs no helper for it", async () => {
      writeHelper("own", "u", "hunter2");
      const regcred = step({ credHelpers: { "ghcr.io": "own" } });

      await expect(create()("ghcr.io/x", regcred)).rejects.toMatchObject({
        code: "pull-credential-invalid",
      });
      expect(existsSync(path.join(dir, "own.asked"))).toBe(false);
    });

    it("[C09] warns once of an entry without a secret", async () => {
      const credentialFor = create();
      const regcred = step({ auths: { "ghcr.io": {} } });

      expect(await credentialFor("ghcr.io/x", regcred)).toBeNull();
      expect(await credentialFor("ghcr.io/y", regcred)).toBeNull();
      expect(warnings).toEqual([
        [
          { registry: "ghcr.io", credential: "regcred" },
          "a step credential has no secret for its registry, pulling anonymously",
        ],
      ]);
    });

    it("is read once for the same bytes and repository", async () => {
      const credentialFor = create();
      const auths = { "ghcr.io": { auth: U_P_AUTH } };

      const first = await credentialFor("ghcr.io/x", step({ auths }));
      const second = await credentialFor("ghcr.io/x", step({ auths }));

      expect(first).toEqual(U_P);
      expect(second).toBe(first);
    });

    it("is read anew when anything is another", async () => {
      const credentialFor = create();
      const auths = {
        "ghcr.io/x": { auth: U_P_AUTH },
        "ghcr.io/y": { auth: X_Y_AUTH },
      };
      const pair = (username: string, password: string): StepCredential => ({
        name: "regcred",
        data: new Map([
          ["username", Buffer.from(username)],
          ["password", Buffer.from(password)],
        ]),
      });

      expect(await credentialFor("ghcr.io/x", step({ auths }))).toEqual(U_P);
      expect(await credentialFor("ghcr.io/y", step({ auths }))).toEqual(X_Y);
      await expect(
        credentialFor("a.io/x", step({ auths }, "other")),
      ).rejects.toThrow('the step credential "other" has no entry for a.io');
      await expect(credentialFor("a.io/x", step({ auths }))).rejects.toThrow(
        'the step credential "regcred" has no entry for a.io',
      );
      expect(await credentialFor("ghcr.io/x", pair("u", "hunter2"))).toEqual(
        U_P,
      );
      expect(await credentialFor("ghcr.io/x", pair("x", "hunter2-y"))).toEqual(
        X_Y,
      );
    });
  });
});

/** @param file default: config.json in the directory of this test */
function create(file: string | null = path.join(dir, "config.json")) {
  const credentials: Credentials = createCredentials({
    dockerConfigFile: file,
    env: { PATH: `${dir}:/usr/bin:/bin` },
    insecureHosts: ["plain.io"],
    registryCas: new Map(),
    clock: { nowMs: () => nowMs, monotonicMs: () => nowMs },
    logger: createLogger(),
  });
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  return (location: string, from: StepCredential | null = null) => {
    const slash = location.indexOf("/");
    return credentials.credentialFor(
      location.slice(0, slash),
      location.slice(slash + 1),
      from,
      scope,
    );
  };
}

function createLogger(): Logger {
  const unexpected = (_: LogFields, message: string): never => {
    throw new Error(`unexpected log line: ${message}`);
  };
  const searched = recordingLogger().logger;
  const logger: Logger = {
    debug: unexpected,
    info: unexpected,
    warn(fields, message) {
      searched.warn(fields, message);
      warnings.push([fields, message]);
    },
    error: unexpected,
    child: () => logger,
  };
  return logger;
}

function step(config: object, name = "regcred"): StepCredential {
  const bytes = Buffer.from(JSON.stringify(config));
  return { name, data: new Map([[".dockerconfigjson", bytes]]) };
}

function writeConfig(config: unknown): void {
  const text = typeof config === "string" ? config : JSON.stringify(config);
  writeFileSync(path.join(dir, "next.json"), text);
  renameSync(path.join(dir, "next.json"), path.join(dir, "config.json"));
}

/** A helper that notes what it is asked for; without a user name it has none. */
function writeHelper(name: string, username?: string, secret?: string): void {
  const answer =
    username === undefined
      ? "echo credentials not found in native keychain; exit 1"
      : `echo '${JSON.stringify({ Username: username, Secret: secret })}'`;
  writeExecutable(name, `echo "$(cat)" >> "${dir}/${name}.asked"\n${answer}`);
}

function writeExecutable(name: string, script: string): void {
  const file = path.join(dir, `docker-credential-${name}`);
  writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

function serversAsked(name: string): string[] {
  const asked = readFileSync(path.join(dir, `${name}.asked`), "utf8");
  return asked.trimEnd().split("\n");
}
