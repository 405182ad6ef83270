import type { EntityUidJson, PolicyJson } from "@cedar-policy/cedar-wasm";

import { escaped } from "../../errors.js";
import type { PolicyRule } from "./messages.js";
import { type ActionName, actionNames } from "./policy.js";

/** What a policy's rules are, read from Cedar's own account of them. */
export interface PolicyStructure {
  readonly rules: readonly PolicyRule[];
  readonly scopedActions: readonly ActionName[];
}

/**
 * Reads what rules are called and which actions their heads name. Never from their text, in which a
 * comment or a string may say anything.
 * @param policies in the order of the text
 */
export function readStructure(
  policies: readonly PolicyJson[],
): PolicyStructure {
  const named = new Set(policies.flatMap(actionsNamedBy));
  return {
    rules: policies.map((policy, position) => ({
      id: ruleId(policy, position),
      effect: policy.effect,
    })),
    scopedActions: actionNames.filter((action) => named.has(action)),
  };
}

/** Whether a rule's head leaves the action open. */
export function isForEveryAction({ action }: PolicyJson): boolean {
  return action.op === "All";
}

/** The actions of `action == …` or `action in …` in a rule's head; a condition names none. */
export function actionsNamedBy({ action }: PolicyJson): string[] {
  if ("entities" in action) return action.entities.map(entityId);
  return "entity" in action ? [entityId(action.entity)] : [];
}

/**
 * Cedar numbers rules by position, `policy0`, `policy1`, …, and hands their parts out sorted by that
 * number as text, so that the eleventh comes before the third. This puts them in order again.
 */
export function inTextOrder<T>(parts: readonly T[]): T[] {
  const positions = parts
    .map((_, position) => ({ position, key: String(position) }))
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  const ordered = [...parts];
  positions.forEach(({ position }, sorted) => {
    ordered[position] = parts[sorted] as T;
  });
  return ordered;
}

/** Ids are for logs alone, so two rules may have the same. */
function ruleId({ annotations }: PolicyJson, position: number): string {
  // Cedar says null for an annotation without a value.
  const id = annotations?.["id"] as string | null | undefined;
  return id ? escaped(id) : `policy${position}`;
}

function entityId(uid: EntityUidJson): string {
  return "__entity" in uid ? uid.__entity.id : uid.id;
}
