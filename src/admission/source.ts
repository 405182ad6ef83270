import type { Digest, ModuleSource } from "../ports.js";
import { AdmissionError } from "./error.js";
import {
  describe,
  type Fields,
  invalid,
  objectField,
  readFields,
  textField,
} from "./fields.js";
import type { JsonValue } from "./json.js";

/** The field of `module` that goes with each type. */
const FIELD_OF_TYPE = { OCI: "oci", HTTP: "http", Path: "path" } as const;

/**
 * Reads the Input's `module`.
 * @param moduleDirSet whether the runtime has a --module-dir
 * @throws AdmissionError
 */
export function readSource(
  value: JsonValue | undefined,
  moduleDirSet: boolean,
): ModuleSource {
  const module = objectField(value, "module");
  if (module === undefined) throw invalid("module is required");
  const fields = readFields(module, "module", {
    supported: ["type", "oci", "http", "path", "allowEmpty"],
    unsupported: ["from", "manifestPath"],
  });
  // `module.from` was refused above, so nothing can be empty.
  if (fields.has("allowEmpty"))
    throw invalid("module.allowEmpty is set but module.from is not");

  const type = readType(fields);
  refuseOtherSources(fields, type);
  switch (type) {
    case "OCI":
      return readOci(fields);
    case "HTTP":
      return readHttp(fields);
    case "Path":
      return readPath(fields, moduleDirSet);
  }
}

function readType(fields: Fields): ModuleSource["type"] {
  const type = fields.get("type");
  if (type === undefined)
    throw invalid("module.type is required, expected OCI, HTTP or Path");
  if (type === "OCI" || type === "HTTP" || type === "Path") return type;
  throw invalid(
    `module.type: expected OCI, HTTP or Path, got ${describe(type)}`,
  );
}

function refuseOtherSources(fields: Fields, type: ModuleSource["type"]): void {
  const own = FIELD_OF_TYPE[type];
  for (const other of Object.values(FIELD_OF_TYPE)) {
    if (other !== own && fields.has(other)) {
      throw invalid(
        `module.${other} does not go with module.type ${type}, expected module.${own} only`,
      );
    }
  }
  if (!fields.has(own))
    throw invalid(`module.${own} is required with module.type ${type}`);
}

function readPath(fields: Fields, moduleDirSet: boolean): ModuleSource {
  const path = textField(fields.get("path"), "module.path");
  if (!moduleDirSet) {
    throw new AdmissionError(
      "source-refused",
      "module.path is refused: the runtime has no --module-dir to load modules from",
    );
  }
  return { type: "Path", path };
}

function readOci(fields: Fields): ModuleSource {
  const oci = readFields(
    objectField(fields.get("oci"), "module.oci") ?? {},
    "module.oci",
    {
      supported: ["ref"],
      unsupported: ["expectedDigest", "credentials"],
    },
  );
  return { type: "OCI", ref: textField(oci.get("ref"), "module.oci.ref") };
}

function readHttp(fields: Fields): ModuleSource {
  const http = readFields(
    objectField(fields.get("http"), "module.http") ?? {},
    "module.http",
    {
      supported: ["url", "digest"],
      unsupported: ["manifestURL", "manifestDigest"],
    },
  );
  return {
    type: "HTTP",
    url: textField(http.get("url"), "module.http.url"),
    digest: readDigest(http.get("digest"), "module.http.digest"),
  };
}

function readDigest(value: JsonValue | undefined, path: string): Digest {
  const text = textField(value, path);
  if (isDigest(text)) return text;
  throw invalid(
    `${path}: expected sha256: and 64 lower-case hex digits, got ${describe(text)}`,
  );
}

function isDigest(text: string): text is Digest {
  return /^sha256:[0-9a-f]{64}$/u.test(text);
}
