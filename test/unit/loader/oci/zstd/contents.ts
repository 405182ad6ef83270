const WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot"];

/** Text that repeats itself, but not quite; the same every time. */
export function lines(count: number): Buffer {
  let seed = 1;
  const next = (below: number) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return (seed >>> 16) % below;
  };
  const line = (_: unknown, i: number) => {
    const word = WORDS[next(6)] ?? "";
    const end = i % 50 === 0 ? next(65_536).toString(36) : (WORDS[i % 6] ?? "");
    return `${i % 97} ${word} ${end}\n`;
  };
  return Buffer.from(Array.from({ length: count }, line).join(""));
}

/** Bytes of a few values. */
export function halfBytes(): Buffer {
  return Buffer.from(
    Array.from({ length: 300 }, (_, i) => (i * i * 31 + (i >> 3)) & 15),
  );
}

/** More than two of the largest blocks. */
export function mixed(): Buffer {
  return Buffer.concat([
    Buffer.alloc(140_000),
    lines(60),
    Buffer.alloc(131_072, 98),
    lines(60),
  ]);
}
