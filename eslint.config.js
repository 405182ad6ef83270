import eslint from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";

const listening = "/^(on|once|(prepend|add)(Once)?Listener)$/";
const crashSignal = "/^SIG(SEGV|ILL|FPE|BUS)$/";
const noCrashSignals = {
  selector: [
    `CallExpression[callee.property.name=${listening}]`,
    `CallExpression[callee.property.value=${listening}]`,
  ]
    .flatMap((call) => [
      `${call} > Literal.arguments[value=${crashSignal}]`,
      `${call} > TemplateLiteral.arguments > TemplateElement[value.cooked=${crashSignal}]`,
    ])
    .join(", "),
  message:
    "libuv would replace wasmtime's handler and the first guest trap would hang the process: let these signals be",
};
const noDefaultExport = {
  selector:
    "ExportDefaultDeclaration, ExportSpecifier[exported.name='default']",
  message: "use a named export",
};
const noWallClock = {
  selector:
    "NewExpression[callee.name='Date'][arguments.length=0], CallExpression[callee.object.name='performance'][callee.property.name='now']",
  message: "take a Clock (src/ports.ts) as an argument",
};

// Servers are made with createServer; whatever calls out goes through the loader or egress client.
const useTheClient =
  "outbound HTTP leaves through the loader or the egress client only (src/loader, src/egress)";
const noHttpClients = [
  ...["http", "https", "node:https", "http2", "node:http2", "axios"].map(
    (name) => ({ name, message: useTheClient, allowTypeImports: true }),
  ),
  {
    name: "node:http",
    allowImportNames: ["createServer"],
    allowTypeImports: true,
    message: `only createServer: ${useTheClient}`,
  },
];
const noUndici = {
  name: "undici",
  message: useTheClient,
};
const noProcess = {
  name: "node:process",
  message:
    "only src/main.ts looks at the process; take what you need as an argument",
};
const noRequire = {
  name: "node:module",
  message: "only src/engine/native.ts loads the addon",
};

export default defineConfig(
  globalIgnores([
    "build/",
    "coverage/",
    "dist/",
    "examples/",
    "native/",
    "src/gen/",
  ]),
  {
    extends: [eslint.configs.recommended, tseslint.configs.strictTypeChecked],
    linterOptions: { reportUnusedDisableDirectives: "error" },
    languageOptions: {
      parserOptions: {
        projectService: true,
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-confusing-void-expression": [
        "error",
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true },
      ],
      "@typescript-eslint/switch-exhaustiveness-check": "error",
      eqeqeq: "error",
      "no-restricted-syntax": ["error", noCrashSignals, noDefaultExport],
    },
  },
  {
    files: ["src/**"],
    rules: {
      "no-console": "error",
      "no-restricted-globals": [
        "error",
        ...["fetch", "WebSocket", "EventSource", "XMLHttpRequest"].map(
          (name) => ({ name, message: useTheClient }),
        ),
      ],
    },
  },
  {
    files: ["src/**"],
    ignores: ["src/main.ts"],
    rules: {
      "no-restricted-properties": [
        "error",
        {
          object: "process",
          property: "env",
          message: "only src/main.ts reads the environment; take a Config",
        },
        {
          object: "Date",
          property: "now",
          message: "take a Clock (src/ports.ts) as an argument",
        },
      ],
      "no-restricted-syntax": [
        "error",
        noCrashSignals,
        noDefaultExport,
        noWallClock,
      ],
      "@typescript-eslint/no-restricted-imports": [
        "error",
        { paths: [...noHttpClients, noUndici, noProcess, noRequire] },
      ],
    },
  },
  {
    files: ["src/loader/**", "src/egress/**"],
    rules: {
      "@typescript-eslint/no-restricted-imports": [
        "error",
        { paths: [...noHttpClients, noProcess, noRequire] },
      ],
    },
  },
  {
    files: ["src/engine/native.ts"],
    rules: {
      "@typescript-eslint/no-restricted-imports": [
        "error",
        { paths: [...noHttpClients, noUndici, noProcess] },
      ],
    },
  },
  {
    // Setup runs before anything is installed, in plain JavaScript typed by JSDoc.
    files: ["scripts/**/*.mjs"],
    languageOptions: {
      globals: {
        console: "readonly",
        process: "readonly",
        performance: "readonly",
        setInterval: "readonly",
        clearInterval: "readonly",
      },
    },
    rules: {
      // The linter does not see casts in JSDoc.
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-return": "off",
    },
  },
  {
    // Tools want their configuration as a default export.
    files: ["*.config.ts", "*.config.js", ".dependency-cruiser.mjs"],
    languageOptions: { globals: { process: "readonly" } },
    rules: { "no-restricted-syntax": ["error", noCrashSignals] },
  },
);
