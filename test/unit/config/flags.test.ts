import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import {
  configurationFlags,
  defaultConfiguration,
  parseConfiguration,
} from "../../../src/config/configuration.ts";
import type { FlagValues } from "../../../src/config/read-flags.ts";
import { DEFAULT_CIPHER_SUITES } from "../../../src/config/sections/tls-settings.ts";

const HEADER = "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n";

describe("kube-apiserver's flags", () => {
  it("change nothing when none is given", () => {
    const { featureGates: gatesBefore, ...before } = defaultConfiguration();
    const { featureGates: gatesAfter, ...after } = defaultConfiguration({});
    expect(after).toEqual(before);
    expect(gatesAfter.toString()).toBe(gatesBefore.toString());
  });

  it("stand above the file, each of them", () => {
    const flags = {
      "feature-gates": "PortForwardWebsockets=true",
      "token-auth-file": "tokens.csv",
      "tls-cert-file": "/tls.crt",
      "tls-private-key-file": "/tls.key",
      "kubelet-certificate-authority": "ca.crt",
      "kubelet-client-certificate": "/client.crt",
      "kubelet-client-key": "/client.key",
      "kubelet-preferred-address-types": "InternalIP, Hostname",
      "authorization-mode": "AlwaysAllow",
      "secure-port": "8443",
      "bind-address": "0.0.0.0",
    } satisfies FlagValues;
    expect(configurationFlags.map(({ name }) => name)).toEqual(expect.arrayContaining(Object.keys(flags)));
    const text = `${HEADER}featureGates: {AllBeta: false}\nlogging: {level: warn}\n`;
    const file = parseConfiguration(text, "f.yaml");
    const merged = parseConfiguration(text, "f.yaml", flags);
    expect(merged).toMatchObject({
      listeners: {
        apiServer: { address: "0.0.0.0", port: 8443, tls: { certFile: "/tls.crt", keyFile: "/tls.key" } },
        admin: file.listeners.admin,
      },
      authentication: { tokenAuthFile: resolve("tokens.csv") },
      authorization: { modes: ["AlwaysAllow"], webhook: undefined },
      kubelet: {
        certificateAuthorityFile: resolve("ca.crt"),
        insecureSkipTLSVerify: false,
        clientCertificateFile: "/client.crt",
        clientKeyFile: "/client.key",
        preferredAddressTypes: ["InternalIP", "Hostname"],
      },
      logging: { level: "warn" },
    });
    expect(merged.featureGates.isEnabled("PortForwardWebsockets")).toBe(true);
    expect(merged.featureGates.isEnabled("NodeDeclaredFeatures")).toBe(false);
  });

  it("complete a pair whose other half is in the file", () => {
    const file = `${HEADER}listeners: {apiServer: {tls: {certFile: /a.crt, keyFile: /a.key}}}\n`;
    expect(
      parseConfiguration(file, "f.yaml", { "tls-cert-file": "/b.crt" }).listeners.apiServer?.tls,
    ).toEqual({
      certFile: "/b.crt",
      keyFile: "/a.key",
      cipherSuites: DEFAULT_CIPHER_SUITES,
      minVersion: "VersionTLS12",
    });
  });

  it("have no effect where kube-apiserver's have none", () => {
    const { authentication, audit, limits } = defaultConfiguration({
      "requestheader-username-headers": "X-User",
      "oidc-username-claim": "email",
      "audit-log-maxsize": "5",
      "http2-max-streams-per-connection": "0",
    });
    expect(authentication).toMatchObject({ requestHeader: undefined, oidc: undefined });
    expect(audit.log).toBeUndefined();
    expect(limits.maxHttp2Streams).toBe(250);
    const zero = defaultConfiguration({ "audit-log-path": "a", "audit-log-maxsize": "0" });
    expect(zero.audit.log?.maxBytes).toBe(100 * 1024 * 1024);
  });

  it("replace a webhook of the file, with all of its fields", () => {
    const webhook = "{url: https://a, tokenFile: t, version: v1, authorizedTTL: 1m}";
    const file = `${HEADER}authorization: {mode: [Webhook], webhook: ${webhook}}\n`;
    const flags = { "authorization-webhook-config-file": "/k.conf" };
    expect(parseConfiguration(file, "f.yaml", flags).authorization.webhook).toMatchObject({
      target: { kind: "kubeconfig", file: "/k.conf" },
      version: "v1beta1",
      authorizedTtlMs: 60_000,
    });
    // Without the mode it is not used, which is no fault of the file.
    const { authorization } = parseConfiguration(file, "f.yaml", { "authorization-mode": "RBAC" });
    expect(authorization.modes).toEqual(["RBAC"]);
  });

  it("leave the callers of a kubelet listener alone", () => {
    const kubelet = "{authentication: {clientCAFile: /a.crt}, runtime: {nodeName: n}}";
    const file = `${HEADER}listeners: {kubelet: ${kubelet}}\nauthorization: {mode: [RBAC]}\n`;
    const { authentication, listeners } = parseConfiguration(file, "f.yaml", { "client-ca-file": "/b.crt" });
    expect(authentication.clientCAFile).toBe("/b.crt");
    expect(listeners.kubelet?.authentication?.clientCAFile).toBe("/a.crt");
  });

  it("obey the ranges of their fields, and are refused together with the file", () => {
    const flags = { "max-connection-bytes-per-sec": "1", "http2-max-streams-per-connection": "20000" };
    expect(() => parseConfiguration(`${HEADER}workers: 0\n`, "f.yaml", flags)).toThrow(
      expect.objectContaining({
        message: [
          "--http2-max-streams-per-connection: must be between 1 and 10000, got the number 20000",
          "--max-connection-bytes-per-sec: must be 0, for no bound, or at least 16Ki",
          "f.yaml:3:1: workers: must be between 1 and 256, got the number 0",
        ].join("\n"),
      }),
    );
  });

  const refused: { flags: FlagValues; problems: string[] }[] = [
    {
      flags: { "feature-gates": "Nope=true" },
      problems: ["--feature-gates: unrecognized feature gate: Nope"],
    },
    {
      flags: { "feature-gates": "NodeDeclaredFeatures=false" },
      problems: [
        "--feature-gates: ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: [NodeDeclaredFeatures]",
      ],
    },
    { flags: { "tls-cert-file": "a" }, problems: ["--tls-cert-file: needs --tls-private-key-file too"] },
    {
      flags: { "kubelet-client-key": "a" },
      problems: ["--kubelet-client-key: needs --kubelet-client-certificate too"],
    },
    { flags: { "token-auth-file": "" }, problems: ["--token-auth-file: must not be empty"] },
    {
      flags: { "secure-port": "x", "bind-address": "a b", "authorization-mode": "Node,ABAC" },
      problems: [
        '--bind-address: must be an IP address or a host name without port, got "a b"',
        '--secure-port: must be a port between 0 (any free one) and 65535, got "x"',
        '--authorization-mode: "Node" is not supported; valid: AlwaysAllow, AlwaysDeny, RBAC, Webhook',
        '--authorization-mode: "ABAC" is not supported; did you mean "RBAC"?',
      ],
    },
    {
      flags: { "kubelet-preferred-address-types": "InternalIp" },
      problems: [
        '--kubelet-preferred-address-types: "InternalIp" is not supported; did you mean "InternalIP"?',
      ],
    },
  ];
  it.each(refused)("are refused: $flags", ({ flags, problems }) => {
    expect(() => defaultConfiguration(flags)).toThrow(
      expect.objectContaining({ name: "ConfigurationError", message: problems.join("\n") }),
    );
  });
});
