import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { GatewayFiles, selfSignedPair } from "../../support/gateway-files.ts";
import { exchangeOver, proxiedSocket, tlsOver } from "../../support/proxied-socket.ts";
import { startTestGateway, type TestGateway } from "../../support/test-gateway.ts";

const LINE = "PROXY TCP6 2001:db8::7 2001:db8::1 40000 6443\r\n";
const EXEC =
  "GET /api/v1/namespaces/default/pods/web/exec?command=true HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer wrong\r\nConnection: close\r\n\r\n";

let gateway: TestGateway;
afterEach(() => gateway.stop());

async function start(tls: boolean): Promise<number> {
  const certificate = { certFile: "server.crt", keyFile: "server.key" };
  gateway = await startTestGateway(
    {
      tls: await selfSignedPair("gateway"),
      listeners: {
        apiServer: {
          port: 0,
          ...(tls && { tls: certificate }),
          proxyProtocol: { from: ["127.0.0.9"] },
        },
      },
      configuration: { audit: { log: { path: "audit.log" }, policyFile: "policy.yaml" } },
    },
    withAuditPolicy(),
  );
  return Number(gateway.authority.split(":")[1]);
}

function withAuditPolicy(): GatewayFiles {
  const files = new GatewayFiles();
  files.write(
    "policy.yaml",
    JSON.stringify({ apiVersion: "audit.k8s.io/v1", kind: "Policy", rules: [{ level: "Metadata" }] }),
  );
  return files;
}

describe.each([
  ["plain HTTP", false],
  ["TLS", true],
])("the API listener with %s", (_what, isTls) => {
  const open = async (port: number, header: string, address?: string) => {
    const socket = proxiedSocket(port, header, address);
    return isTls ? await tlsOver(socket) : socket;
  };

  it("logs and audits the client that a proxy's header names, and serves others without one", async () => {
    const port = await start(isTls);
    expect(await exchangeOver(await open(port, LINE), EXEC)).toMatch(/^HTTP\/1\.1 401 /);
    expect(await exchangeOver(await open(port, "", "127.0.0.1"), EXEC)).toMatch(/^HTTP\/1\.1 401 /);
    const refusals = gateway.logLines
      .filter((line) => line.includes('"request refused"'))
      .map((line) => JSON.parse(line).remoteAddress);
    expect(refusals).toEqual(["2001:db8::7", "127.0.0.1"]);
    await eventually("audit events", () => {
      const events = gateway.files.read("audit.log").trim().split("\n");
      const sources = events.map((line) => JSON.parse(line).sourceIPs);
      expect(sources).toContainEqual(["2001:db8::7"]);
      return true;
    });
  });

  it("closes connections of a proxy that begin otherwise", async () => {
    const port = await start(isTls);
    expect(await exchangeOver(proxiedSocket(port, EXEC), "")).toBe("");
    const metrics = await gateway.readMetrics();
    expect(metrics.get('sluice_connections_refused_total{reason="proxy-header-missing"}')).toBe(1);
  });
});
