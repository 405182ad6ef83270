/**
 * Another process that uses the stores: started by processes.test.ts, told what to do by messages,
 * which it answers one by one.
 */
import { pathToFileURL } from "node:url";
import { errorText } from "../../../../src/errors.js";
import { createAccessStore } from "../../../../src/loader/store/access-store.js";
import { createBlobStore } from "../../../../src/loader/store/blob-store.js";
import { createPointerStore } from "../../../../src/loader/store/pointer-store.js";
import type { Clock, Digest, Logger } from "../../../../src/ports.js";
import { chunksOf, digestOf } from "./store-content.js";

export const STEPS = ["created", "written", "synced", "renamed"] as const;

export type Command = { readonly cacheDir: string } & (
  | {
      /** Begins a blob and a pointer for each step, named for it, and stops each there. */
      readonly do: "stop-at-every-step";
    }
  | {
      /** Answers with the path or the error of each. */
      readonly do: "write-blobs";
      readonly texts: readonly string[];
      readonly atOnce: boolean;
    }
  | {
      /** Answers with what became of it. */
      readonly do: "write-pointer";
      readonly key: string;
      readonly digest: Digest;
      readonly atMs: number;
    }
  | { readonly do: "record-access"; readonly place: string }
);

const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silent,
};
const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

async function obey(command: Command): Promise<unknown> {
  const { cacheDir } = command;
  switch (command.do) {
    case "stop-at-every-step":
      await stopAtEveryStep(cacheDir);
      return null;
    case "write-blobs":
      return writeBlobs(cacheDir, command.texts, command.atOnce);
    case "write-pointer": {
      const { key, digest, atMs } = command;
      const store = createPointerStore(cacheDir, clock, silent);
      return store.write(key, digest, atMs);
    }
    case "record-access": {
      const key = {
        place: command.place,
        digest: digestOf("module"),
        identity: "anonymous",
      };
      await createAccessStore(cacheDir, clock, silent).record(key, Date.now());
      return null;
    }
  }
}

/** What could go on is not garbage, which would close its file. */
const held: (() => void)[] = [];

async function stopAtEveryStep(cacheDir: string): Promise<void> {
  await Promise.all(
    STEPS.flatMap((step) => {
      const stopped = (begin: (onStep: OnStep) => Promise<unknown>) =>
        new Promise<void>((resolve, reject) => {
          begin((now) => {
            if (now !== step) return Promise.resolve();
            resolve();
            return new Promise<void>((goOn) => held.push(goOn));
          }).catch(reject);
        });
      return [
        stopped((onStep) =>
          createBlobStore(
            { cacheDir, kind: "blobs", onStep },
            clock,
            silent,
          ).write(digestOf(step), chunksOf(step)),
        ),
        stopped((onStep) =>
          createPointerStore(cacheDir, clock, silent, onStep).write(
            step,
            digestOf(step),
            Date.now(),
          ),
        ),
      ];
    }),
  );
}

type OnStep = (step: (typeof STEPS)[number]) => Promise<void>;

async function writeBlobs(
  cacheDir: string,
  texts: readonly string[],
  atOnce: boolean,
): Promise<readonly string[]> {
  const store = createBlobStore({ cacheDir, kind: "blobs" }, clock, silent);
  const write = (text: string) =>
    store.write(digestOf(text), chunksOf(text)).then(
      ({ filePath }) => filePath,
      (error: unknown) => errorText(error),
    );
  if (atOnce) return Promise.all(texts.map(write));
  const results: string[] = [];
  for (const text of texts) results.push(await write(text));
  return results;
}

if (import.meta.url === pathToFileURL(String(process.argv[1])).href) {
  process.on("message", (message) => {
    obey(message as Command).then(
      (answer) => process.send?.({ answer }),
      (error: unknown) => process.send?.({ failure: errorText(error) }),
    );
  });
  process.send?.({ answer: "ready" });
}
