import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import {
  type Field,
  isObject,
  list,
  member,
  objectOrEmpty,
  optionalObject,
  optionalText,
  path,
} from "../files/fields.js";
import type { YamlDocument } from "../files/yaml.js";
import type { PassedOver } from "./passed-over.js";

/** An Input to judge, and where it was found. */
export interface Subject {
  /** As the command line names it. */
  readonly file: string;
  /** From 0; empty documents do not count. */
  readonly document: number;
  /** The pipeline step that it is the Input of; null for an Input that is a document of its own. */
  readonly step: PipelineStep | null;
  /** `metadata.name` of the Input, "" when it has none. */
  readonly name: string;
  /** null = the step has none. */
  readonly input: JsonObject | null;
}

/** One step of a Composition. */
export interface PipelineStep {
  /** "" when it has none. */
  readonly composition: string;
  /** What the Composition is for; texts may be empty. */
  readonly compositeType: CompositeType;
  /** "" when it has none. */
  readonly name: string;
  /** From 0. */
  readonly index: number;
  /** Names of the credentials that the step hands to its function. */
  readonly credentials: ReadonlySet<string>;
}

/** The kind of a composite resource. */
export interface CompositeType {
  readonly apiVersion: string;
  readonly kind: string;
}

/**
 * Finds what there is to judge in the documents of a file: steps of Compositions whose Input is of
 * this function's group, and Inputs that are documents, also inside Lists. All else is left alone.
 * @param functionName instead, the steps that call the function of this name, whatever their Input
 *   is; null = go by the Input
 * @param passedOver is told what is left alone
 * @throws FileError file-invalid for a Composition whose pipeline is none
 */
export function findSubjects(
  file: string,
  documents: readonly YamlDocument[],
  functionName: string | null,
  passedOver: PassedOver,
): Subject[] {
  return documents.flatMap((root, document) =>
    [...unpackLists(root)].flatMap((object): Subject[] => {
      const place = { file, document };
      const type = typeOf(object);
      if (type.apiVersion === COMPOSITION_VERSION && type.kind === COMPOSITION)
        return stepsOf(object, place, functionName, passedOver);
      if (!isOurs(object)) {
        passedOver.document(type);
        return [];
      }
      const input = optionalObject(object);
      return [{ ...place, step: null, name: nameOf(object), input }];
    }),
  );
}

const INPUT_GROUP = "wasm.fn.crossplane.io";
const COMPOSITION_VERSION = "apiextensions.crossplane.io/v1";
const COMPOSITION = "Composition";

/** The objects inside `List`s, `CompositionList`s and the like; everything else as it is. */
function* unpackLists(object: Field): Generator<Field> {
  const { apiVersion, kind } = typeOf(object);
  const isList =
    kind.endsWith("List") &&
    Array.isArray(objectOrEmpty(object.value)["items"]);
  if (!isList) {
    yield object;
    return;
  }
  // The items of a typed list may leave it to the list to say what they are.
  const type = { apiVersion, kind: kind.slice(0, -"List".length) };
  for (const { value, where } of list(member(object, "items"))) {
    const item = isObject(value) ? { ...type, ...value } : (value ?? null);
    yield* unpackLists({ value: item, where });
  }
}

function stepsOf(
  composition: Field,
  place: Pick<Subject, "file" | "document">,
  functionName: string | null,
  passedOver: PassedOver,
): Subject[] {
  const spec = member(composition, "spec");
  const mode = member(spec, "mode").value ?? "Pipeline";
  if (mode !== "Pipeline") {
    passedOver.mode(mode);
    return [];
  }
  const shared = {
    composition: nameOf(composition),
    compositeType: {
      apiVersion: optionalText(path(spec, "compositeTypeRef", "apiVersion")),
      kind: optionalText(path(spec, "compositeTypeRef", "kind")),
    },
  };
  const steps = list(member(spec, "pipeline"));
  if (steps.length === 0) passedOver.compositionWithoutSteps();
  return steps.flatMap((step, index): Subject[] => {
    if (!isMeant(step, functionName)) {
      if (functionName === null)
        passedOver.stepWithInput(typeOf(member(step, "input")));
      else passedOver.stepThatCalls(functionOf(step));
      return [];
    }
    return [
      {
        ...place,
        name: "",
        input: optionalObject(member(step, "input")),
        step: {
          ...shared,
          name: optionalText(member(step, "step")),
          index,
          credentials: credentialsOf(step),
        },
      },
    ];
  });
}

function isMeant(step: Field, functionName: string | null): boolean {
  if (functionName === null) return isOurs(member(step, "input"));
  return functionOf(step) === functionName;
}

function functionOf(step: Field): string {
  return optionalText(path(step, "functionRef", "name"));
}

/** Of whatever version and kind: a wrong one is a mistake to point out, not somebody else's. */
function isOurs(input: Field): boolean {
  return typeOf(input).apiVersion.split("/")[0] === INPUT_GROUP;
}

function credentialsOf(step: Field): Set<string> {
  const declared = list(member(step, "credentials")).filter(
    (credential) => member(credential, "source").value !== "None",
  );
  return new Set(
    declared.map((credential) => optionalText(member(credential, "name"))),
  );
}

/** What an object says it is; texts are empty where it says nothing of use. */
function typeOf({ value }: Field): CompositeType {
  const { apiVersion, kind } = objectOrEmpty(value);
  return { apiVersion: textOrEmpty(apiVersion), kind: textOrEmpty(kind) };
}

function nameOf({ value }: Field): string {
  const metadata = objectOrEmpty(objectOrEmpty(value)["metadata"]);
  return textOrEmpty(metadata["name"]);
}

function textOrEmpty(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
