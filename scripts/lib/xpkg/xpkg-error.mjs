/** Something that keeps a package or an image from being built, in one sentence. */
export class XpkgError extends Error {
  /** @override */
  name = "XpkgError";
}
