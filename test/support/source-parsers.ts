import { createSourceParsers } from "../../src/loader/index.js";

/** The parsers of a runtime whose operator named no host. */
export const sourceParsers = createSourceParsers({
  insecureHosts: [],
  registryCas: new Map(),
  tokenServers: new Map(),
});
