import type { JsonObject } from "@bufbuild/protobuf";

import { quoted } from "../../errors.js";
import { FileError } from "../files/error.js";
import {
  type Field,
  list,
  member,
  optionalObject,
  optionalText,
  path,
  text,
  texts,
} from "../files/fields.js";
import type { Manifest } from "../files/manifest.js";

/** One step of a Composition's pipeline. */
export interface Step {
  readonly name: string;
  readonly functionName: string;
  readonly input: JsonObject | null;
  readonly credentials: readonly StepCredential[];
  /** What the step is given without asking. */
  readonly requiredResources: ReadonlyMap<string, Selector>;
  readonly requiredSchemas: readonly string[];
}

/** The Secret behind a name that the function knows. */
export interface StepCredential {
  readonly name: string;
  readonly secretNamespace: string;
  readonly secretName: string;
}

/** Which objects are meant. */
export interface Selector {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty = any. */
  readonly namespace: string;
  readonly match:
    | { readonly kind: "all" }
    | { readonly kind: "name"; readonly name: string }
    | { readonly kind: "labels"; readonly labels: ReadonlyMap<string, string> };
}

/**
 * The pipeline of a Composition that fits the composite resource.
 * @throws FileError file-invalid
 */
export function readPipeline(composition: Manifest, xr: Manifest): Step[] {
  const { root } = composition;
  if (
    composition.apiVersion !== "apiextensions.crossplane.io/v1" ||
    composition.kind !== "Composition"
  ) {
    throw invalid(
      root,
      `expected an apiextensions.crossplane.io/v1 Composition, got ${composition.apiVersion} ${composition.kind}`,
    );
  }
  checkType(path(root, "spec", "compositeTypeRef"), xr);
  checkLabels(composition, xr);

  const mode = path(root, "spec", "mode");
  if (mode.value !== undefined && mode.value !== "Pipeline") {
    throw invalid(mode, "only mode Pipeline can be rendered");
  }
  const pipeline = path(root, "spec", "pipeline");
  const steps = list(pipeline).map(readStep);
  if (steps.length === 0) throw invalid(pipeline, "expected at least one step");
  const names = steps.map((step) => step.name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) {
    throw invalid(pipeline, `two steps are named ${quoted(twice)}`);
  }
  return steps;
}

function checkType(reference: Field, xr: Manifest): void {
  for (const name of ["apiVersion", "kind"] as const) {
    const field = member(reference, name);
    const want = text(field);
    if (want !== xr[name]) {
      throw invalid(
        field,
        `the Composition is for ${quoted(want)}, but the composite resource is ${quoted(xr[name])}`,
      );
    }
  }
}

/** A composite resource may say which labels its Composition must have. */
function checkLabels(composition: Manifest, xr: Manifest): void {
  for (const names of [["spec", "crossplane"], ["spec"]]) {
    const selector = path(xr.root, ...names, "compositionSelector");
    for (const [name, want] of texts(member(selector, "matchLabels"))) {
      if (composition.labels.get(name) === want) continue;
      throw invalid(
        member(selector, "matchLabels"),
        `the Composition has no label ${quoted(name)} with the value ${quoted(want)}`,
      );
    }
  }
}

function readStep(step: Field): Step {
  const required = path(step, "requirements", "requiredResources");
  const schemas = path(step, "requirements", "requiredSchemas");
  return {
    name: text(member(step, "step")),
    functionName: text(path(step, "functionRef", "name")),
    input: optionalObject(member(step, "input")),
    credentials: list(member(step, "credentials")).flatMap(readCredential),
    requiredResources: new Map(list(required).map(readRequirement)),
    requiredSchemas: list(schemas).map((schema) =>
      text(member(schema, "requirementName")),
    ),
  };
}

function readCredential(credential: Field): StepCredential[] {
  const source = member(credential, "source");
  if (source.value === "None") return [];
  if (source.value !== "Secret") {
    throw invalid(source, "expected Secret or None");
  }
  const secret = member(credential, "secretRef");
  return [
    {
      name: text(member(credential, "name")),
      secretNamespace: text(member(secret, "namespace")),
      secretName: text(member(secret, "name")),
    },
  ];
}

function readRequirement(requirement: Field): [string, Selector] {
  const name = optionalText(member(requirement, "name"));
  const labels = member(requirement, "matchLabels");
  let match: Selector["match"] = { kind: "all" };
  if (name !== "") match = { kind: "name", name };
  else if (optionalObject(labels) !== null) {
    match = { kind: "labels", labels: texts(labels) };
  }
  const selector = {
    apiVersion: text(member(requirement, "apiVersion")),
    kind: text(member(requirement, "kind")),
    namespace: optionalText(member(requirement, "namespace")),
    match,
  };
  return [text(member(requirement, "requirementName")), selector];
}

function invalid(field: Field, problem: string): FileError {
  return new FileError("file-invalid", `${field.where}: ${problem}`);
}
