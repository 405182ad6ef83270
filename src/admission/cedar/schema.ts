/**
 * The schema that policies of both layers are checked against, in Cedar's own language.
 *
 * `context.repository` is required here and yet absent for most credentials: Cedar's type checker
 * would otherwise refuse every rule that reads it without asking `context has repository` first. So
 * questions are put to Cedar without checking them against this schema; a rule that reads what is
 * not there fails, and what then follows is decided in `policy-engine.ts`.
 *
 * `Module` stands in where an action has no principal or resource. It has a request's attributes,
 * all of them empty, so that a rule for every action may look at them.
 */
export const policySchema = schemaWith("repository: Repository");

/** The same for the credentials that have no repository: what never applies there may apply here. */
export const policySchemaWithoutRepository = schemaWith("");

function schemaWith(spendContext: string): string {
  return `
entity Request { namespace: String, xrKind: String, composition: String };
entity Repository in [Repository];
entity HostPattern in [HostPattern] { host: String };
entity Capability enum ["privateTmp", "env"];
entity Credential;
entity Module { namespace: String, xrKind: String, composition: String };

action pullModule appliesTo {
  principal: Request, resource: Repository
};
action spendCredential appliesTo {
  principal: Request, resource: Credential,
  context: { ${spendContext} }
};
action usePrivateTmp appliesTo {
  principal: Request, resource: Capability
};
action setEnv appliesTo {
  principal: Request, resource: Capability,
  context: { keys: Set<String> }
};
action grantEgress appliesTo {
  principal: Request, resource: HostPattern,
  context: { method: String, path: String, scheme: String, port: Long }
};
action requireSignature appliesTo {
  principal: Module, resource: Repository
};
action dialAddress appliesTo {
  principal: Module, resource: Module,
  context: { ip: ipaddr }
};
`;
}
