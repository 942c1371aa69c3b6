import { describe, expect, it } from "vitest";
import type { ConfigurationError } from "../../../../packages/client/src/config/configuration-error.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

const read = (authorization: object, flags = {}) =>
  parseConfiguration(
    JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      authorization,
    }),
    "/etc/sluice/f.json",
    flags,
  );
const problemsOf = (run: () => unknown): string[] => {
  try {
    run();
    return [];
  } catch (error) {
    return (error as ConfigurationError).problems.map(({ path, message }) => `${path}: ${message}`);
  }
};

describe("the authorization section", () => {
  it("takes a chain of modes and a webhook with kube-apiserver's times", () => {
    const webhook = { url: "https://kube:6443", tokenFile: "token", certificateAuthorityFile: "/ca.crt" };
    expect(read({ mode: ["RBAC", "Webhook"], webhook }).authorization).toEqual({
      modes: ["RBAC", "Webhook"],
      webhook: {
        target: {
          kind: "url",
          url: "https://kube:6443",
          tokenFile: "/etc/sluice/token",
          certificateAuthorityFile: "/ca.crt",
          insecureSkipTLSVerify: false,
          clientCertificateFile: undefined,
          clientKeyFile: undefined,
        },
        version: "v1",
        timeoutMs: 10_000,
        authorizedTtlMs: 300_000,
        unauthorizedTtlMs: 30_000,
        maxCachedDecisions: 8_192,
      },
    });
  });

  it.each([
    [
      { mode: ["RBAC", "AlwaysDeny", "RBAC"] },
      'authorization.mode: authorization-mode ["RBAC" "AlwaysDeny" "RBAC"] has mode specified more than once',
    ],
    [{ mode: [] }, "authorization.mode: must name at least one of AlwaysAllow, AlwaysDeny, RBAC, Webhook"],
    [
      { mode: ["Webhook"] },
      "authorization.webhook: authorization-mode Webhook's authorization config is not given",
    ],
    [
      { mode: ["RBAC"], webhook: { url: "https://a" } },
      "authorization.webhook: cannot be specified without mode Webhook",
    ],
    [
      { mode: ["Webhook"], webhook: {} },
      'authorization.webhook.url: is required, such as "https://kubernetes.default.svc"',
    ],
    [
      { mode: ["Webhook"], webhook: { url: "ftp://a" } },
      'authorization.webhook.url: must be an http or https URL, got "ftp://a"',
    ],
    [
      { mode: ["Webhook"], webhook: { url: "https://a:b@c" } },
      "authorization.webhook.url: must not hold credentials",
    ],
    [
      { mode: ["Webhook"], webhook: { url: "https://a", clientKeyFile: "k" } },
      "authorization.webhook.clientCertificateFile: is required with clientKeyFile",
    ],
    [
      { mode: ["Webhook"], webhook: { kubeconfigFile: "k", tokenFile: "t" } },
      "authorization.webhook.tokenFile: must not stand beside kubeconfigFile, which says it",
    ],
    [
      { mode: ["Webhook"], webhook: { url: "https://a", version: "v2" } },
      'authorization.webhook.version: "v2" is not supported; did you mean "v1"?',
    ],
    [
      { mode: ["Webhook"], webhook: { url: "https://a", timeout: "1ms" } },
      'authorization.webhook.timeout: must be between 100ms and 1m0s, got the string "1ms"',
    ],
  ])("%j is refused", (authorization, problem) => {
    expect(problemsOf(() => read(authorization))).toEqual([problem]);
  });

  it("--authorization-mode stands above the file and is held to the same rules", () => {
    const merged = (mode: string) => read({}, { "authorization-mode": mode }).authorization.modes;
    expect(merged("RBAC,AlwaysDeny")).toEqual(["RBAC", "AlwaysDeny"]);
    expect(problemsOf(() => merged("RBAC,RBAC"))).toEqual([
      ': authorization-mode ["RBAC" "RBAC"] has mode specified more than once',
    ]);
    expect(problemsOf(() => merged("Webhook"))).toEqual([
      ": authorization-mode Webhook's authorization config is not given",
    ]);
  });
});
