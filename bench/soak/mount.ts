import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** The files of a Secret or ConfigMap by their names. */
export type MountFiles = Readonly<Record<string, Uint8Array | string>>;

/** A directory as the kubelet mounts a Secret or ConfigMap: its files are links. */
export interface Mount {
  readonly dir: string;
  /** Changes all files at once, and removes the old ones. `files` has the names it began with. */
  swap(files: MountFiles): Promise<void>;
}

/** Makes the directory `dir`, which does not exist yet. */
export async function createMount(
  dir: string,
  files: MountFiles,
): Promise<Mount> {
  let generation = 0;

  async function swap(next: MountFiles): Promise<void> {
    const old = `..${generation}`;
    const current = `..${++generation}`;
    await mkdir(join(dir, current));
    for (const [name, content] of Object.entries(next)) {
      await writeFile(join(dir, current, name), content);
    }
    await symlink(current, join(dir, "..data_tmp"));
    await rename(join(dir, "..data_tmp"), join(dir, "..data"));
    await rm(join(dir, old), { recursive: true, force: true });
  }

  await mkdir(dir);
  await swap(files);
  for (const name of Object.keys(files)) {
    await symlink(join("..data", name), join(dir, name));
  }
  return { dir, swap };
}
