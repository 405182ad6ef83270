import { AdmissionError } from "../../admission/index.js";
import { EngineError } from "../../engine/index.js";
import { errorText, escaped, WasmFunctionError } from "../../errors.js";
import { LoaderError } from "../../loader/index.js";

/** What a command ends with: 1 = the module or its manifest is refused, 2 = anything else. */
export type ExitCode = 0 | 1 | 2;

/** What is said while a command is at work, a line on the standard error. */
export type Say = (line: string) => void;

/**
 * Does the work of a command, and says in one line on the standard error why it failed. Never
 * throws.
 * @param command what its lines begin with, such as `module push`
 */
export async function attempt(
  command: string,
  work: (say: Say) => Promise<void>,
): Promise<ExitCode> {
  const say: Say = (line) => {
    process.stderr.write(`${command}: ${line}\n`);
  };
  try {
    await work(say);
    return 0;
  } catch (thrown) {
    const text = errorText(thrown);
    const isOurs = thrown instanceof WasmFunctionError;
    say(isOurs ? text : escaped(text, 1000));
    return isRefusal(thrown) ? 1 : 2;
  }
}

/** Whether a runtime with these flags would refuse the module, however often it is asked. */
export function isRefusal(thrown: unknown): boolean {
  if (thrown instanceof AdmissionError) return true;
  if (thrown instanceof EngineError)
    return ["module-invalid", "compile-failed"].includes(thrown.code);
  return (
    thrown instanceof LoaderError &&
    ["artifact-invalid", "module-empty", "module-too-large"].includes(
      thrown.code,
    )
  );
}
