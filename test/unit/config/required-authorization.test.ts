import { describe, expect, it } from "vitest";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { configurationWarnings } from "../../../src/config/configuration-warnings.ts";

function parse(sections: object, flags = {}) {
  const document = { apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration", ...sections };
  return parseConfiguration(JSON.stringify(document), "f.json", flags);
}

const REQUIRED =
  "authorization.mode: is required if callers are authenticated: [RBAC] or [Webhook]; [AlwaysAllow] lets each of them do everything";
const runtime = { nodeName: "n" };

describe("what callers may do", () => {
  it.each<[string, object]>([
    ["certificates", { clientCAFile: "ca.crt" }],
    ["a front proxy", { requestHeader: { clientCAFile: "ca.crt" } }],
    ["static tokens", { tokenAuthFile: "tokens.csv" }],
    ["OIDC", { oidc: { issuerURL: "https://issuer", audiences: ["a"] } }],
    ["TokenReviews", { tokenReview: { inCluster: true } }],
    ["anonymous requests", { anonymous: { enabled: true } }],
  ])("is said beside %s", (_, authentication) => {
    expect(() => parse({ authentication })).toThrow(REQUIRED);
    expect(() => parse({ authentication, authorization: {} })).toThrow(REQUIRED);
    for (const mode of ["RBAC", "AlwaysAllow", "AlwaysDeny"]) {
      expect(parse({ authentication, authorization: { mode: [mode] } }).authorization.modes).toEqual([mode]);
    }
    expect(parse({ authentication }, { "authorization-mode": "RBAC" }).authorization.modes).toEqual(["RBAC"]);
  });

  it("is said beside flags, too, and need not be where no caller is known", () => {
    expect(() => parse({}, { "client-ca-file": "ca.crt" })).toThrow(REQUIRED);
    expect(parse({}).authentication.clientCAFile).toBeUndefined();
  });

  it("is said of the node's listener, by its own section or the file's", () => {
    const authentication = { clientCAFile: "ca.crt" };
    const own = (authorization?: object) => ({
      listeners: { kubelet: { authentication, authorization, runtime } },
    });
    expect(() => parse(own())).toThrow(REQUIRED);
    expect(() => parse(own({}))).toThrow(`listeners.kubelet.${REQUIRED}`);
    expect(parse(own({ mode: ["AlwaysAllow"] })).listeners.kubelet?.authorization?.modes).toEqual([
      "AlwaysAllow",
    ]);
    expect(parse({ ...own(), authorization: { mode: ["RBAC"] } }).authorization.modes).toEqual(["RBAC"]);
  });
});

describe("warnings of a configuration", () => {
  const access = { authentication: { tokenAuthFile: "t.csv" }, authorization: { mode: ["RBAC"] } };
  const trusted = { kubelet: { certificateAuthorityFile: "ca.crt" } };
  const tls = { certFile: "a.crt", keyFile: "a.key" };

  it.each<[string, object, string[]]>([
    ["no authority for kubelets", { ...access }, ["kubelet.certificateAuthorityFile is absent"]],
    ["kubelets that are verified", { ...access, ...trusted }, []],
    ["kubelets over plain HTTP", { ...access, kubelet: { scheme: "http" } }, []],
    [
      "tokens in clear",
      { ...access, ...trusted, listeners: { apiServer: { address: "0.0.0.0" } } },
      ["listeners.apiServer has no tls and listens at 0.0.0.0, beyond loopback"],
    ],
    ["tokens over TLS", { ...access, ...trusted, listeners: { apiServer: { address: "::", tls } } }, []],
    ["tokens on loopback", { ...access, ...trusted, listeners: { apiServer: { address: "127.0.0.9" } } }, []],
    ["no tokens in clear", { ...trusted, listeners: { apiServer: { address: "0.0.0.0" } } }, []],
    [
      "tokens in clear at the node's port",
      { ...access, listeners: { kubelet: { address: "::", runtime } } },
      ["listeners.kubelet has no tls and listens at ::, beyond loopback"],
    ],
  ])("%s", (_, sections, expected) => {
    const warnings = configurationWarnings(parse(sections));
    expect(warnings).toEqual(expected.map((text) => expect.stringContaining(text)));
  });
});

it("a Node.js that drops impersonated names with white space is a warning before a live cluster", () => {
  const tls = { certFile: "a.crt", keyFile: "a.key" };
  const warned = (apiServer: object, version: string, cluster: object = { kubeconfig: "k" }) =>
    configurationWarnings(parse({ cluster, listeners: { apiServer } }), version).filter((text) =>
      text.includes("white space"),
    ).length;
  expect(["20.20.2", "22.16.0", "24.1.0"].map((version) => warned({ tls }, version))).toEqual([1, 1, 1]);
  expect(["22.17.0", "24.2.0", "26.0.0"].map((version) => warned({ tls }, version))).toEqual([0, 0, 0]);
  expect(warned({ tls, http2: false }, "20.20.2")).toBe(0);
  expect(warned({}, "20.20.2")).toBe(0);
  expect(warned({ tls }, "20.20.2", { manifests: ["a.yaml"] })).toBe(0);
});
