const waiting: (() => void)[] = [];

/**
 * Waits for a turn of the event loop of one's own. Whoever does long work in pieces waits before each
 * piece: however many do so at once, others wait for one piece and not for one of each.
 */
export function ownTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) setImmediate(next);
  });
}

function next(): void {
  waiting.shift()?.();
  // From here it is the turn after.
  if (waiting.length > 0) setImmediate(next);
}
