import type { X509Certificate } from "node:crypto";

/** One value in DER. */
interface DerValue {
  readonly tag: number;
  readonly content: Buffer;
  /** With tag and length. */
  readonly sizeBytes: number;
}

/** How many bytes a certificate's subject takes in DER; never too few. */
export function subjectBytes({ raw }: X509Certificate): number {
  const [certificate] = valuesIn(raw);
  const [fields] = valuesIn(certificate?.content);
  // serialNumber, signature, issuer, validity, subject, after a version that may be left out.
  const subject = valuesIn(fields?.content).filter(
    ({ tag }) => tag !== explicit0,
  )[4];
  return subject?.sizeBytes ?? raw.length;
}

/**
 * Whether a certificate is signed over MD5, SHA-1 or what is older, for which somebody else may
 * have made a second certificate. Node 20 does not tell the algorithm, and no Node that of PSS.
 */
export function isSignedOverBrokenHash({ raw }: X509Certificate): boolean {
  const [certificate] = valuesIn(raw);
  const [, algorithm] = valuesIn(certificate?.content);
  const [name, parameters] = valuesIn(algorithm?.content);
  if (name === undefined) return true;
  const oid = name.content.toString("hex");
  if (oid !== rsaPss) return brokenAlgorithms.has(oid);
  const [first] = valuesIn(parameters?.content);
  // The hash comes first; DER leaves out the default, which is SHA-1.
  return first?.tag !== explicit0;
}

const explicit0 = 0xa0;

/** Object identifiers, as DER has them. */
const rsaPss = "2a864886f70d01010a";
const brokenAlgorithms: ReadonlySet<string> = new Set([
  "2a864886f70d010102", // md2WithRSAEncryption
  "2a864886f70d010103", // md4WithRSAEncryption
  "2a864886f70d010104", // md5WithRSAEncryption
  "2a864886f70d010105", // sha1WithRSAEncryption
  "2b0e03021d", // sha1WithRSAEncryption, as OIW calls it
  "2a8648ce380403", // dsa-with-sha1
  "2a8648ce3d0401", // ecdsa-with-SHA1
]);

/** Values that stand one after the other; none when it is no DER, or nothing X.509 would have. */
function valuesIn(bytes: Buffer = Buffer.alloc(0)): readonly DerValue[] {
  const values: DerValue[] = [];
  let at = 0;
  while (at < bytes.length) {
    const value = valueAt(bytes, at);
    if (value === null) return [];
    values.push(value);
    at += value.sizeBytes;
  }
  return values;
}

const longForm = 0x80;
const maxLengthBytes = 4;

function valueAt(bytes: Buffer, at: number): DerValue | null {
  const [tag, first] = bytes.subarray(at, at + 2);
  if (tag === undefined || first === undefined) return null;
  const lengthBytes = first < longForm ? 0 : first - longForm;
  // A length of no bytes would be BER's indefinite one.
  if (first === longForm || lengthBytes > maxLengthBytes) return null;
  const contentAt = at + 2 + lengthBytes;
  if (contentAt > bytes.length) return null;
  const length =
    lengthBytes === 0 ? first : bytes.readUIntBE(at + 2, lengthBytes);
  const content = bytes.subarray(contentAt, contentAt + length);
  if (content.length < length) return null;
  return { tag, content, sizeBytes: contentAt - at + length };
}
