/** What proves to a registry who asks. Every field is a secret. `null`, where allowed, is anonymous. */
export type Credential =
  | {
      readonly kind: "basic";
      readonly username: string;
      readonly password: string;
    }
  /** An OAuth2 refresh token, Docker's `identitytoken`. */
  | { readonly kind: "identity-token"; readonly token: string }
  /** A token that goes to the registry as it is, Docker's `registrytoken`. */
  | { readonly kind: "registry-token"; readonly token: string };

/** A step credential as Crossplane delivers it: the keys and values of a Secret. */
export interface StepCredential {
  readonly name: string;
  readonly data: ReadonlyMap<string, Uint8Array>;
}
