import semver from "semver";

import { isObject, objectOr } from "./image.mjs";
import { shown } from "./shown.mjs";

/** @import { JsonObject } from "./image.mjs" */

const META_VERSIONS = [
  "meta.pkg.crossplane.io/v1",
  "meta.pkg.crossplane.io/v1beta1",
];
const CRD_VERSIONS = [
  "apiextensions.k8s.io/v1",
  "apiextensions.k8s.io/v1beta1",
];
/** As a label of a DNS name, since Crossplane makes a Service of that name. */
const NAME = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** What Crossplane's specification of functions has every package's name begin with. */
const PREFIX = "function-";

/**
 * What Crossplane would refuse in the documents of a Function's package.
 *
 * @param {readonly unknown[]} documents
 * @returns {string[]} a sentence for each problem
 */
export function packageProblems(documents) {
  const [first, ...others] = documents;
  return [
    ...(isMeta(first)
      ? metaProblems(first)
      : [
          `the package must begin with one Function of ${String(META_VERSIONS[0])}, got ${described(first)}`,
        ]),
    ...others.flatMap(otherProblems),
  ];
}

/**
 * @param {unknown} document
 * @returns {document is JsonObject}
 */
function isMeta(document) {
  return isOf(document, META_VERSIONS, "Function");
}

/**
 * @param {JsonObject} meta
 * @returns {string[]}
 */
function metaProblems(meta) {
  const { name } = objectOr(meta["metadata"]);
  const { crossplane, capabilities } = objectOr(meta["spec"]);
  const { version } = objectOr(crossplane);
  const problems = [];
  if (typeof name !== "string" || !NAME.test(name)) {
    problems.push(
      `the Function's metadata.name must be a DNS label, got ${shown(name)}`,
    );
  } else if (!name.startsWith(PREFIX)) {
    problems.push(
      `the Function's metadata.name must begin with ${PREFIX}, got ${shown(name)}`,
    );
  }
  if (crossplane !== undefined && !isConstraint(version)) {
    problems.push(
      `the Function's spec.crossplane.version must be a range of versions, got ${shown(version)}`,
    );
  }
  return [...problems, ...capabilityProblems(capabilities)];
}

/**
 * @param {unknown} capabilities
 * @returns {string[]}
 */
function capabilityProblems(capabilities) {
  // Without the field a function is one for Compositions.
  if (capabilities === undefined) return [];
  const names = Array.isArray(capabilities) ? capabilities : [];
  return names.some((name) => name === "composition")
    ? []
    : [
        `the Function's spec.capabilities must contain composition, got ${shown(capabilities)}`,
      ];
}

/**
 * @param {unknown} document
 * @returns {string[]}
 */
function otherProblems(document) {
  if (isMeta(document)) {
    return ["the package has a second Function: expected one"];
  }
  if (!isOf(document, CRD_VERSIONS, "CustomResourceDefinition")) {
    return [
      `the package may hold CustomResourceDefinitions only, got ${described(document)}`,
    ];
  }
  const { name } = objectOr(document["metadata"]);
  const { group, names } = objectOr(document["spec"]);
  const wanted = `${String(objectOr(names)["plural"])}.${String(group)}`;
  return name === wanted
    ? []
    : [
        `a CustomResourceDefinition must be called ${shown(wanted)}, got ${shown(name)}`,
      ];
}

/**
 * @param {unknown} document
 * @param {readonly string[]} apiVersions
 * @param {string} kind
 * @returns {document is JsonObject}
 */
function isOf(document, apiVersions, kind) {
  return (
    isObject(document) &&
    document["kind"] === kind &&
    apiVersions.some((version) => version === document["apiVersion"])
  );
}

/**
 * @param {unknown} value
 * @returns {boolean}
 */
function isConstraint(value) {
  return (
    typeof value === "string" &&
    value.trim() !== "" &&
    // Crossplane's ranges may have commas where npm's have spaces.
    semver.validRange(value.replaceAll(",", " ")) !== null
  );
}

/**
 * @param {unknown} document
 * @returns {string}
 */
function described(document) {
  const { apiVersion, kind } = objectOr(document);
  return document === undefined
    ? "nothing"
    : `${shown(kind)} of ${shown(apiVersion)}`;
}
