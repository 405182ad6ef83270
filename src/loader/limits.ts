/**
 * What is read of an image manifest. Registries take 4 MiB; one with a module has a few KB, and
 * reading 4 MiB of JSON keeps everybody else waiting for more than a second.
 */
export const MAX_IMAGE_MANIFEST_BYTES = 256 * 1024;

/** What a module's manifest may have, wherever it comes from. */
export const MAX_MODULE_MANIFEST_BYTES = 64 * 1024;

/** How long a server is asked before a request has to do without, or goes away without an answer. */
export const RESOLVE_BUDGET_MS = 5_000;
