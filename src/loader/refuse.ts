import { LoaderError, type LoaderErrorCode } from "./error.js";

/** Makes the error from a code and the reason alone; whoever asked for the module puts its name before it. */
export function refuse(
  code: LoaderErrorCode,
  reason: string,
  cause?: unknown,
): LoaderError {
  return new LoaderError(code, reason, cause === undefined ? {} : { cause });
}
