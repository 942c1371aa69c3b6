import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { defaultConfiguration, parseConfiguration } from "../../../src/config/configuration.ts";

const HEADER = "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n";

describe("authentication, audit and edge in the file", () => {
  it("are read with their defaults", () => {
    const { authentication, audit, edge, kubelet } = parseConfiguration(
      `${HEADER}
authentication:
  clientCAFile: users.crt
  requestHeader: { clientCAFile: proxy.crt }
  oidc: { issuerURL: "https://issuer", audiences: [a] }
  tokenReview: { url: "https://kubernetes.default.svc", tokenFile: token }
  anonymous: { enabled: true }
authorization: { mode: [RBAC] }
audit:
  log: { path: "-" }
  webhook: { url: "https://audit/events" }
edge: { allowedOrigins: ["https://console"], trustedProxies: [10.0.0.0/8, "::1"] }
kubelet: { allowedAddresses: [127.0.0.1], certificateAuthorityFile: ca.crt, verifyNodeName: true }
`,
      "/etc/sluice/config.yaml",
    );
    expect(authentication).toMatchObject({
      clientCAFile: "/etc/sluice/users.crt",
      requestHeader: {
        clientCAFile: "/etc/sluice/proxy.crt",
        usernameHeaders: ["X-Remote-User"],
        groupHeaders: ["X-Remote-Group"],
        extraHeaderPrefixes: ["X-Remote-Extra-"],
        allowedNames: [],
      },
      oidc: {
        usernameClaim: "sub",
        signingAlgorithms: ["RS256"],
        clockSkewMs: 10_000,
        groupsClaim: undefined,
      },
      tokenReview: {
        target: { kind: "url", tokenFile: "/etc/sluice/token" },
        cacheTtlMs: 120_000,
        failureCacheTtlMs: 5_000,
        audiences: [],
      },
      anonymous: { enabled: true },
    });
    expect(audit).toMatchObject({
      log: { path: undefined, maxBytes: 100 * 1024 * 1024, maxAgeDays: 0, maxBackups: 10 },
      webhook: {
        target: { insecureSkipTLSVerify: false },
        mode: "batch",
        maxBatchEvents: 400,
        maxQueuedEvents: 10_000,
        throttle: { perSecond: 10, burst: 15 },
      },
      onFailure: "refuse",
    });
    expect(edge.trustedProxies).toEqual(["10.0.0.0/8", "::1"]);
    expect(kubelet).toMatchObject({ allowedAddresses: ["127.0.0.1"], verifyNodeName: true });
  });

  it.each([
    [
      "authentication: {tokenReview: {inCluster: true, url: 'https://k'}}",
      "authentication.tokenReview.url: must not stand beside inCluster, which says it",
    ],
    [
      "authorization: {mode: [Webhook], webhook: {inCluster: true, kubeconfigFile: k}}",
      "authorization.webhook.kubeconfigFile: must not stand beside inCluster, which says it",
    ],
    [
      "authentication: {oidc: {issuerURL: 'http://i', audiences: [a]}}",
      "authentication.oidc.issuerURL: must be an https URL",
    ],
    ["authentication: {oidc: {issuerURL: 'https://i'}}", "authentication.oidc.audiences: is required"],
    [
      "authentication: {oidc: {issuerURL: 'https://i', audiences: [a], signingAlgorithms: [none]}}",
      '"none" is not supported',
    ],
    [
      "authentication: {oidc: {issuerURL: 'https://i', audiences: [a], signingAlgorithms: [HS256]}}",
      '"HS256" is not supported',
    ],
    ["authentication: {requestHeader: {}}", "authentication.requestHeader.clientCAFile: is required"],
    [
      "authentication: {requestHeader: {clientCAFile: a, groupHeaders: ['a b']}}",
      '"a b" is not a header name',
    ],
    ["authentication: {tokenReview: {url: 'https://u:p@h'}}", "must not hold credentials"],
    ["authentication: {anonymous: true}", "authentication.anonymous: must be a map"],
    ["audit: {log: {}}", "audit.log.path: is required"],
    ["audit: {webhook: {}}", "audit.webhook.url: is required"],
    ["audit: {onFailure: ignore}", 'audit.onFailure: "ignore" is not supported'],
    ["edge: {allowedOrigins: ['*']}", "must be an origin"],
    ["edge: {allowedOrigins: ['https://a/path']}", "must be an origin"],
    ["edge: {trustedProxies: [10.0.0.0/33]}", "edge.trustedProxies[0]: must be an IP address or a network"],
    [
      "kubelet: {allowedAddresses: [localhost]}",
      "kubelet.allowedAddresses[0]: must be an IP address or a network",
    ],
    [
      "kubelet: {verifyNodeName: true}",
      "kubelet.verifyNodeName: needs scheme https and certificateAuthorityFile",
    ],
  ])("are refused: %s", (text, problem) => {
    expect(() => parseConfiguration(HEADER + text, "f.yaml")).toThrow(problem);
  });
});

describe("kube-apiserver's flags for them", () => {
  it("stand above the file", () => {
    const file = `${HEADER}audit: {log: {path: /a.log, maxBackups: 3}}`;
    const { authentication, audit } = parseConfiguration(file, "f.yaml", {
      "client-ca-file": "users.crt",
      "requestheader-client-ca-file": "/proxy.crt",
      "requestheader-username-headers": "X-User, X-Login",
      "requestheader-allowed-names": "front",
      "oidc-issuer-url": "https://issuer",
      "oidc-client-id": "a,b",
      "oidc-username-claim": "email",
      "oidc-groups-prefix": "oidc:",
      "oidc-required-claim": "hd=corp,x=a=b",
      "oidc-signing-algs": "ES256",
      "anonymous-auth": "true",
      "audit-log-path": "b.log",
      "audit-log-maxsize": "5",
      "audit-log-maxage": "7",
      "authorization-mode": "RBAC",
    });
    expect(authentication).toMatchObject({
      clientCAFile: resolve("users.crt"),
      requestHeader: {
        clientCAFile: "/proxy.crt",
        usernameHeaders: ["X-User", "X-Login"],
        allowedNames: ["front"],
      },
      oidc: {
        issuerUrl: "https://issuer",
        audiences: ["a", "b"],
        usernameClaim: "email",
        groupsPrefix: "oidc:",
        requiredClaims: { hd: "corp", x: "a=b" },
        signingAlgorithms: ["ES256"],
      },
      anonymous: { enabled: true },
    });
    expect(audit.log).toEqual({
      path: resolve("b.log"),
      maxBytes: 5 * 1024 * 1024,
      maxAgeDays: 7,
      maxBackups: 3,
    });
  });

  it("name webhooks by files of kubeconfig format, with kube-apiserver's words and defaults", () => {
    const { authentication, authorization, audit } = defaultConfiguration({
      "authentication-token-webhook-config-file": "/authn.conf",
      "authentication-token-webhook-cache-ttl": "30s",
      "authorization-mode": "RBAC,Webhook",
      "authorization-webhook-config-file": "/authz.conf",
      "authorization-webhook-version": "v1",
      "authorization-webhook-cache-authorized-ttl": "1m",
      "authorization-webhook-cache-unauthorized-ttl": "1s",
      "audit-webhook-config-file": "/audit.conf",
      "audit-webhook-version": "audit.k8s.io/v1",
      "audit-webhook-mode": "blocking-strict",
      "audit-webhook-initial-backoff": "2s",
      "audit-webhook-batch-buffer-size": "100",
      "audit-webhook-batch-max-size": "10",
      "audit-webhook-batch-max-wait": "3s",
      "audit-webhook-batch-throttle-qps": "5",
      "audit-webhook-batch-throttle-burst": "6",
    });
    expect(authentication.tokenReview).toMatchObject({
      target: { kind: "kubeconfig", file: "/authn.conf" },
      version: "v1beta1",
      cacheTtlMs: 30_000,
      timeoutMs: 10_000,
    });
    expect(authorization.webhook).toEqual({
      target: { kind: "kubeconfig", file: "/authz.conf" },
      version: "v1",
      authorizedTtlMs: 60_000,
      unauthorizedTtlMs: 1_000,
      timeoutMs: 10_000,
      maxCachedDecisions: 8_192,
    });
    expect(audit).toMatchObject({
      onFailure: "refuse",
      webhook: {
        target: { kind: "kubeconfig", file: "/audit.conf" },
        mode: "blocking",
        initialBackoffMs: 2_000,
        maxQueuedEvents: 100,
        maxBatchEvents: 10,
        maxWaitMs: 3_000,
        throttle: { perSecond: 5, burst: 6 },
      },
    });
  });

  it.each([
    [{ "oidc-issuer-url": "https://i" }, "--oidc-issuer-url: needs --oidc-client-id too"],
    [{ "oidc-client-id": "a" }, "--oidc-client-id: needs --oidc-issuer-url too"],
    [{ "oidc-issuer-url": "http://i", "oidc-client-id": "a" }, "--oidc-issuer-url: must be an https URL"],
    [
      { "oidc-issuer-url": "https://i", "oidc-client-id": "a", "oidc-signing-algs": "none" },
      '"none" is not supported',
    ],
    [{ "anonymous-auth": "yes" }, "--anonymous-auth: must be true or false"],
    [{ "audit-log-path": "a", "audit-log-maxsize": "1G" }, "--audit-log-maxsize: must be a whole number"],
    [{ "authentication-token-webhook-cache-ttl": "1m" }, "needs authentication.tokenReview"],
    [{ "authorization-webhook-config-file": "a" }, "cannot be specified without mode Webhook"],
    [{ "authorization-webhook-version": "v1" }, "needs --authorization-webhook-config-file too"],
    [
      {
        "authorization-webhook-config-file": "a",
        "authorization-mode": "Webhook",
        "authorization-webhook-version": "v2",
      },
      '--authorization-webhook-version: must be one of v1, v1beta1, got "v2"',
    ],
    [{ "audit-webhook-batch-max-size": "5" }, "needs --audit-webhook-config-file too"],
    [
      { "audit-webhook-config-file": "a", "audit-webhook-batch-max-size": "0" },
      "--audit-webhook-batch-max-size: must be a whole number of at least 1",
    ],
    [
      { "audit-webhook-config-file": "a", "audit-webhook-batch-max-wait": "-1s" },
      "--audit-webhook-batch-max-wait: must not be negative",
    ],
    [{ "audit-webhook-mode": "soon" }, "must be one of batch, blocking, blocking-strict"],
    [{ "client-ca-file": "" }, "--client-ca-file: must not be empty"],
  ])("are refused: %j", (flags, problem) => {
    expect(() => defaultConfiguration(flags)).toThrow(problem);
  });
});
