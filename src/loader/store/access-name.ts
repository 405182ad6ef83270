import { createHmac, scrypt } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Digest } from "../../ports.js";

/** That certain bytes were delivered at a certain place to a certain identity. */
export interface AccessKey {
  /** A canonical location, or a URL's href, whose query may be a secret. */
  readonly place: string;
  readonly digest: Digest;
  /** `anonymous`, or the sha256 of a credential in hex. */
  readonly identity: string;
}

/** 64 hex digits for a key. */
export type AccessName = (key: AccessKey) => Promise<string>;

const MAX_IDENTITIES = 1000;
/** Some 10 ms and 4 MiB for each guess at a weak password by who reads the directory, salt and all. */
const SCRYPT = { N: 4096, r: 8, p: 1 } as const;
const STRETCHED_BYTES = 32;
const ANONYMOUS = "anonymous";

/**
 * Names that neither show nor help to guess what they are made of. The last 1000 identities are
 * remembered, so that a credential costs its stretching once.
 */
export function createAccessName(salt: Uint8Array): AccessName {
  const stretched = new LRUCache<string, Promise<Buffer>>({
    max: MAX_IDENTITIES,
  });

  function stretch(identity: string): Promise<Buffer> {
    const known = stretched.get(identity);
    if (known !== undefined) return known;
    const made = new Promise<Buffer>((resolve, reject) => {
      scrypt(identity, salt, STRETCHED_BYTES, SCRYPT, (error, key) => {
        if (error === null) resolve(key);
        else reject(error);
      });
    });
    stretched.set(identity, made);
    made.catch(() => stretched.delete(identity));
    return made;
  }

  return async ({ place, digest, identity }) => {
    const who =
      identity === ANONYMOUS ? Buffer.from(ANONYMOUS) : await stretch(identity);
    const hmac = createHmac("sha256", salt);
    for (const part of [Buffer.from(place), Buffer.from(digest), who]) {
      // With its length before it, no part can pass for the end of another.
      const length = Buffer.alloc(8);
      length.writeBigUInt64BE(BigInt(part.length));
      hmac.update(length).update(part);
    }
    return hmac.digest("hex");
  };
}
