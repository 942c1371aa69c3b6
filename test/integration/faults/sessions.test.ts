import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { HttpUpstream } from "../../../packages/client/src/http/upstream/http-upstream.ts";
import { SessionClock } from "../../../packages/client/src/net/session-clock.ts";
import { onFault } from "../../../packages/client/src/observability/faults.ts";
import { createApiServer } from "../../../src/legs/api-server/api-server.ts";
import { forwardToApiServer } from "../../../src/legs/api-server/forward-to-api-server.ts";
import { CommandBridge } from "../../../src/sessions/carriers/bridge/command-bridge.ts";
import { LegacyForwardBridge } from "../../../src/sessions/carriers/bridge/legacy-forward-bridge.ts";
import { Relay } from "../../../src/sessions/carriers/relay.ts";
import { Translator } from "../../../src/sessions/carriers/translator.ts";
import { Tunnel } from "../../../src/sessions/carriers/tunnel.ts";
import { ChannelClient } from "../../support/channel-client.ts";
import { evidenceTable } from "../../support/evidence-table.ts";
import { FaultInjection } from "../../support/fault-injection.ts";
import { type GatewayHarness, startGatewayHarness } from "../../support/gateway-harness.ts";
import {
  answering,
  closeServer,
  listen,
  listenRaw,
  openClient,
  type RawUpstream,
  readToEnd,
} from "../../support/http/loopback.ts";
import { ScriptedKubelet } from "../../support/scripted-kubelet.ts";
import { ScriptedTunnelNode } from "../../support/scripted-tunnel-node.ts";
import { ScriptedV5Node } from "../../support/scripted-v5-node.ts";
import { startSpdyCommand } from "../../support/spdy-command-client.ts";
import { TunnelClient } from "../../support/tunnel-client.ts";
import { V5Client } from "../../support/v5-client.ts";
import { websocketOnly } from "../../support/websocket-only.ts";

interface OpenSession {
  /** How it ended, as its client saw it. */
  readonly ended: Promise<string>;
  readonly isOpen: () => boolean;
  close(): void;
}

const CARRIERS = [
  "translator",
  "tunnel",
  "relay",
  "command bridge",
  "tunnel bridge",
  "legacy bridge",
  "forwarded upgrade",
] as const;
type Carrier = (typeof CARRIERS)[number];

/** Each ticks once a second. */
const CLASSES = {
  translator: Translator,
  tunnel: Tunnel,
  relay: Relay,
  "command bridge": CommandBridge,
  "tunnel bridge": Tunnel,
  "legacy bridge": LegacyForwardBridge,
  "forwarded upgrade": Relay,
} as const;
const KINDS = {
  translator: "spdy",
  tunnel: "spdy",
  relay: "spdy",
  "command bridge": "v5",
  "tunnel bridge": "tunnel",
  "legacy bridge": "tunnel",
  "forwarded upgrade": "forwarded",
} as const;
type Kind = (typeof KINDS)[Carrier];

const TICK_MS = 50;
const timeouts = { lingerIdleMs: 200, lingerMaxMs: 1_000 };
const rows: string[][] = [];
const faults: string[] = [];
let injection: FaultInjection;
let nodes: Record<Exclude<Kind, "forwarded">, { listen(): Promise<number>; close(): Promise<void> }>;
let apiServer: RawUpstream;
let ports: Record<Kind, number>;
let gateways: Record<Kind, Pick<GatewayHarness, "authority" | "context" | "close">>;
let stopObserving: () => void;

beforeAll(async () => {
  injection = new FaultInjection();
  stopObserving = onFault((where) => void faults.push(where));
  nodes = { spdy: new ScriptedKubelet({}), v5: new ScriptedV5Node({}), tunnel: new ScriptedTunnelNode({}) };
  apiServer = await listenRaw(
    answering("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
  );
  ports = {
    forwarded: apiServer.port,
    spdy: await nodes.spdy.listen(),
    v5: await nodes.v5.listen(),
    tunnel: await nodes.tunnel.listen(),
  };
  const start = (kind: Kind, more: object) =>
    startGatewayHarness({ kubeletPort: ports[kind], timeouts, clock: new SessionClock(TICK_MS), ...more });
  gateways = {
    spdy: await start("spdy", {}),
    v5: await start("v5", { streaming: websocketOnly }),
    tunnel: await start("tunnel", { streaming: websocketOnly }),
    forwarded: await startForwarding(await start("forwarded", {}), apiServer.port),
  };
});
afterAll(async () => {
  injection.restore();
  stopObserving();
  for (const gateway of Object.values(gateways)) await gateway.close();
  for (const node of Object.values(nodes)) await node.close();
  await apiServer.close();
});

/** The harness behind a listener that forwards what is no streaming subresource. */
async function startForwarding(harness: GatewayHarness, port: number) {
  const upstream = new HttpUpstream({ endpoint: { host: "127.0.0.1", port } });
  const api = forwardToApiServer(harness.context, { upstream, impersonates: false });
  const { server } = createApiServer(harness.context, api, {});
  const listened = await listen(server);
  return {
    authority: `127.0.0.1:${listened}`,
    context: harness.context,
    close: async () => {
      upstream.close();
      server.closeAllConnections();
      await closeServer(server, []);
      await harness.close();
    },
  };
}

async function openForwarded(authority: string): Promise<OpenSession> {
  const socket = await openClient(Number(authority.split(":")[1]));
  const target = "/api/v1/namespaces/default/pods/web:80/proxy/";
  socket.write(`GET ${target} HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  await once(socket, "data");
  return {
    ended: readToEnd(socket).then(({ isClean }) => (isClean ? "FIN" : "reset")),
    isOpen: () => !socket.destroyed,
    close: () => socket.destroy(),
  };
}

async function openLegacy(authority: string): Promise<OpenSession> {
  const client = new ChannelClient(authority, "v4.channel.k8s.io", "portforward", "ports=80");
  await client.opened;
  return {
    ended: client.closed.then((code) => `close ${code}`),
    isOpen: () => client.socket.readyState === 1,
    close: () => client.socket.terminate(),
  };
}

const kindOf = (carrier: Carrier): Kind => KINDS[carrier];

async function open(carrier: Carrier): Promise<OpenSession> {
  const { authority } = gateways[kindOf(carrier)];
  if (carrier === "forwarded upgrade") return openForwarded(authority);
  if (carrier === "legacy bridge") return openLegacy(authority);
  if (carrier === "translator") {
    const client = new V5Client(authority);
    client.socket.on("error", () => {});
    await client.opened;
    return {
      ended: client.done.then(({ status, closeCode }) =>
        status === "" ? `close ${closeCode}` : `Status "${JSON.parse(status).message}", close ${closeCode}`,
      ),
      isOpen: () => client.socket.readyState === 1,
      close: () => client.socket.terminate(),
    };
  }
  if (carrier === "tunnel") {
    const client = await TunnelClient.open(authority);
    return {
      ended: client.closed.then(({ code, reason }) => `close ${code} "${reason}"`),
      isOpen: () => client.socket.readyState === 1,
      close: () => client.socket.terminate(),
    };
  }
  const forward = { subresource: "portforward", version: "portforward.k8s.io", streams: [] };
  const client = await startSpdyCommand(authority, carrier === "tunnel bridge" ? forward : {});
  client.socket.on("error", () => {});
  if (carrier !== "tunnel bridge") await expect.poll(() => client.replies).toHaveLength(4);
  return {
    ended: client.ended.then((isClean) => {
      const status = client.received.error === undefined ? "" : client.text("error");
      const said = status === "" ? "" : `Status "${JSON.parse(status).message}", `;
      const left = client.goAways.map((code) => `GOAWAY ${code}, `).join("");
      return `${said}${left}${isClean ? "FIN" : "reset"}`;
    }),
    isOpen: () => !client.socket.destroyed,
    close: () => client.socket.destroy(),
  };
}

const PLACES = ["client", "node"].flatMap((side) =>
  ["data", "drain", "end", "error", "close"].map((event) => [side, event] as const),
);

async function endedByFault(carrier: Carrier, throwing: () => void): Promise<string> {
  const { context } = gateways[kindOf(carrier)];
  const other = await open(carrier);
  const otherInfo = context.sessions.list().map(({ id }) => id);
  const victim = await open(carrier);
  await expect.poll(() => context.sessions.list().length).toBe(2);
  faults.length = 0;
  throwing();
  const seen = await victim.ended;
  await expect.poll(() => context.sessions.list().map(({ id }) => id)).toEqual(otherInfo);
  expect(faults.length).toBeGreaterThan(0);
  expect(new Set(faults)).toEqual(new Set(["session"]));
  expect(other.isOpen()).toBe(true);
  const next = await open(carrier);
  for (const session of [other, next]) session.close();
  await expect.poll(() => context.sessions.size).toBe(0);
  return seen;
}

describe.each(CARRIERS)("an exception in a %s", (carrier) => {
  it.each(PLACES)("at the %s's '%s' ends that session alone", async (side, event) => {
    const kind = kindOf(carrier);
    const gatewayPort = Number(gateways[kind].authority.split(":")[1]);
    const isSide = (port: { localPort?: number | undefined; remotePort?: number | undefined }): boolean =>
      side === "client" ? port.localPort === gatewayPort : port.remotePort === ports[kind];
    const seen = await endedByFault(carrier, () => {
      // The newest is the victim's.
      const socket = injection.sockets(isSide).at(-1);
      if (socket === undefined) throw new Error("no such socket");
      injection.arm((emitter, name) => emitter === socket && name === event);
      if (event === "error") socket.destroy(new Error("broken"));
      else if (event === "close") socket.destroy();
      else socket.emit(event, ...(event === "data" ? [new Uint8Array(0)] : []));
    });
    expect(injection.isArmed).toBe(false);
    rows.push([carrier, `${side}'s \`${event}\``, seen]);
  });

  it("in its tick ends that session alone", async () => {
    const seen = await endedByFault(carrier, () => {
      const { list } = gateways[kindOf(carrier)].context.sessions;
      expect(list.call(gateways[kindOf(carrier)].context.sessions)).toHaveLength(2);
      let ticked = 0;
      const tick = CLASSES[carrier].prototype.tick;
      // The other one ticks first: it is older.
      const spy = vi.spyOn(CLASSES[carrier].prototype, "tick").mockImplementation(function (
        this: { tick(nowMs: number): void },
        nowMs: number,
      ) {
        ticked += 1;
        if (ticked !== 2) return tick.call(this as never, nowMs);
        spy.mockRestore();
        throw new Error("injected into tick");
      });
    });
    rows.push([carrier, "tick", seen]);
  });
});

it("the table is documented", async () => {
  const table = evidenceTable(["carrier", "an exception in", "its client saw"], rows, [1, 0]);
  const page = `# Injected exceptions: sessions

An exception ends its own session; the client gets an error if its connection still works. Written by
\`npx vitest run test/integration/faults --update\`.

${table}
`;
  await expect(page).toMatchFileSnapshot("../../../docs/evidence/faults-of-sessions.md");
});
