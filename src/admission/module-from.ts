import type { ModuleSource, SourceParsers } from "../ports.js";
import type { CompositeResource, FieldLookup } from "./composite.js";
import { AdmissionError } from "./error.js";
import { formatSegment } from "./field-path.js";
import { describe, textField } from "./fields.js";
import type { JsonValue } from "./json.js";
import type { FromChoice } from "./module-choice.js";
import {
  httpSource,
  ociSource,
  readHttpTexts,
  readOciTexts,
  type SourceCeilings,
} from "./source.js";

/** What an XR names. */
export type ModuleFrom =
  /** Nothing, and the Input allows that. */
  | { readonly kind: "empty" }
  /** Not held to the compositionPolicy yet. */
  | { readonly kind: "source"; readonly source: ModuleSource };

/**
 * Reads the module that the XR names where `module.from` says, as strictly as one of the Input.
 *
 * A field is unset when it is null or absent, and also when there is no way to it: something on the
 * path is unset itself, or has no fields or elements.
 * @throws AdmissionError from-unset, from-invalid, source-refused
 */
export function readModuleFrom(
  choice: FromChoice,
  xr: CompositeResource,
  parsers: SourceParsers,
  ceilings: SourceCeilings,
): ModuleFrom {
  const found = xr.field(choice.path);
  if (found.kind === "missing" || found.value === null) {
    if (choice.allowEmpty) return { kind: "empty" };
    throw unset(choice, found);
  }
  const source = readSource(choice, found.value, parsers, ceilings);
  return { kind: "source", source };
}

function unset(choice: FromChoice, lookup: FieldLookup): AdmissionError {
  const { path, pathText } = choice;
  const at = lookup.kind === "missing" ? lookup.at : path.length - 1;
  const segment = path[at] ?? "";
  const [name, noun] =
    typeof segment === "number"
      ? [`[${segment}]`, "element"]
      : [formatSegment(segment), "field"];
  const reason = lookup.kind === "missing" ? `no such ${noun}` : "is null";
  return new AdmissionError(
    "from-unset",
    `module.from: cannot read ${pathText} from the composite resource: ${name}: ${reason}`,
  );
}

function readSource(
  choice: FromChoice,
  value: JsonValue,
  parsers: SourceParsers,
  ceilings: SourceCeilings,
): ModuleSource {
  const subject = `module.from: ${choice.pathText} of the composite resource`;
  switch (choice.type) {
    case "OCI": {
      const texts = within(
        `${subject} is not a {ref, credentials} object`,
        () => readOciTexts(value, "xr"),
      );
      return within(subject, () => ociSource(texts, "xr", ceilings, parsers));
    }
    case "HTTP": {
      const texts = within(`${subject} is not a {url, digest} object`, () =>
        readHttpTexts(value, "xr"),
      );
      return within(subject, () => httpSource(texts, "xr", parsers));
    }
    case "Path": {
      if (typeof value !== "string") {
        const message = `${subject} is not a string: got ${describe(value)}`;
        throw new AdmissionError("from-invalid", message);
      }
      const path = within(subject, () => textField(value, "the path"));
      return { type: "Path", path, manifestPath: choice.manifestPath };
    }
  }
}

/** What is said of an Input's field, said of the XR's. */
function within<T>(subject: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (!(cause instanceof AdmissionError)) throw cause;
    // The operator's flags are in the way, not the XR alone.
    const code =
      cause.code === "source-refused" ? "source-refused" : "from-invalid";
    throw new AdmissionError(code, `${subject}: ${cause.message}`, { cause });
  }
}
