/** Something to wait for, and how to end the waiting. */
export interface Gate {
  readonly gate: Promise<void>;
  readonly letGo: () => void;
}

export function createGate(): Gate {
  let letGo = (): void => undefined;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  return { gate, letGo: () => letGo() };
}
