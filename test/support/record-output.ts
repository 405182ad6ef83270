/** Set up in front of each test file: keeps what the programs that it starts write. */
import { relative } from "node:path";

import { expect } from "vitest";

import "./record-programs.js";
import { beginTestFile } from "./suite-output.js";

beginTestFile(relative(process.cwd(), expect.getState().testPath ?? ""));
