import { afterEach, describe, expect, it } from "vitest";
import { type PortForwardConnection, SpdyDialer, TunnelDialer } from "../../../packages/client/src/index.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { ResumableGateway } from "../../support/resumable-gateway.ts";
import { TestAgent } from "../../support/test-agent.ts";
import { type Conversation, converse, startTwoWayService } from "../../support/two-way-service.ts";

const PATH = "/api/v1/namespaces/default/pods/web/portforward";
const POD_PORT = 5432;
const CUTS = 50;
const CONVERSATIONS = ["echo", "answer", "greet"] as const satisfies readonly Conversation[];

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function start(declaresWebSockets: boolean, window = "2m") {
  const service = await startTwoWayService();
  stops.push(() => service.close());
  const ports = new Map([[POD_PORT, service.port]]);
  const gateway = await ResumableGateway.start({
    declaresWebSockets,
    ports,
    resumption: { window },
    // What is tried is the way, which keeps a half-close where the runtime does.
    nodeLimits: { forwardGraceMs: Number.POSITIVE_INFINITY },
  });
  stops.push(() => gateway.stop());
  const proxy = await startFaultProxy(gateway.port, { cutAfterBytes: 200_000, maxCuts: CUTS });
  stops.push(() => proxy.close());
  return { service, gateway, proxy };
}

type Started = Awaited<ReturnType<typeof start>>;

async function throughTunnel({ gateway, proxy }: Started): Promise<PortForwardConnection> {
  return new TunnelDialer(gateway.target(proxy.port), PATH, { resume: true }).dial();
}

/** An old client that knows neither WebSockets nor resumption. */
async function throughAgent({ proxy }: Started): Promise<PortForwardConnection> {
  const agent = await TestAgent.start({
    server: `http://127.0.0.1:${proxy.port}`,
    user: { token: TESTER_TOKEN },
  });
  stops.push(() => agent.stop());
  return new SpdyDialer(agent.target(), PATH).dial();
}

describe("a port-forward whose connection is cut 50 times", () => {
  it.each([
    ["in a tunnel that ends at the gateway", false, throughTunnel],
    ["in a tunnel that passes through to the node", true, throughTunnel],
    ["of an old client through an agent", false, throughAgent],
  ] as const)("%s loses and doubles nothing, whoever ends first", async (_name, declares, dial) => {
    const started = await start(declares);
    const { service, gateway, proxy } = started;
    const connection = await dial(started);
    stops.push(async () => connection.close());
    const kinds = Array.from({ length: 12 }, (_, index) => CONVERSATIONS[index % 3] as Conversation);
    const faults = await Promise.all(
      kinds.map((kind) => converse(connection.openStream(POD_PORT), kind, 1_500_000, service)),
    );
    expect(faults).toEqual(kinds.map(() => ""));
    expect(proxy.cuts).toBe(CUTS);
    expect(connection.isOver).toBe(false);
    // One that begins after all that.
    expect(await converse(connection.openStream(POD_PORT), "echo", 1_000, service)).toBe("");
    const metrics = await gateway.metrics();
    expect(metrics.get('sluice_session_resumptions_total{result="resumed"}')).toBeGreaterThanOrEqual(CUTS);
    expect(gateway.sessions()).toHaveLength(1);
    expect(gateway.node.sessionCount).toBe(1);
  });

  it("tells the connections of a session that is gone, and only those", async () => {
    const started = await start(false, "1s");
    const { service, gateway, proxy } = started;
    const connection = await throughTunnel(started);
    const stream = connection.openStream(POD_PORT);
    const failed = new Promise<Error>((resolve) => stream.once("error", resolve));
    stream.resume();
    await expect.poll(() => gateway.sessions().length).toBe(1);
    // Cut before the gateway ends, so that the client is not told why by the gateway itself.
    proxy.isRefusing = true;
    proxy.cutAll();
    await gateway.stop();
    stops.splice(1, 1);
    expect((await failed).message).toContain("lost connection to pod");
    expect((await connection.ended)?.code).toBe("connection-lost");
    expect(() => connection.openStream(POD_PORT)).toThrow("lost connection to pod");
    expect(service.received.size).toBe(0);
  });
});
