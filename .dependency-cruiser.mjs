/** The import rules of the house: `npm run lint:deps`. */
const rules = [
  {
    name: "nothing-imports-in-a-circle",
    comment: "Move what both need into a file of its own.",
    from: {},
    to: { circular: true },
  },
  {
    name: "every-file-is-used",
    comment: "Delete it, or import it from where it is needed.",
    from: {
      orphan: true,
      path: "^(src|bench|scripts)/",
      pathNot: "^(src/main\\.ts|scripts/[^/]+\\.mjs)$",
    },
    to: {},
  },
  {
    name: "every-import-exists",
    comment: "Install it, or mend the path.",
    from: {},
    to: { couldNotResolve: true },
  },
  {
    name: "src-never-imports-test-bench-or-scripts",
    comment: "Move the code into src/, or hand it in as an argument.",
    from: { path: "^src/" },
    to: { path: "^(test|bench|scripts|examples)/" },
  },
  {
    name: "src-imports-no-development-package",
    comment: "Make it a dependency, or do without.",
    from: { path: "^src/" },
    to: {
      dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"],
      dependencyTypesNot: ["type-only"],
    },
  },
  {
    name: "errors-and-ports-are-leaves",
    comment: "They hold types for everybody, so they know nobody.",
    from: { path: "^src/(errors|ports)\\.ts$" },
    to: {},
  },
  {
    name: "request-scope-knows-ports-only",
    comment: "It is for everybody, too.",
    from: { path: "^src/request-scope\\.ts$" },
    to: { pathNot: "^src/ports\\.ts$" },
  },
  {
    name: "generated-code-imports-only-protobuf",
    comment: "src/gen is written by a generator: change proto/ instead.",
    from: { path: "^src/gen/" },
    to: { pathNot: "^src/gen/|(^|/)node_modules/@bufbuild/protobuf/" },
  },
  {
    name: "admission-loader-and-engine-never-import-each-other",
    comment:
      "They know errors, ports, request-scope and gen only: src/function hands values across, shared types go to src/ports.ts.",
    from: { path: "^src/(admission|loader|engine)/" },
    to: {
      path: "^src/",
      pathNot: "^src/($1/|gen/|(errors|ports|request-scope)\\.ts$)",
    },
  },
  {
    name: "function-imports-admission-loader-and-engine-only",
    comment: "What the command line or main decides comes in as an argument.",
    from: { path: "^src/function/" },
    to: {
      path: "^src/",
      pathNot:
        "^src/((function|admission|loader|engine|gen)/|(errors|ports|request-scope)\\.ts$)",
    },
  },
  {
    name: "other-folders-import-a-folders-index-only",
    comment:
      "Export it from that folder's index.ts, if it is meant for others.",
    from: { path: "^src/([^/]+)/" },
    to: {
      path: "^src/(function|admission|loader|engine|cli)/",
      pathNot: "^src/($1/|[^/]+/index\\.ts$)",
    },
  },
  {
    name: "main-and-config-import-a-folders-index-only",
    comment:
      "Export it from that folder's index.ts, if it is meant for others.",
    from: { path: "^src/[^/]+\\.ts$" },
    to: {
      path: "^src/(function|admission|loader|engine)/",
      pathNot: "^src/[^/]+/index\\.ts$",
    },
  },
  {
    name: "only-engine-native-loads-the-addon",
    comment: "Ask src/engine for it.",
    from: { path: "^src/", pathNot: "^src/engine/native\\.ts$" },
    to: { path: "\\.node$|^module$|^node:module$" },
  },
  {
    name: "only-the-engine-imports-its-native-face",
    comment: "Go through src/engine/index.ts.",
    from: { path: "^src/", pathNot: "^src/engine/" },
    to: { path: "^src/engine/native\\.ts$" },
  },
  {
    name: "only-admission-imports-cedar",
    comment: "Policies are decided in src/admission.",
    from: { path: "^src/", pathNot: "^src/admission/" },
    to: { path: "(^|/)node_modules/@cedar-policy/" },
  },
  {
    name: "only-the-loader-and-the-egress-client-use-undici",
    comment: "Outbound HTTP leaves through one of these two.",
    from: { path: "^src/", pathNot: "^src/(loader|egress)/" },
    to: { path: "(^|/)node_modules/undici/" },
  },
  {
    name: "only-function-and-cli-know-grpc",
    comment: "Throw an error with a code; src/function says it in gRPC.",
    from: { path: "^src/", pathNot: "^src/(function|cli)/|^src/main\\.ts$" },
    to: { path: "(^|/)node_modules/(@grpc/|grpc-)" },
  },
];

export default {
  forbidden: rules.map((rule) => ({ ...rule, severity: "error" })),
  options: {
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(dist|build|examples)/" },
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
