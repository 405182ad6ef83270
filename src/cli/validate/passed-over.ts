import type { JsonValue } from "@bufbuild/protobuf";

import { escaped, quoted } from "../../errors.js";

/** What an object says it is; texts are empty where it says nothing. */
interface ObjectType {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Counts what was left alone, which is told when nothing else was found. */
export interface PassedOver {
  document(type: ObjectType): void;
  /** A Composition of this mode. */
  mode(mode: JsonValue): void;
  compositionWithoutSteps(): void;
  /** A step, told by what its input says it is. */
  stepWithInput(type: ObjectType): void;
  /** A step, told by its function; "" when it names none. */
  stepThatCalls(functionName: string): void;
  /** Whether there was any step. */
  hasSteps(): boolean;
  /** What and how many, on one line and escaped; "" = nothing. */
  text(): string;
}

/** A line is read by people. */
const MAX_SHOWN = 10;

export function createPassedOver(): PassedOver {
  const counts = new Map<string, number>();
  let steps = 0;
  const count = (what: string) => {
    counts.set(what, (counts.get(what) ?? 0) + 1);
  };
  const countStep = (what: string) => {
    steps += 1;
    count(what);
  };
  return {
    document(type) {
      const text = typeText(type);
      count(
        text === ""
          ? "documents without apiVersion and kind"
          : `documents of ${text}`,
      );
    },
    mode(mode) {
      const text =
        typeof mode === "string" ? quoted(mode) : escaped(JSON.stringify(mode));
      count(`Compositions of mode ${text}`);
    },
    compositionWithoutSteps() {
      count("Compositions without pipeline steps");
    },
    stepWithInput(type) {
      const text = typeText(type);
      countStep(
        text === ""
          ? "steps without an input that says what it is"
          : `steps with an input of ${text}`,
      );
    },
    stepThatCalls(functionName) {
      countStep(
        functionName === ""
          ? "steps that call no function"
          : `steps that call ${quoted(functionName)}`,
      );
    },
    hasSteps: () => steps > 0,
    text() {
      const shown = [...counts].slice(0, MAX_SHOWN);
      const others = counts.size - shown.length;
      const items = shown.map(([what, times]) => `${what}: ${times}`);
      if (others > 0) items.push(`and ${others} other kinds`);
      return items.join(", ");
    },
  };
}

function typeText({ apiVersion, kind }: ObjectType): string {
  return escaped(`${apiVersion} ${kind}`.trim());
}
