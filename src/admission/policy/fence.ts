import { quoted } from "../../errors.js";
import type { HttpUrl, ModuleSource } from "../../ports.js";
import { AdmissionError } from "../error.js";
import type { Layer } from "./layer.js";

/** Locations may be as long as the field they came from. */
const MAX_SHOWN_CHARS = 4096;

/**
 * Holds a source that the composite resource chose to the compositionPolicy: where it comes from,
 * and what it is pulled with.
 * @param field as `module.from` names it, for example `status.module`
 * @param layer the compositionPolicy's; default deny
 * @throws AdmissionError pull-refused, spend-refused
 */
export async function fenceChosenSource(
  source: Exclude<ModuleSource, { type: "Path" }>,
  field: string,
  layer: Layer,
): Promise<void> {
  const names = `cannot resolve module: module.from: ${field} of the composite resource names`;
  const mustBePermitted = async (what: string, location: string) => {
    if (await layer.permits({ action: "pullModule", location })) return;
    throw new AdmissionError(
      "pull-refused",
      `${names} ${what} ${quoted(location, MAX_SHOWN_CHARS)}, which the compositionPolicy does not permit (pullModule)`,
    );
  };
  switch (source.type) {
    case "HTTP":
      await mustBePermitted("url", source.url.location);
      if (source.manifest !== null)
        await mustBePermitted("manifestURL", source.manifest.url.location);
      return;
    case "OCI":
      await mustBePermitted("ref", source.ref.location);
      if (source.credentials !== null)
        await mustBeSpendable(
          source.credentials,
          source.ref.location,
          names,
          layer,
        );
  }
}

/**
 * Holds where such a source's URL redirects to the compositionPolicy.
 * @throws AdmissionError pull-refused
 */
export async function fenceRedirect(
  url: HttpUrl,
  field: string,
  layer: Layer,
): Promise<void> {
  const { location } = url;
  if (await layer.permits({ action: "pullModule", location })) return;
  throw new AdmissionError(
    "pull-refused",
    `cannot resolve module: module.from: ${field} of the composite resource names a url that redirects to ${quoted(location, MAX_SHOWN_CHARS)}, which the compositionPolicy does not permit (pullModule)`,
  );
}

/** Asked only once the pull is permitted: the registry's host is the composite resource author's. */
async function mustBeSpendable(
  credential: string,
  repository: string,
  names: string,
  layer: Layer,
): Promise<void> {
  if (
    await layer.permits({ action: "spendCredential", credential, repository })
  )
    return;
  throw new AdmissionError(
    "spend-refused",
    `${names} credentials ${quoted(credential)}, which the compositionPolicy does not permit (spendCredential) for ${quoted(repository, MAX_SHOWN_CHARS)}: a module chosen by the composite resource cannot spend a step credential (the registry host would be its author's) unless the compositionPolicy permits it for that repository; otherwise pull it with the runtime's Docker config or anonymously`,
  );
}
