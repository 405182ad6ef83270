import { create, equals } from "@bufbuild/protobuf";

import {
  type Requirements,
  RequirementsSchema,
  type Resources,
  type ResourceSelector,
  ResourcesSchema,
  type RunFunctionRequest,
  type RunFunctionResponse,
  type Schema,
  SchemaSchema,
  Severity,
} from "../../gen/run_function_pb.js";
import { quoted } from "../../errors.js";
import type { Selector } from "./composition.js";
import { RenderError } from "./error.js";
import type { Manifest } from "../files/manifest.js";

/** Calls a function once. */
export type Call = (
  request: RunFunctionRequest,
) => Promise<RunFunctionResponse>;

/** Crossplane calls a function this many times and once more. */
const MAX_ITERATIONS = 5;

/**
 * Calls a function until it requires nothing that it was not given, as Crossplane does: at most six
 * times, ending early at a fatal result.
 * @param request carries what the step is given without asking; changed from call to call
 * @throws RenderError pipeline-unstable, answer-invalid, and what `call` throws
 */
export async function callUntilStable(
  call: Call,
  request: RunFunctionRequest,
  pool: readonly Manifest[],
): Promise<RunFunctionResponse> {
  const givenResources = request.requiredResources;
  const givenSchemas = request.requiredSchemas;
  let previous: Requirements | undefined;

  for (let iteration = 0; iteration <= MAX_ITERATIONS; iteration++) {
    const response = await call(request);
    const { requirements } = response;
    if (response.results.some(({ severity }) => severity === Severity.FATAL)) {
      return response;
    }
    if (sameRequirements(requirements, previous)) return response;

    const next = {
      requiredResources: {
        ...givenResources,
        ...findAll(requirements?.resources, pool),
      },
      // eslint-disable-next-line @typescript-eslint/no-deprecated -- functions still ask this way
      extraResources: findAll(requirements?.extraResources, pool),
      requiredSchemas: { ...givenSchemas, ...noSchemas(requirements) },
    };
    // It was given all this before it asked: another call would change nothing.
    if (iteration === 0 && alreadyGiven(request, next)) return response;

    previous = requirements;
    Object.assign(request, next);
    if (response.context === undefined) delete request.context;
    else request.context = response.context;
  }
  throw new RenderError(
    "pipeline-unstable",
    `requirements didn't stabilize after the maximum number of iterations (${MAX_ITERATIONS})`,
  );
}

/** The objects of the pool that are meant, in order of namespace and name. */
export function find(selector: Selector, pool: readonly Manifest[]): Resources {
  const { apiVersion, kind, namespace, match } = selector;
  const items = pool
    .filter(
      (manifest) =>
        manifest.apiVersion === apiVersion &&
        manifest.kind === kind &&
        (namespace === "" || manifest.namespace === namespace) &&
        matches(manifest, match),
    )
    .toSorted((a, b) => compare(sortKey(a), sortKey(b)))
    .map(({ object }) => ({ resource: object }));
  // There is only one object of a name; without a namespace several can have it.
  return create(ResourcesSchema, {
    items: match.kind === "name" ? items.slice(0, 1) : items,
  });
}

/** Orders texts by UTF-16 code unit. */
export function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function matches(manifest: Manifest, match: Selector["match"]): boolean {
  switch (match.kind) {
    case "all":
      return true;
    case "name":
      return manifest.name === match.name;
    case "labels":
      return [...match.labels].every(
        ([name, value]) => manifest.labels.get(name) === value,
      );
  }
}

function sortKey({ namespace, name }: Manifest): string {
  return `${namespace}/${name}`;
}

function findAll(
  selectors: { [name: string]: ResourceSelector } | undefined,
  pool: readonly Manifest[],
): { [name: string]: Resources } {
  return mapValues(selectors ?? {}, (selector, name) =>
    find(parseSelector(selector, name), pool),
  );
}

function parseSelector(selector: ResourceSelector, name: string): Selector {
  const { apiVersion, kind, namespace = "", match } = selector;
  const unknown = [selector, match.case === "matchLabels" ? match.value : null];
  if (unknown.some((message) => (message?.$unknown?.length ?? 0) > 0)) {
    throw new RenderError(
      "answer-invalid",
      `the requirement ${quoted(name)} selects in a way that this version of render does not know`,
    );
  }
  switch (match.case) {
    case "matchName":
      return {
        apiVersion,
        kind,
        namespace,
        match: { kind: "name", name: match.value },
      };
    case "matchLabels": {
      const labels = new Map(Object.entries(match.value.labels));
      return { apiVersion, kind, namespace, match: { kind: "labels", labels } };
    }
    case undefined:
      return { apiVersion, kind, namespace, match: { kind: "all" } };
  }
}

/** No schema can be handed to render, so each one asked for is answered with "there is none". */
function noSchemas(requirements: Requirements | undefined): {
  [name: string]: Schema;
} {
  return mapValues(requirements?.schemas ?? {}, () => create(SchemaSchema));
}

function sameRequirements(
  a: Requirements | undefined,
  b: Requirements | undefined,
): boolean {
  if (a === undefined || b === undefined) return a === b;
  return equals(RequirementsSchema, a, b);
}

type Given = Pick<
  RunFunctionRequest,
  "requiredResources" | "extraResources" | "requiredSchemas"
>;

function alreadyGiven(request: Given, next: Given): boolean {
  return (
    sameEntries(request.requiredResources, next.requiredResources, sameItems) &&
    sameEntries(request.requiredSchemas, next.requiredSchemas, () => true) &&
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- functions still ask this way
    sameEntries(request.extraResources, next.extraResources, sameItems)
  );
}

function sameItems(a: Resources, b: Resources): boolean {
  return equals(ResourcesSchema, a, b);
}

function sameEntries<T>(
  a: { [name: string]: T },
  b: { [name: string]: T },
  same: (a: T, b: T) => boolean,
): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => {
      const [left, right] = [a[name], b[name]];
      return left !== undefined && right !== undefined && same(left, right);
    })
  );
}

function mapValues<T, U>(
  object: { [name: string]: T },
  map: (value: T, name: string) => U,
): { [name: string]: U } {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, map(value, name)]),
  );
}
