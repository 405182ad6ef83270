import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from "vitest";
import {
  type HelperAnswer,
  runHelper,
} from "../../../../src/loader/oci/credential-helper.js";

const HUB = "https://index.docker.io/v1/";
const U_P = {
  kind: "credential",
  credential: { kind: "basic", username: "u", password: "hunter2:w" },
};

let dir: string;

describe("loader/oci/credential-helper", () => {
  beforeEach(() => {
    dir = mkdtempSync(path.join(tmpdir(), "function-wasm-helper-"));
  });
  afterEach(() => {
    rmSync(dir, { recursive: true });
  });

  it("runs docker-credential-<name> with get, and the server on its standard input", async () => {
    helper(
      `printf '%s|' "$#" "$@" "$(cat)" > "${dir}/asked"`,
      `echo '{"ServerURL":"x","Username":"u","Secret":"hunter2:w"}'`,
    );

    const answer = await run(HUB);

    expect(answer).toEqual(U_P);
    expect(readFileSync(path.join(dir, "asked"), "utf8")).toBe(`1|get|${HUB}|`);
  });

  it("gives it the environment it is given, and no other", async () => {
    helper(
      `env > "${dir}/env"`,
      `echo '{"Username":"u","Secret":"hunter2:w"}'`,
    );

    await runHelper("x", HUB, { ...env(), AWS_PROFILE: "dev" });

    const lines = readFileSync(path.join(dir, "env"), "utf8");
    expect(lines).toContain("AWS_PROFILE=dev\n");
    expect(lines).not.toContain("HOME=");
  });

  it.each([
    {
      name: "a user name and password",
      answer: { Username: "u", Secret: "hunter2:w" },
      want: U_P,
    },
    {
      name: "an identity token",
      answer: { Username: "<token>", Secret: "hunter2-t" },
      want: {
        kind: "credential",
        credential: { kind: "identity-token", token: "hunter2-t" },
      },
    },
    {
      name: "nobody",
      answer: { ServerURL: "", Username: "", Secret: "" },
      want: { kind: "none" },
    },
  ])("reads $name", async ({ answer, want }) => {
    helper(`echo '${JSON.stringify(answer)}'`);

    expect(await run()).toEqual(want);
  });

  it("takes an answer from a helper that does not read what it is told", async () => {
    helper("exec 0<&-", `echo '{"Username":"u","Secret":"hunter2:w"}'`);

    expect(await run("x".repeat(1024 * 1024))).toEqual(U_P);
  });

  it("knows the words of a helper that has none", async () => {
    helper("echo credentials not found in native keychain", "exit 1");

    expect(await run()).toEqual({ kind: "none" });
  });

  it.each([
    {
      name: "says so and that it went well",
      lines: ["echo credentials not found in native keychain"],
      want: "expected JSON with Username and Secret on its standard output",
    },
    {
      name: "says no JSON",
      lines: ["echo hunter2"],
      want: "expected JSON with Username and Secret on its standard output",
    },
    {
      name: "says null",
      lines: ["echo null"],
      want: "expected JSON with Username and Secret on its standard output",
    },
    {
      name: "says no Secret",
      lines: [`echo '{"Username":"hunter2"}'`],
      want: "expected JSON with Username and Secret on its standard output",
    },
    {
      name: "says a Secret for no user",
      lines: [`echo '{"Username":"","Secret":"hunter2"}'`],
      want: "the user name is empty",
    },
    {
      name: "says a token that is none",
      lines: [`echo '{"Username":"<token>","Secret":"hunter2 "}'`],
      want: "the token has blanks, control or non-ASCII characters",
    },
  ])("fails when the helper $name", async ({ lines, want }) => {
    helper(...lines);

    expect(await run()).toEqual({
      kind: "failed",
      message: `the credential helper docker-credential-x: ${want}`,
    });
  });

  it.each([
    {
      name: "a reason on standard error, escaped",
      lines: [
        "echo hunter2",
        `printf 'no \\033[31mkey"\\nring\\n' >&2`,
        "exit 3",
      ],
      want: 'failed (3): "no \\u001b[31mkey\\"\\u000aring"',
    },
    {
      name: "no reason",
      lines: ["echo hunter2", "exit 1"],
      want: "failed (1)",
    },
    { name: "a signal", lines: ["kill -TERM $$"], want: "failed (SIGTERM)" },
  ])("fails with $name when the helper fails", async ({ lines, want }) => {
    helper(...lines);

    expect(await run()).toEqual({
      kind: "failed",
      message: `the credential helper docker-credential-x ${want}`,
    });
  });

  it("quotes the first 4 KiB of standard error", async () => {
    helper("head -c 100000 /dev/zero | tr '\\0' e >&2", "exit 1");

    expect(await run()).toEqual({
      kind: "failed",
      message: `the credential helper docker-credential-x failed (1): "${"e".repeat(4096)}"`,
    });
  });

  it.each([
    { name: "takes just 64 KiB", bytes: 65_536, want: U_P },
    {
      name: "refuses more than 64 KiB",
      bytes: 65_537,
      want: {
        kind: "failed",
        message:
          "the credential helper docker-credential-x wrote more than 65536 bytes",
      },
    },
  ])("$name", async ({ bytes, want }) => {
    writeFileSync(
      path.join(dir, "answer"),
      '{"Username":"u","Secret":"hunter2:w"}'.padEnd(bytes),
    );
    helper(`cat "${dir}/answer"`);

    expect(await run()).toEqual(want);
  });

  it("ends a helper that writes for ever", async () => {
    helper(`echo $$ > "${dir}/pid"`, "exec yes");

    const answer = await run();

    expect(answer.kind).toBe("failed");
    await untilDead(pidIn("pid"));
  });

  it("ends a helper after 10 seconds, and what it has started", async () => {
    helper(
      `sleep 600 & echo $! > "${dir}/child"`,
      `echo $$ > "${dir}/pid.new" && mv "${dir}/pid.new" "${dir}/pid"`,
      "wait",
    );
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let answer: HelperAnswer | undefined;
    const running = run().then((answered) => (answer = answered));
    await until(() => existsSync(path.join(dir, "pid")));

    vi.advanceTimersByTime(9_999);
    await turn();
    expect(answer).toBeUndefined();
    vi.advanceTimersByTime(1);

    expect(await running).toEqual({
      kind: "failed",
      message:
        "the credential helper docker-credential-x took longer than 10 s",
    });
    await untilDead(pidIn("pid"));
    await untilDead(pidIn("child"));
  });

  it("says that there is no such helper", async () => {
    expect(await run()).toEqual({
      kind: "missing",
      message: "the credential helper docker-credential-x is not in the PATH",
    });
  });

  it("says why a helper cannot be started, and nothing of the environment", async () => {
    mkdirSync(path.join(dir, "docker-credential-x"));

    expect(await run()).toEqual({
      kind: "failed",
      message:
        "the credential helper docker-credential-x cannot be started (EACCES)",
    });
    expect(await runHelper("x", HUB, { ...env(), A: "hunter2\0" })).toEqual({
      kind: "failed",
      message:
        "the credential helper docker-credential-x cannot be started (ERR_INVALID_ARG_VALUE)",
    });
  });

  it.each(["../x", "x/y", "", "x y", "x;y", "x\n", "-\u0000"])(
    "runs nothing by the name %j",
    async (name) => {
      helper(`touch "${dir}/ran"`);

      const answer = await runHelper(name, HUB, env());

      expect(answer).toEqual({
        kind: "failed",
        message: expect.stringMatching(
          /^the credential helper's name ".*" is not made of letters, digits, "\.", "_" and "-"$/u,
        ) as string,
      });
      expect(existsSync(path.join(dir, "ran"))).toBe(false);
    },
  );
});

function run(serverUrl = HUB): Promise<HelperAnswer> {
  return runHelper("x", serverUrl, env());
}

function env(): { PATH: string } {
  return { PATH: `${dir}:/usr/bin:/bin` };
}

function helper(...lines: string[]): void {
  const file = path.join(dir, "docker-credential-x");
  writeFileSync(file, `#!/bin/sh\n${lines.join("\n")}\n`, { mode: 0o755 });
}

function pidIn(name: string): number {
  return Number(readFileSync(path.join(dir, name), "utf8"));
}

/** A zombie is dead: who reaps what was orphaned is not ours to say. */
function untilDead(pid: number): Promise<void> {
  return until(() => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, "utf8");
      return /^State:\s+[ZX]/mu.test(status);
    } catch {
      return true;
    }
  });
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await turn();
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
