import { describe, expect, it } from "vitest";

import type { Question } from "../../../../src/admission/cedar/policy.js";
import { cedarRequest } from "../../../../src/admission/cedar/request.js";

const XR = { namespace: "team-a", xrKind: "XApp" };
const SELF = {
  uid: { type: "Request", id: "self" },
  attrs: { namespace: "team-a", xrKind: "XApp", composition: "" },
  parents: [],
};
const DEEP = `a${"/a".repeat(200)}`;

describe("admission/cedar/request", () => {
  it.each<{ name: string; question: Question; want: object }>([
    {
      name: "pullModule",
      question: { action: "pullModule", location: "ghcr.io/a" },
      want: {
        resource: { type: "Repository", id: "ghcr.io/a" },
        context: {},
        entities: [
          SELF,
          {
            uid: { type: "Repository", id: "ghcr.io/a" },
            attrs: {},
            parents: [
              { type: "Repository", id: "ghcr.io" },
              { type: "Repository", id: "ghcr.io/" },
              { type: "Repository", id: "ghcr.io/a/" },
            ],
          },
        ],
      },
    },
    {
      name: "requireSignature, on behalf of nobody",
      question: { action: "requireSignature", location: "ghcr.io" },
      want: {
        principal: { type: "Module", id: "module" },
        resource: { type: "Repository", id: "ghcr.io" },
        context: {},
        entities: [
          {
            uid: { type: "Module", id: "module" },
            attrs: { namespace: "", xrKind: "", composition: "" },
            parents: [],
          },
          {
            uid: { type: "Repository", id: "ghcr.io" },
            attrs: {},
            parents: [{ type: "Repository", id: "ghcr.io/" }],
          },
        ],
      },
    },
    {
      name: "spendCredential for a module's repository",
      question: {
        action: "spendCredential",
        credential: "registry",
        repository: "ghcr.io",
      },
      want: {
        resource: { type: "Credential", id: "registry" },
        context: {
          repository: { __entity: { type: "Repository", id: "ghcr.io" } },
        },
        entities: [
          SELF,
          {
            uid: { type: "Repository", id: "ghcr.io" },
            attrs: {},
            parents: [{ type: "Repository", id: "ghcr.io/" }],
          },
        ],
      },
    },
    {
      name: "spendCredential for none",
      question: {
        action: "spendCredential",
        credential: "db",
        repository: null,
      },
      want: {
        resource: { type: "Credential", id: "db" },
        context: {},
        entities: [SELF],
      },
    },
    {
      name: "usePrivateTmp",
      question: { action: "usePrivateTmp" },
      want: {
        resource: { type: "Capability", id: "privateTmp" },
        context: {},
        entities: [SELF],
      },
    },
    {
      name: "setEnv",
      question: { action: "setEnv", keys: ["A", "B"] },
      want: {
        resource: { type: "Capability", id: "env" },
        context: { keys: ["A", "B"] },
        entities: [SELF],
      },
    },
    {
      name: "grantEgress",
      question: {
        action: "grantEgress",
        host: "a.com",
        method: "GET",
        path: "/v1",
        scheme: "https",
        port: 443,
      },
      want: {
        resource: { type: "HostPattern", id: "a.com" },
        context: { method: "GET", path: "/v1", scheme: "https", port: 443 },
        entities: [
          SELF,
          {
            uid: { type: "HostPattern", id: "a.com" },
            attrs: { host: "a.com" },
            parents: [
              { type: "HostPattern", id: "com" },
              { type: "HostPattern", id: "*.com" },
            ],
          },
        ],
      },
    },
  ])("puts $name in Cedar's terms", ({ question, want }) => {
    expect(cedarRequest(XR, question)).toEqual({
      principal: { type: "Request", id: "self" },
      action: { type: "Action", id: question.action },
      ...want,
    });
  });

  it("gives the principal these attributes and no others", () => {
    const xr = { ...XR, composition: "x", admin: true };

    expect(cedarRequest(xr, { action: "usePrivateTmp" })?.entities).toEqual([
      SELF,
    ]);
  });

  it.each<{ name: string; question: Question }>([
    {
      name: "a location",
      question: { action: "pullModule", location: DEEP },
    },
    {
      name: "a credential's repository",
      question: {
        action: "spendCredential",
        credential: "registry",
        repository: DEEP,
      },
    },
    {
      name: "a host",
      question: {
        action: "grantEgress",
        host: DEEP.replaceAll("/", "."),
        method: "GET",
        path: "",
        scheme: "https",
        port: 443,
      },
    },
  ])("has no words for $name with too many levels", ({ question }) => {
    expect(cedarRequest(XR, question)).toBeNull();
  });
});
