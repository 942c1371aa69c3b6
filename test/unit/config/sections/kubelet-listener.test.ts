import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ConfigurationError } from "../../../../packages/client/src/config/configuration-error.ts";
import { authenticationWarning } from "../../../../src/cli/serve/serve.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

const HEADER = { apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration" };

const parse = (kubelet: object) =>
  parseConfiguration(JSON.stringify({ ...HEADER, listeners: { kubelet } }), "/etc/sluice/node.json").listeners
    .kubelet;

const problemsOf = (kubelet: object): string[] => {
  try {
    parse(kubelet);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
};

const runtime = { nodeName: "worker-1" };

describe("listeners.kubelet", () => {
  it("is absent unless it is given: most gateways are no nodes", () => {
    const { apiServer, kubelet } = parseConfiguration(JSON.stringify(HEADER), "gateway.json").listeners;
    expect({ port: apiServer?.port, kubelet }).toEqual({ port: 6_443, kubelet: undefined });
  });

  it("needs a node's name; everything else has a default", () => {
    expect(parse({ runtime })).toMatchObject({
      address: "127.0.0.1",
      port: 10_250,
      tls: undefined,
      authentication: undefined,
      authorization: undefined,
      requireCreateForUpgrades: true,
      runtime: { endpoint: "unix:///run/containerd/containerd.sock", nodeName: "worker-1" },
    });
  });

  it("may have its own callers and permissions", () => {
    const listener = parse({
      runtime,
      authentication: { clientCAFile: "ca.crt" },
      authorization: { mode: ["RBAC"] },
      requireCreateForUpgrades: false,
    });
    expect(listener?.authentication?.clientCAFile).toBe("/etc/sluice/ca.crt");
    expect(listener?.authorization?.modes).toEqual(["RBAC"]);
    expect(listener?.requireCreateForUpgrades).toBe(false);
  });

  it.each([
    ["no name", {}, "listeners.kubelet.runtime.nodeName: is required"],
    ["an empty name", { runtime: { nodeName: "" } }, "listeners.kubelet.runtime.nodeName: must not be empty"],
    [
      "a name that no Node has",
      { runtime: { nodeName: "Worker_1" } },
      "listeners.kubelet.runtime.nodeName: must be the name of a Node",
    ],
    [
      "another transport",
      { runtime: { ...runtime, endpoint: "tcp://127.0.0.1:1" } },
      "listeners.kubelet.runtime.endpoint: must be a unix socket",
    ],
    [
      "a relative socket",
      { runtime: { ...runtime, endpoint: "unix://cri.sock" } },
      "listeners.kubelet.runtime.endpoint: must be a unix socket",
    ],
    ["an unknown field", { runtime, requireCreate: true }, "listeners.kubelet.requireCreate: unknown field"],
    [
      "an unknown field of the runtime",
      { runtime: { ...runtime, socket: "x" } },
      "listeners.kubelet.runtime.socket: unknown field",
    ],
    [
      "half of a certificate",
      { runtime, tls: { certFile: "a" } },
      "listeners.kubelet.tls.keyFile: is required",
    ],
    [
      "a kubelet that gets no credentials",
      { runtime, upstream: { url: "https://127.0.0.1:10260" } },
      "listeners.kubelet.upstream.url: needs one of clientCertificateFile and tokenFile",
    ],
    [
      "two credentials for the kubelet",
      {
        runtime,
        upstream: {
          url: "https://127.0.0.1:10260",
          tokenFile: "t",
          clientCertificateFile: "c",
          clientKeyFile: "k",
        },
      },
      "listeners.kubelet.upstream.url: needs one of clientCertificateFile and tokenFile",
    ],
    [
      "a token in clear",
      { runtime, upstream: { url: "http://127.0.0.1:10255", tokenFile: "t" } },
      "listeners.kubelet.upstream.tokenFile: must not be sent in clear",
    ],
    [
      "a path of the kubelet",
      { runtime, upstream: { url: "http://127.0.0.1:10255/x" } },
      "listeners.kubelet.upstream.url: must be a host and port alone",
    ],
    ...[
      { address: "127.0.0.1", url: "http://127.0.0.1:10250" },
      { address: "0.0.0.0", url: "http://localhost:10250" },
      { address: "::", url: "http://[::1]:10250" },
    ].map(({ address, url }): [string, object, string] => [
      `itself as its upstream at ${url}`,
      { runtime, address, upstream: { url } },
      "listeners.kubelet.upstream.url: must not be the address of this listener",
    ]),
  ])("refuses %s", (_name, kubelet, problem) => {
    expect(problemsOf(kubelet)).toEqual([expect.stringContaining(problem)]);
  });

  it("stands alone: the API has no port unless it is configured", () => {
    const text = JSON.stringify({ ...HEADER, listeners: { kubelet: { runtime } } });
    expect(parseConfiguration(text, "node.json").listeners.apiServer).toBeUndefined();
    const both = parseConfiguration(text, "node.json", { "secure-port": "7443" });
    expect(both.listeners.apiServer).toMatchObject({ address: "127.0.0.1", port: 7_443 });
  });

  it("is shown by the example of a node, with no other port for traffic and no warning", () => {
    const file = "deploy/examples/node.yaml";
    const configuration = parseConfiguration(readFileSync(file, "utf8"), file);
    const { kubelet, apiServer, ingress } = configuration.listeners;
    expect([apiServer, ingress, authenticationWarning(configuration)]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(kubelet).toMatchObject({
      port: 10_250,
      requireCreateForUpgrades: true,
      runtime: { nodeName: "worker-1" },
      authorization: { modes: ["Webhook"] },
    });
  });
});
