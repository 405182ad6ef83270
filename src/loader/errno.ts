/** The operating system's name for a failure, such as `EACCES`; `unknown error` when it has none. */
export function errnoOf(error: unknown): string {
  const code =
    error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "unknown error";
}
