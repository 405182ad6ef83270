import { quoted } from "../errors.js";
import type { ModuleSource, SourceParsers } from "../ports.js";
import type { PathSegment } from "./composite.js";
import { AdmissionError } from "./error.js";
import { formatFieldPath, parseFieldPath } from "./field-path.js";
import {
  describeWithoutText,
  type Fields,
  invalid,
  invalidAt,
  isName,
  objectField,
  readFields,
  textField,
} from "./fields.js";
import type { JsonValue } from "./json.js";
import {
  httpSource,
  ociSource,
  readHttpTexts,
  readOciTexts,
  type SourceCeilings,
} from "./source.js";

/** Who chooses the module. */
export type ModuleChoice =
  /** The Input names it. */
  | { readonly kind: "static"; readonly source: ModuleSource }
  /** The XR does; its kind is the Input's to say. */
  | FromChoice;

/** Where in the XR a module is named. */
export interface FromChoice {
  readonly kind: "from";
  readonly type: ModuleSource["type"];
  /** Begins with `spec` or `status`. */
  readonly path: readonly PathSegment[];
  /** `path` as messages show it, on one line. */
  readonly pathText: string;
  /** Whether the XR may leave the field unset, and nothing runs then. */
  readonly allowEmpty: boolean;
  readonly manifestPath: string | null;
}

/** The field of `module` that goes with each type. */
const FIELD_OF_TYPE = { OCI: "oci", HTTP: "http", Path: "path" } as const;

/**
 * Reads the Input's `module`.
 * @throws AdmissionError input-invalid, field-unknown, source-refused
 */
export function readModuleChoice(
  value: JsonValue | undefined,
  ceilings: SourceCeilings,
  parsers: SourceParsers,
): ModuleChoice {
  const module = objectField(value, "module", describeWithoutText);
  if (module === undefined) throw invalid("module is required");
  const fields = readFields(module, "module", {
    supported: [
      "type",
      "oci",
      "http",
      "path",
      "from",
      "allowEmpty",
      "manifestPath",
    ],
  });
  const type = readType(fields);
  refuseOtherSources(fields, type);
  const allowEmpty = readAllowEmpty(fields);
  refuseWithoutModuleDir(fields, type, ceilings);
  refuseStrayManifestPath(fields, type);
  if (fields.has("from")) {
    const path = readFrom(fields);
    return {
      kind: "from",
      type,
      path,
      pathText: formatFieldPath(path),
      allowEmpty,
      manifestPath: readManifestPath(fields),
    };
  }
  const source = readSource(type, fields, ceilings, parsers);
  return { kind: "static", source };
}

function readSource(
  type: ModuleSource["type"],
  fields: Fields,
  ceilings: SourceCeilings,
  parsers: SourceParsers,
): ModuleSource {
  switch (type) {
    case "OCI": {
      const texts = readOciTexts(fields.get("oci"), "input");
      return ociSource(texts, "input", ceilings, parsers);
    }
    case "HTTP": {
      const texts = readHttpTexts(fields.get("http"), "input");
      return httpSource(texts, "input", parsers);
    }
    case "Path": {
      const path = textField(fields.get("path"), "module.path");
      return { type, path, manifestPath: readManifestPath(fields) };
    }
  }
}

function readType(fields: Fields): ModuleSource["type"] {
  const type = fields.get("type");
  if (type === undefined)
    throw invalid("module.type is required, expected OCI, HTTP or Path");
  if (type === "OCI" || type === "HTTP" || type === "Path") return type;
  const found =
    typeof type === "string" && isName(type)
      ? quoted(type)
      : describeWithoutText(type);
  throw invalid(`module.type: expected OCI, HTTP or Path, got ${found}`);
}

function refuseOtherSources(fields: Fields, type: ModuleSource["type"]): void {
  const own = FIELD_OF_TYPE[type];
  for (const other of Object.values(FIELD_OF_TYPE)) {
    if (other !== own && fields.has(other)) {
      throw invalid(
        `module.${other} does not go with module.type ${type}, expected module.${own} or module.from`,
      );
    }
  }
  if (fields.has(own) && fields.has("from"))
    throw invalid(
      `module.${own} and module.from are both set, expected one of them`,
    );
  if (!fields.has(own) && !fields.has("from"))
    throw invalid(
      `module.${own} or module.from is required with module.type ${type}`,
    );
}

/** Only `true` asks for something: `false` says what is so without it. */
function readAllowEmpty(fields: Fields): boolean {
  const allowEmpty = fields.get("allowEmpty") ?? false;
  if (typeof allowEmpty !== "boolean") {
    throw invalid(
      `module.allowEmpty: expected true or false, got ${describeWithoutText(allowEmpty)}`,
    );
  }
  if (allowEmpty && !fields.has("from"))
    throw invalid("module.allowEmpty is set but module.from is not");
  return allowEmpty;
}

/** Whatever the XR would say, the answer is the same. */
function refuseWithoutModuleDir(
  fields: Fields,
  type: ModuleSource["type"],
  { moduleDirSet }: SourceCeilings,
): void {
  if (type !== "Path" || moduleDirSet) return;
  const field = fields.has("path") ? "path" : "from";
  throw new AdmissionError(
    "source-refused",
    `module.${field} is refused: the runtime has no --module-dir to load modules from`,
  );
}

function refuseStrayManifestPath(
  fields: Fields,
  type: ModuleSource["type"],
): void {
  if (type === "Path" || !fields.has("manifestPath")) return;
  throw invalid(
    `module.manifestPath does not go with module.type ${type}, expected module.type Path`,
  );
}

function readManifestPath(fields: Fields): string | null {
  const manifestPath = fields.get("manifestPath");
  return manifestPath === undefined
    ? null
    : textField(manifestPath, "module.manifestPath");
}

function readFrom(fields: Fields): readonly PathSegment[] {
  const text = textField(fields.get("from"), "module.from");
  const result = parseFieldPath(text);
  if (result.kind === "ok") return result.value;
  throw invalidAt(
    "module.from",
    text.includes("://")
      ? "expected spec.… or status.…, got a URL"
      : result.message,
  );
}
