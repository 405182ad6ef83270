import { vi } from "vitest";

import { recordOutput } from "./suite-output.js";

/** What a command that runs in this process has written so far. */
export interface CapturedWrites {
  readonly written: { stdout: string; stderr: string };
  /** Lets it go to the terminal again. */
  readonly restore: () => void;
}

/** Keeps what this process writes to its standard streams, from now on, from the terminal. */
export function captureWrites(): CapturedWrites {
  const written = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((chunk) => {
      written[name] += String(chunk);
      return true;
    }),
  );
  return {
    written,
    restore() {
      for (const spy of spies) spy.mockRestore();
      for (const text of Object.values(written)) recordOutput("command", text);
    },
  };
}
