/** Numbers of the RunFunctionResponse fields the host reads or writes. */
export const responseField = {
  meta: 1,
  desired: 2,
  context: 4,
  requirements: 5,
} as const;

/**
 * Fields of one answer that are looked at on this thread, which everybody shares: a guest may make
 * millions of two bytes each. An honest answer has a few for each result, and one for each resource.
 */
export const maxScannedFields = 100_000;
