import { describe, expect, it } from "vitest";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

const HEAD = "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\n";
const parse = (text: string) => parseConfiguration(`${HEAD}${text}`, "gateway.yaml");

describe("upstreamProbes and podProbes", () => {
  it("are off without a section", () => {
    const { upstreamProbes, podProbes } = parse("");
    expect(upstreamProbes).toEqual({ nodes: undefined, gateways: undefined });
    expect(podProbes).toMatchObject({ nodeNames: [], threads: "auto" });
  });

  it("have a container probe's fields and defaults", () => {
    const { upstreamProbes, podProbes } = parse(`upstreamProbes:
  nodes: { httpGet: { path: /healthz, scheme: HTTPS }, periodSeconds: 5 }
  gateways: { grpc: { port: 5000, mode: TLS } }
podProbes: { nodeNames: [node-a], threads: 3 }
`);
    const numbers = { timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3 };
    expect(upstreamProbes.nodes).toEqual({
      handler: { type: "httpGet", port: undefined, path: "/healthz", scheme: "HTTPS", protocol: "HTTP1" },
      periodSeconds: 5,
      ...numbers,
    });
    expect(upstreamProbes.gateways).toEqual({
      handler: { type: "grpc", port: 5000, service: "", mode: "TLS" },
      periodSeconds: 10,
      ...numbers,
    });
    expect(parse("upstreamProbes: { nodes: {} }\n").upstreamProbes.nodes?.handler).toEqual({
      type: "tcpSocket",
      port: undefined,
    });
    expect(podProbes).toMatchObject({ nodeNames: ["node-a"], threads: 3 });
    expect(parse("podProbes: { threads: auto }\n").podProbes.threads).toBe("auto");
    expect(() => parse("podProbes: { threads: 65 }\n")).toThrow(
      /podProbes\.threads: must be between 0 and 64/,
    );
  });

  it.each([
    ["nodes: { tcpSocket: {}, httpGet: {} }", "nodes.httpGet: may not specify more than 1 handler type"],
    ["nodes: { tcpSocket: { port: 70000 } }", "nodes.tcpSocket.port: must be between 1 and 65535"],
    ["nodes: { httpGet: { scheme: HTTPS, protocol: HTTP2 } }", "protocol: HTTP2 cannot be combined"],
    ["nodes: { periodSeconds: 0 }", "nodes.periodSeconds: must be between 1 and"],
    ["node: {}", "node: unknown field"],
  ])("%s is refused", (text, message) => {
    expect(() => parse(`upstreamProbes:\n  ${text}\n`)).toThrow(message);
  });
});
