import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";

/** @param reason what the archive is or does, after "the layer's tar archive" */
export function badArchive(reason: string): LoaderError {
  return refuse("artifact-invalid", `the layer's tar archive ${reason}`);
}
