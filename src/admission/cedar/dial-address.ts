import type { Expr, PolicyJson } from "@cedar-policy/cedar-wasm";
import ipaddr from "ipaddr.js";

import { errorText, quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";
import type { PolicyRule } from "./messages.js";
import type { AddressPrefix, CompiledPolicy } from "./policy.js";
import { actionsNamedBy } from "./structure.js";

const everyAddress = ["0.0.0.0/0", "::/0"];
const loopback = ["127.0.0.0/8", "::1/128"];

/**
 * Turns `dialAddress` rules into lists of prefixes. Connections are judged by these, never by asking
 * Cedar, so what cannot be said as prefixes is refused.
 *
 * A rule for every action (`forbid (principal, action, resource);`) is no such rule: it forbids or
 * permits the egress that addresses would be dialled for.
 * @param policies of the text, in its order
 * @param rules what they are called
 */
export function compileDialAddress(
  policies: readonly PolicyJson[],
  rules: readonly PolicyRule[],
): Parsed<CompiledPolicy["dialAddress"]> {
  const lists: Record<PolicyRule["effect"], AddressPrefix[]> = {
    permit: [],
    forbid: [],
  };
  for (const [position, policy] of policies.entries()) {
    if (!actionsNamedBy(policy).includes("dialAddress")) continue;
    const rule = rules[position]?.id ?? `policy${position}`;
    const cidrs = prefixesOf(policy);
    if (cidrs.kind === "error") {
      const message = `dialAddress rule "${rule}": ${cidrs.message}`;
      return { kind: "error", message };
    }
    for (const cidr of cidrs.value) lists[policy.effect].push({ cidr, rule });
  }
  return { kind: "ok", value: lists };
}

function prefixesOf(policy: PolicyJson): Parsed<readonly string[]> {
  if (policy.action.op !== "==") {
    return refused(
      `must scope the action as == Action::"dialAddress", not an "in" set`,
    );
  }
  if (policy.principal.op !== "All" || policy.resource.op !== "All") {
    return refused(
      "must not constrain the principal or resource: the dial has neither identity",
    );
  }
  const [condition, ...more] = policy.conditions;
  if (policy.conditions.some(({ kind }) => kind === "unless"))
    return refused("may only use a when condition, not unless");
  if (more.length > 0) return refused("takes at most one when condition");
  if (condition === undefined) return { kind: "ok", value: everyAddress };
  return prefixesOfCondition(condition.body);
}

/** Reads the tests from left to right; a long list of `||` is a deep tree, hence no recursion. */
function prefixesOfCondition(condition: Expr): Parsed<readonly string[]> {
  const prefixes: string[] = [];
  const unread = [condition];
  for (let expr = unread.pop(); expr; expr = unread.pop()) {
    const [operation, operand] = operationOf(expr);
    if (operation === "||") {
      const { left, right } = operand as { left: Expr; right: Expr };
      unread.push(right, left);
      continue;
    }
    const tested = prefixesOfTest(operation, operand);
    if (tested.kind === "error") return tested;
    prefixes.push(...tested.value);
  }
  return { kind: "ok", value: prefixes };
}

const noTests = ["Value", "Var", ".", "Set", "Record"];

function prefixesOfTest(
  operation: string,
  operand: unknown,
): Parsed<readonly string[]> {
  if (noTests.includes(operation))
    return refused("the condition must be a single ip test");
  if (operation !== "isInRange" && operation !== "isLoopback") {
    return refused(
      `unsupported operation ${quoted(operation)} (an ip test uses isInRange, isLoopback or ||)`,
    );
  }
  const [tested, ...rest] = operand as readonly Expr[];
  if (!isContextIp(tested))
    return refused("an ip test may only test context.ip");
  if (operation === "isLoopback") {
    return rest.length === 0
      ? { kind: "ok", value: loopback }
      : refused("isLoopback takes context.ip and no argument");
  }
  const literal = rest.length === 1 ? ipLiteral(rest[0]) : null;
  if (literal === null)
    return refused('isInRange takes context.ip and one ip("CIDR") literal');
  return networkOf(literal);
}

/** Cedar writes an expression as an object with one member. */
function operationOf(expr: Expr | undefined): [string, unknown] {
  return Object.entries(expr ?? {})[0] ?? ["", undefined];
}

function isContextIp(expr: Expr | undefined): boolean {
  const [operation, operand] = operationOf(expr);
  if (operation !== ".") return false;
  const { left, attr } = operand as { left: Expr; attr: string };
  const [leftOperation, variable] = operationOf(left);
  return attr === "ip" && leftOperation === "Var" && variable === "context";
}

function ipLiteral(expr: Expr | undefined): string | null {
  const [operation, operand] = operationOf(expr);
  if (operation !== "ip" || !Array.isArray(operand)) return null;
  const [kind, value] = operationOf(operand[0] as Expr);
  return kind === "Value" && typeof value === "string" ? value : null;
}

/** An address or CIDR as the network it is in, without host bits. */
function networkOf(literal: string): Parsed<readonly string[]> {
  const [address = "", length] = literal.split("/");
  try {
    const family = familyOf(address);
    const cidr = length === undefined ? `${address}/${family.bits}` : literal;
    const network = family.networkOf(cidr);
    const [, bits] = ipaddr.parseCIDR(cidr);
    return { kind: "ok", value: [`${network}/${bits}`] };
  } catch (thrown) {
    return refused(
      `${quoted(literal)} is not an ip literal: ${errorText(thrown)}`,
    );
  }
}

/** ipaddr.js also reads `127.1`, octal numbers and zones, which Cedar does not. */
function familyOf(address: string) {
  if (ipaddr.IPv4.isValidFourPartDecimal(address)) {
    return {
      bits: 32,
      networkOf: (cidr: string) =>
        ipaddr.IPv4.networkAddressFromCIDR(cidr).toString(),
    };
  }
  if (ipaddr.IPv6.isValid(address) && !address.includes("%")) {
    return {
      bits: 128,
      networkOf: (cidr: string) =>
        ipaddr.IPv6.networkAddressFromCIDR(cidr).toString(),
    };
  }
  throw new Error("expected an IPv4 or IPv6 address, or a CIDR");
}

function refused(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
