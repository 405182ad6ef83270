/**
 * What the API server asks of a DeploymentRuntimeConfig, as far as the example goes: which fields
 * there are, and which must be. Written from Crossplane's CRD, whose `deploymentTemplate.spec` is
 * that of an apps/v1 Deployment.
 */
export const deploymentRuntimeConfigSchema = object(
  {
    apiVersion: { const: "pkg.crossplane.io/v1beta1" },
    kind: { const: "DeploymentRuntimeConfig" },
    metadata: object({ name: { type: "string" } }, ["name"]),
    spec: object({
      deploymentTemplate: object({
        metadata: metadata(),
        spec: object(
          {
            replicas: { type: "integer", minimum: 0 },
            selector: object({
              matchLabels: strings(),
              matchExpressions: { type: "array" },
            }),
            strategy: { type: "object" },
            template: object({ metadata: metadata(), spec: podSpec() }),
          },
          ["selector", "template"],
        ),
      }),
      serviceTemplate: object({ metadata: metadata() }),
      serviceAccountTemplate: object({ metadata: metadata() }),
    }),
  },
  ["apiVersion", "kind", "metadata"],
);

function podSpec() {
  return object(
    {
      containers: { type: "array", items: container() },
      volumes: { type: "array", items: volume() },
      automountServiceAccountToken: { type: "boolean" },
      securityContext: object({
        ...identity(),
        fsGroup: { type: "integer" },
        seccompProfile: seccompProfile(),
      }),
      terminationGracePeriodSeconds: { type: "integer" },
    },
    ["containers"],
  );
}

function container() {
  const probe = object({
    httpGet: object(
      {
        path: { type: "string" },
        port: { type: ["integer", "string"] },
        scheme: { enum: ["HTTP", "HTTPS"] },
      },
      ["port"],
    ),
    initialDelaySeconds: { type: "integer" },
    periodSeconds: { type: "integer" },
    timeoutSeconds: { type: "integer" },
    failureThreshold: { type: "integer" },
  });
  return object(
    {
      name: { type: "string" },
      image: { type: "string" },
      args: { type: "array", items: { type: "string" } },
      env: {
        type: "array",
        items: object({ name: { type: "string" }, value: { type: "string" } }, [
          "name",
        ]),
      },
      readinessProbe: probe,
      livenessProbe: probe,
      startupProbe: probe,
      resources: object({ requests: quantities(), limits: quantities() }),
      securityContext: object({
        ...identity(),
        allowPrivilegeEscalation: { type: "boolean" },
        privileged: { type: "boolean" },
        readOnlyRootFilesystem: { type: "boolean" },
        capabilities: object({
          add: { type: "array", items: { type: "string" } },
          drop: { type: "array", items: { type: "string" } },
        }),
        seccompProfile: seccompProfile(),
      }),
      volumeMounts: {
        type: "array",
        items: object(
          {
            name: { type: "string" },
            mountPath: { type: "string" },
            readOnly: { type: "boolean" },
            subPath: { type: "string" },
          },
          ["name", "mountPath"],
        ),
      },
    },
    ["name"],
  );
}

function volume() {
  return object(
    {
      name: { type: "string" },
      emptyDir: object({ sizeLimit: quantity(), medium: { type: "string" } }),
      configMap: object({
        name: { type: "string" },
        optional: { type: "boolean" },
      }),
      secret: object({
        secretName: { type: "string" },
        optional: { type: "boolean" },
      }),
    },
    ["name"],
  );
}

function identity() {
  return {
    runAsNonRoot: { type: "boolean" },
    runAsUser: { type: "integer" },
    runAsGroup: { type: "integer" },
  };
}

function seccompProfile() {
  return object({ type: { enum: ["RuntimeDefault", "Unconfined"] } }, ["type"]);
}

function metadata() {
  return object({ labels: strings(), annotations: strings() });
}

function strings() {
  return { type: "object", additionalProperties: { type: "string" } };
}

function quantities() {
  return { type: "object", additionalProperties: quantity() };
}

function quantity() {
  return {
    type: ["integer", "string"],
    pattern: "^[0-9]+(\\.[0-9]+)?(m|[kMGTP]i?)?$",
  };
}

function object(properties: object, required: readonly string[] = []) {
  return {
    type: "object",
    properties,
    required,
    additionalProperties: false,
  };
}
