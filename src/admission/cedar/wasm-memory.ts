const memorySection = 5;
const headerBytes = 8;

/**
 * A WebAssembly binary whose one memory cannot grow beyond `maxPages` pages of 64 KiB.
 *
 * Growing is up to the code inside: nothing outside an instance can say no to it, but a maximum in
 * its own binary can.
 * @throws Error when the binary has no memory of its own, several, or one with a maximum
 */
export function withMemoryMaximum(
  wasm: Uint8Array,
  maxPages: number,
): Uint8Array {
  let at = headerBytes;
  while (at < wasm.length) {
    const start = at;
    const id = wasm[at];
    const [size, bodyStart] = readUint(wasm, at + 1);
    at = bodyStart + size;
    if (id !== memorySection) continue;
    const minPages = readMinimum(wasm, bodyStart);
    const body = [1, 1, ...uintBytes(minPages), ...uintBytes(maxPages)];
    return Buffer.concat([
      wasm.subarray(0, start),
      Uint8Array.from([memorySection, ...uintBytes(body.length), ...body]),
      wasm.subarray(at),
    ]);
  }
  throw new Error("expected a WebAssembly binary with a memory, got none");
}

function readMinimum(wasm: Uint8Array, bodyStart: number): number {
  const [count, flagsAt] = readUint(wasm, bodyStart);
  if (count !== 1 || wasm[flagsAt] !== 0)
    throw new Error("expected one memory without a maximum");
  const [minPages] = readUint(wasm, flagsAt + 1);
  return minPages;
}

/** Reads a LEB128 number; returns it and where what follows starts. */
function readUint(wasm: Uint8Array, start: number): [number, number] {
  let value = 0;
  for (let at = start, scale = 1; ; at++, scale *= 128) {
    const byte = wasm[at];
    if (byte === undefined)
      throw new Error("the WebAssembly binary is cut off");
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return [value, at + 1];
  }
}

function uintBytes(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 0x80) return [...bytes, rest];
    bytes.push((rest % 128) | 0x80);
  }
}
