/** In a process that a test has started: stops it in front of what it does next to the disk. */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import promises, { type FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import path from "node:path";

/** SIGSTOP, as from outside: nothing of this process goes on until it gets SIGCONT, or SIGKILL. */
export function stopHere(): void {
  process.kill(process.pid, "SIGSTOP");
}

/**
 * From now on this process stops in front of the step with the number `at`, counted from 0. A step
 * is a call of node:fs that changes something in `root`; a write is two, of half the bytes each.
 * @param at `null` = nowhere
 * @returns what was done so far, each step with its file: `.tmp` for a temporary one, `record` for
 *   one with 64 hex digits for a name
 */
export function stopAtStep(root: string, at: number | null): readonly string[] {
  const steps: string[] = [];
  /** Files that this process has created and may write to. */
  const written = new Map<number, string>();

  function before(call: string, filePath: string): void {
    if (steps.length === at) stopHere();
    steps.push(`${call} ${nameOf(filePath)}`);
  }

  /** @param pathAt which argument is the path of what changes */
  function watch(
    module: object,
    call: string,
    pathAt: number,
    isChange: (filePath: string) => boolean = () => true,
  ): void {
    const calls = module as Record<string, (...given: unknown[]) => unknown>;
    const original = calls[call];
    calls[call] = (...given) => {
      const filePath = String(given[pathAt]);
      if (isIn(root, filePath) && isChange(filePath)) before(call, filePath);
      return original?.apply(module, given);
    };
  }

  const exists = (filePath: string) =>
    fs.lstatSync(filePath, { throwIfNoEntry: false }) !== undefined;
  for (const name of ["mkdir", "chmod"]) watch(fs, `${name}Sync`, 0);
  for (const name of ["link", "rename"]) watch(fs, `${name}Sync`, 1);
  watch(fs, "rmSync", 0, exists);
  watch(promises, "rename", 1);
  watch(promises, "rm", 0, exists);

  const { openSync, writeFileSync, fsyncSync } = fs;
  fs.openSync = (filePath, flags, mode) => {
    const isNew = isIn(root, String(filePath)) && creates(flags);
    if (isNew) before("create", String(filePath));
    const file = openSync(filePath, flags, mode);
    if (isNew) written.set(file, String(filePath));
    else written.delete(file);
    return file;
  };
  fs.writeFileSync = ((file: number, bytes: Uint8Array) => {
    const filePath = written.get(file);
    if (filePath === undefined) return writeFileSync(file, bytes);
    const half = bytes.length >> 1;
    before("write half of", filePath);
    writeFileSync(file, bytes.subarray(0, half));
    before("write the rest of", filePath);
    writeFileSync(file, bytes.subarray(half));
  }) as typeof fs.writeFileSync;
  fs.fsyncSync = (file) => {
    const filePath = written.get(file);
    if (filePath !== undefined) before("sync", filePath);
    fsyncSync(file);
  };

  const { open } = promises;
  promises.open = async (filePath, flags, mode) => {
    const isNew = isIn(root, String(filePath)) && creates(flags);
    if (isNew) before("create", String(filePath));
    const handle = await open(filePath, flags, mode);
    if (isNew) watchHandle(handle, String(filePath));
    return handle;
  };

  function watchHandle(handle: FileHandle, filePath: string): void {
    const writeFile = handle.writeFile.bind(handle);
    const sync = handle.sync.bind(handle);
    handle.writeFile = async (data) => {
      const bytes = data as Uint8Array;
      const half = bytes.length >> 1;
      before("write half of", filePath);
      await writeFile(bytes.subarray(0, half));
      before("write the rest of", filePath);
      await writeFile(bytes.subarray(half));
    };
    handle.sync = async () => {
      before("sync", filePath);
      await sync();
    };
  }

  syncBuiltinESMExports();
  return steps;
}

/**
 * From now on no file of this process, or of one that it starts, gets larger: a write takes as many
 * bytes as there is room for, as on a disk that is full, and the next one fails.
 */
export function limitFileSize(maxBytes: number): void {
  // The soft limit only; the shell's parent is this process.
  const command = `prlimit --pid "$PPID" --fsize=${maxBytes}:`;
  execFileSync("sh", ["-c", command]);
}

function isIn(root: string, filePath: string): boolean {
  return path.resolve(filePath).startsWith(root + path.sep);
}

function creates(flags: unknown): boolean {
  return typeof flags === "number"
    ? (flags & fs.constants.O_CREAT) !== 0
    : String(flags) !== "r";
}

function nameOf(filePath: string): string {
  const name = path.basename(filePath);
  if (name.startsWith(".tmp-")) return ".tmp";
  return /^[0-9a-f]{64}$/u.test(name) ? "record" : name;
}
