import type { Pattern } from "./pattern.js";

/** Some 100 ms of the slowest steps; a config of 10,000 fields takes a third of them. */
const maxSteps = 150_000;
/** Some 30 bytes each, so less than half of the stack. */
const maxStackUnits = 12_000;
/** What a call takes besides what is in its function. */
const callUnits = 12;
/** Instructions of a pattern that are followed for a character in the time of a step. */
const instructionsPerStep = 16;
/** Characters that are counted in the time of a step, and that are written as JSON. */
const charsPerStep = 64;
const jsonCharsPerStep = 16;

const tooMuch =
  "checking it takes more steps or levels than a module's schema may cause";

/** Thrown when a config cannot be checked; its message is for whoever wrote the config. */
export class Uncheckable extends Error {
  override readonly name = "Uncheckable";
}

/**
 * The work of one check. A schema is the module author's, and one of a few lines can ask for more
 * than any machine does: alternatives within alternatives, or a schema that refers to itself.
 */
export class Work {
  readonly #maxSteps: number;
  #steps = 0;
  #stackUnits = 0;

  constructor(steps = maxSteps) {
    this.#maxSteps = steps;
  }

  /** Begins the next check. */
  restart(): void {
    this.#steps = 0;
    this.#stackUnits = 0;
  }

  /**
   * Counts steps, each of them some 500 ns.
   * @throws Uncheckable
   */
  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > this.#maxSteps) throw new Uncheckable(tooMuch);
  }

  /**
   * Counts the steps that so many characters take.
   * @throws Uncheckable
   */
  spendChars(chars: number): void {
    this.spend(Math.ceil(chars / charsPerStep));
  }

  /**
   * Counts the steps that so many characters of JSON take.
   * @throws Uncheckable
   */
  spendJson(chars: number): void {
    this.spend(Math.ceil(chars / jsonCharsPerStep));
  }

  /**
   * Whether a pattern matches, when that is not too much work.
   * @throws Uncheckable
   */
  matches(pattern: Pattern, text: string): boolean {
    this.spend(
      1 + Math.ceil((text.length * pattern.size) / instructionsPerStep),
    );
    return pattern.test(text);
  }

  /**
   * Enters a function of so many parts; who enters it leaves it. A stack that overflows is not
   * always an exception: inside a regular expression it ends the process.
   * @throws Uncheckable
   */
  enter(parts: number): void {
    this.#stackUnits += callUnits + parts;
    if (this.#stackUnits > maxStackUnits) throw new Uncheckable(tooMuch);
  }

  /** Leaves a function of so many parts. */
  leave(parts: number): void {
    this.#stackUnits -= callUnits + parts;
  }
}
