import { execFile } from "node:child_process";
import {
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { assemble } from "../../../bench/guests.js";
import { checkXpkg } from "../../../scripts/lib/xpkg/check.mjs";
import type { Image } from "../../../scripts/lib/xpkg/image.mjs";
import { readImageArchive } from "../../../scripts/lib/xpkg/image-archive.mjs";
import { missingTool } from "../../support/tools.js";
import { connect } from "../loader/caller.js";
import { type Container, startContainer, unpackImage } from "./container.js";

/** What is in no passwd file, here or in the image. */
const UID = 31_337;
const root = path.resolve(import.meta.dirname, "../../..");

/** The whole way from the built clone to a running container, but for Docker and Kubernetes. */
describe.skipIf(process.platform !== "linux" || missingTool("unshare"))(
  "integration/package",
  () => {
    let dir: string;
    let image: Image;
    let tree: string;
    const containers: Container[] = [];

    beforeAll(async () => {
      dir = await mkdtemp(path.join(tmpdir(), "package-test-"));
      // As root makes directories for others: all the way down to the tree, they can be passed.
      await promisify(execFile)("chmod", ["755", dir]);
      const archive = path.join(dir, "image.tar");
      const xpkg = path.join(dir, "f.xpkg");
      await script("build-image", "--output", archive);
      await script("build-xpkg", "--image", archive, "--output", xpkg);
      expect(checkXpkg(xpkg)).toEqual([]);
      image = readImageArchive(await readFile(xpkg));
      tree = path.join(dir, "tree");
      await unpackImage(image, tree);
    }, 300_000);

    afterAll(async () => {
      for (const container of containers) await container.end("SIGKILL");
      await rm(dir, { recursive: true, force: true });
    });

    it("holds what runs, and neither development packages nor anything else of the clone", async () => {
      const packages = await readdir(path.join(tree, "app/node_modules"));

      expect((await readdir(path.join(tree, "app"))).sort()).toEqual([
        ...["LICENSE", "build", "dist", "node_modules"],
        ...["package", "package.json", "proto", "wit"],
      ]);
      expect(packages).toEqual(expect.arrayContaining(["pino", "yaml"]));
      for (const name of ["typescript", "vitest", "esbuild", ".bin"])
        expect(packages).not.toContain(name);
    });

    it("has nothing that others than root can change, and all that they can read", async () => {
      const names = await readdir(tree, { recursive: true });

      const wrong: string[] = [];
      for (const name of names) {
        const { mode, uid } = await stat(path.join(tree, name));
        const isTmp = name === "tmp";
        if (uid !== 0 || (mode & 0o444) !== 0o444) wrong.push(name);
        if ((mode & 0o022) !== 0 && !isTmp) wrong.push(name);
      }
      expect(names.length).toBeGreaterThan(1000);
      expect(wrong).toEqual([]);
    });

    it("answers as any user, without HOME, on a read-only root, and ends with 0 on SIGTERM", async () => {
      const [cache, modules] = ["cache", "modules"].map((name) =>
        path.join(dir, name),
      ) as [string, string];
      await mkdir(cache, { mode: 0o700 });
      await chown(cache, UID, UID);
      await mkdir(modules);
      await assemble(modules, "echo");
      const container = await startContainer({
        ...{ tree, image, uid: UID },
        writable: { "/cache": cache },
        readOnly: { "/modules": modules },
        args: [
          ...["--insecure", "--cache-dir=/cache", "--module-dir=/modules"],
          ...["--address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"],
          "--health-address=127.0.0.1:0",
        ],
      });
      containers.push(container);
      const { address } = await container.logged("listening");
      const caller = connect(String(address));

      const answer = await caller.call({
        module: { type: "Path", path: "echo.wasm" },
      });
      const facts = await factsOf(container.pid);
      caller.close();
      const end = await container.end("SIGTERM");

      expect(answer.messages).toEqual([]);
      expect(answer.response.meta?.tag).toBe("c0ffee");
      expect(facts).toEqual({
        uids: `${UID} ${UID} ${UID} ${UID}`,
        groups: "",
        capabilities: "0000000000000000",
        noNewPrivileges: "1",
        workingDir: "/app",
        home: undefined,
        rootOptions: expect.arrayContaining(["ro"]) as unknown,
      });
      expect(end).toEqual({ code: 0, signal: null });
      expect(container.stderr()).toContain('"msg":"stopped"');
      // What was compiled is there, and of the user.
      const compiled = await readdir(cache, { recursive: true });
      expect(compiled.length).toBeGreaterThan(1);
      expect((await stat(path.join(cache, compiled[0] ?? ""))).uid).toBe(UID);
    });
  },
);

/** What Linux says of a process. */
async function factsOf(pid: number) {
  const proc = `/proc/${pid}`;
  const status = new Map(
    (await readFile(`${proc}/status`, "utf8")).split("\n").map((line) => {
      const [name = "", value = ""] = line.split(":");
      return [name, value.trim().replaceAll(/\s+/g, " ")];
    }),
  );
  const environment = await readFile(`${proc}/environ`, "utf8");
  const mounts = await readFile(`${proc}/mounts`, "utf8");
  const { stdout } = await promisify(execFile)("readlink", [`${proc}/cwd`]);
  const [, , , options = ""] =
    mounts
      .split("\n")
      .find((line) => line.split(" ")[1] === "/")
      ?.split(" ") ?? [];
  return {
    uids: status.get("Uid"),
    groups: status.get("Groups"),
    capabilities: status.get("CapEff"),
    noNewPrivileges: status.get("NoNewPrivs"),
    workingDir: stdout.trim().replace(/^.*\/tree/, ""),
    home: environment.split("\0").find((each) => each.startsWith("HOME=")),
    rootOptions: options.split(","),
  };
}

async function script(name: string, ...args: string[]): Promise<void> {
  const file = path.join(root, `scripts/${name}.mjs`);
  await promisify(execFile)(process.execPath, [file, ...args]);
}
