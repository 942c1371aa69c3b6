import { describe, expect, it } from "vitest";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

function parse(leaderElection: object) {
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: { ingress: { leaderElection } },
    cluster: { inCluster: true },
  };
  return parseConfiguration(JSON.stringify(configuration), "/etc/sluice/gateway.json").listeners.ingress
    ?.leaderElection;
}

describe("listeners.ingress.leaderElection", () => {
  it("has client-go's times", () => {
    expect(parse({})).toEqual({
      leaderElect: true,
      leaseDurationMs: 15_000,
      renewDeadlineMs: 10_000,
      retryPeriodMs: 2_000,
      resourceName: "sluice-ingress",
      resourceNamespace: undefined,
    });
  });

  it.each([
    [{ leaseDuration: "10s" }, "leaseDuration: must be more than renewDeadline"],
    [{ renewDeadline: "2s" }, "renewDeadline: must be more than 1.2 times retryPeriod"],
    [{ leaseDuration: "15500ms" }, "leaseDuration: must be whole seconds"],
    [{ resourceName: "Not_A_Name" }, "resourceName: must be a DNS-1123 subdomain"],
  ])("refuses %j", (given, problem) => {
    expect(() => parse(given)).toThrow(problem);
  });
});
