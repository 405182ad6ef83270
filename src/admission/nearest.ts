/** Longer names are nobody's typing mistake, and comparing costs the product of the lengths. */
const MAX_CHARS = 64;

/**
 * The one of `candidates` that `name` was probably meant to be: at most a third of its letters
 * differ, case ignored. Undefined when none is that close.
 */
export function nearestName(
  name: string,
  candidates: readonly string[],
): string | undefined {
  if (name.length > MAX_CHARS) return undefined;
  let nearest: string | undefined;
  let nearestDistance = Infinity;
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance <= candidate.length / 3 && distance < nearestDistance) {
      nearest = candidate;
      nearestDistance = distance;
    }
  }
  return nearest;
}

/** Levenshtein's: insertions, deletions and replacements, row by row. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, letter] of Array.from(from).entries()) {
    const next = [i + 1];
    for (let j = 1; j <= to.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (letter === to[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
