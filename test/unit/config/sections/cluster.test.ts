import { describe, expect, it } from "vitest";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

const parse = (cluster: object, flags = {}) =>
  parseConfiguration(
    JSON.stringify({ apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration", cluster }),
    "/etc/sluice/config.json",
    flags,
  );

describe("cluster", () => {
  it("is manifests alone, unless a live API is named", () => {
    expect(parse({ manifests: ["a.yaml"] }).cluster).toEqual({
      manifests: ["/etc/sluice/a.yaml"],
      live: undefined,
    });
    expect(parse({ kubeconfig: "config", context: "c" }).cluster.live).toEqual({
      kubeconfig: "/etc/sluice/config",
      context: "c",
      forwardAs: "caller",
      impersonation: "legacy",
      nameRequester: true,
      admission: "apiServer",
      maxStateAgeMs: 300_000,
      podDeletionCost: false,
      publishDeclaredFeatures: undefined,
    });
    const publishDeclaredFeatures = { nodes: ["n"] };
    const rights = { forwardAs: "impersonate", impersonation: "constrained", nameRequester: false };
    expect(parse({ inCluster: true, ...rights, publishDeclaredFeatures }).cluster.live).toEqual({
      kubeconfig: undefined,
      context: undefined,
      forwardAs: "impersonate",
      impersonation: "constrained",
      nameRequester: false,
      admission: "apiServer",
      maxStateAgeMs: 300_000,
      podDeletionCost: false,
      publishDeclaredFeatures: { nodes: ["n"], features: ["ExtendWebSocketsToKubelet"] },
    });
  });

  it.each<[object, RegExp]>([
    [{ kubeconfig: "a", inCluster: true }, /cluster\.inCluster: must be false if kubeconfig is given/],
    [{ kubeconfig: "a", manifests: ["b"] }, /cluster\.manifests: must be empty if a live API is named/],
    [{ inCluster: true, context: "c" }, /cluster\.context: is read with kubeconfig only/],
    [{ forwardAs: "caller" }, /cluster\.forwardAs: is read with kubeconfig or inCluster only/],
    [{ nameRequester: true }, /cluster\.nameRequester: is read with kubeconfig or inCluster only/],
    [{ inCluster: true, impersonation: "all" }, /cluster\.impersonation: "all" is not supported/],
    [{ inCluster: true, forwardAs: "me" }, /cluster\.forwardAs: "me" is not supported/],
    [{ inCluster: true, publishDeclaredFeatures: {} }, /publishDeclaredFeatures\.nodes: is required/],
    [
      { inCluster: true, publishDeclaredFeatures: { nodes: ["n"], features: ["a b"] } },
      /features\[0\]: must be a feature's name/,
    ],
  ])("refuses %j", (cluster, message) => {
    expect(() => parse(cluster)).toThrow(message);
  });

  it("takes --kubeconfig, which stands above the file", () => {
    const merged = parse({ kubeconfig: "a", context: "c", forwardAs: "impersonate" }, { kubeconfig: "/b" });
    expect(merged.cluster.live).toMatchObject({
      kubeconfig: "/b",
      context: undefined,
      forwardAs: "impersonate",
    });
    expect(() => parse({ manifests: ["a"] }, { kubeconfig: "/b" })).toThrow(/--kubeconfig/);
  });
});
