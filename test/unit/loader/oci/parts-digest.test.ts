import { describe, expect, it } from "vitest";
import { partsDigest } from "../../../../src/loader/oci/parts-digest.js";

describe("loader/oci/parts-digest", () => {
  it("makes a key that is the same for the same parts only, and tells none", () => {
    const key = partsDigest(["ghcr.io", "planted"]);

    expect(partsDigest(["ghcr.io", "planted"])).toBe(key);
    const others = [
      ["ghcr.iop", "lanted"],
      ["ghcr.io", "planted", ""],
      ["ghcr.io7:planted"],
      ["planted", "ghcr.io"],
    ].map((parts) => partsDigest(parts));
    expect(new Set([key, ...others]).size).toBe(5);
    expect(key).not.toMatch(/ghcr|planted/u);
  });

  it("takes bytes for the text they are", () => {
    expect(partsDigest([Buffer.from("ä")])).toBe(partsDigest(["ä"]));
  });
});
