import type { FoundModule, ModuleFile } from "../ports.js";

/**
 * Ways to the bytes of one digest: each who asks for it has his own, and one that is slow, or leads
 * nowhere, must not keep the others from going theirs.
 */
export interface FileRace {
  /** Whoever joins goes at once if the others do already, and not at all when it is over. */
  join(module: FoundModule): void;
  /** Sends everybody on his way; the first file that is there, or `null` when all ways ended in failures. */
  run(): Promise<ModuleFile | null>;
  /** What a way ended in; `undefined` = no failure of his. */
  failureOf(module: FoundModule): { readonly thrown: unknown } | undefined;
}

/** A race that has not begun. */
export function createFileRace(): FileRace {
  const joined = new Set<FoundModule>();
  const failures = new Map<FoundModule, { readonly thrown: unknown }>();
  let end: ((file: ModuleFile | null) => void) | undefined;
  let isOver = false;

  function go(module: FoundModule): void {
    module.locate().then(finish, (thrown: unknown) => {
      failures.set(module, { thrown });
      if (failures.size === joined.size) finish(null);
    });
  }

  function finish(file: ModuleFile | null): void {
    isOver = true;
    end?.(file);
  }

  return {
    join(module) {
      if (isOver || joined.has(module)) return;
      joined.add(module);
      if (end !== undefined) go(module);
    },
    run: () =>
      new Promise((resolve) => {
        end = resolve;
        for (const module of joined) go(module);
      }),
    failureOf: (module) => failures.get(module),
  };
}
