import type { Pattern } from "./pattern.js";

/** Some 50 ms of the slowest steps; a config of 10 000 fields takes a third of them. */
const maxSteps = 150_000;
/** Schemas within schemas and values within values, which each take stack. */
const maxDepth = 256;
/** Instructions of a pattern that are followed for a character in the time of a step. */
const instructionsPerStep = 16;
/** Characters that are compared, copied or counted in the time of a step. */
const charsPerStep = 32;

/** Thrown when checking takes more than it may. */
export class WorkExceeded extends Error {
  override readonly name = "WorkExceeded";
}

/**
 * The work of one check. A schema is the module author's, and one of a few lines can ask for more
 * than any machine does: alternatives within alternatives, or a schema that refers to itself.
 */
export class Run {
  /** Whether to note what was evaluated, which `unevaluated…` keywords need. */
  readonly tracks: boolean;
  readonly #maxSteps: number;
  #steps = 0;
  #depth = 0;

  constructor(tracks: boolean, steps = maxSteps) {
    this.tracks = tracks;
    this.#maxSteps = steps;
  }

  /**
   * Counts steps, each of them some 100 ns.
   * @throws WorkExceeded
   */
  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#maxSteps) throw new WorkExceeded();
  }

  /**
   * Counts the steps that so many characters take.
   * @throws WorkExceeded
   */
  spendChars(chars: number): void {
    this.spend(Math.ceil(chars / charsPerStep));
  }

  /**
   * Whether a pattern matches, when that is not too much work.
   * @throws WorkExceeded
   */
  matches(pattern: Pattern, text: string): boolean {
    this.spend(
      1 + Math.ceil((text.length * pattern.size) / instructionsPerStep),
    );
    return pattern.test(text);
  }

  /**
   * Opens a level; what opens one closes it with {@link leave}.
   * @throws WorkExceeded
   */
  enter(): void {
    this.spend(1);
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new WorkExceeded();
  }

  /** Closes a level. */
  leave(): void {
    this.#depth -= 1;
  }
}
