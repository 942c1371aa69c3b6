import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { onFault } from "../../../packages/client/src/observability/faults.ts";
import { endOf } from "../../../packages/client/src/sessions/session-end.ts";
import { defaultSpdyLimits } from "../../../protocols/spdy/index.ts";
import { defaultWebSocketLimits, OPCODE } from "../../../protocols/websocket/index.ts";
import { CommandBridge } from "../../../src/sessions/carriers/bridge/command-bridge.ts";
import {
  ChannelCommandClient,
  SpdyCommandClient,
} from "../../../src/sessions/carriers/bridge/command-clients.ts";
import { LegacyForwardBridge } from "../../../src/sessions/carriers/bridge/legacy-forward-bridge.ts";
import { Relay } from "../../../src/sessions/carriers/relay.ts";
import { Translator } from "../../../src/sessions/carriers/translator.ts";
import { Tunnel } from "../../../src/sessions/carriers/tunnel.ts";
import type { SessionLifecycle } from "../../../src/sessions/lifecycle.ts";
import type { ObservedSession, SessionObserver } from "../../../src/sessions/observers/session-observer.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingSession } from "../../../src/sessions/session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";
import { CarriedSession, type MemorySocket } from "../../support/carried-session.ts";
import { EventList } from "../../support/event-list.ts";
import {
  channelPeer,
  type Peer,
  plainPipe,
  settle,
  spdyPeer,
  webSocketPipe,
} from "../../support/session-peers.ts";

type PassThrough = ReturnType<typeof passThroughOf>;

const HEAD = new Uint8Array(0);
const PORT = 8080;
const SUCCESS = '{"metadata":{},"status":"Success"}';
const SIZE = '{"Width":80,"Height":24}';

interface Carrier {
  readonly name: string;
  /** The client can end stdin. */
  readonly hasStdinEnd?: boolean;
  /** Streams of a connection end one by one. */
  readonly hasStreamEnds?: boolean;
  client(socket: MemorySocket, streams: readonly string[]): Peer;
  node(socket: MemorySocket): Peer;
  passThrough?: PassThrough;
  begin(carried: CarriedSession, life: SessionLifecycle, isTerminal: boolean): StreamingSession;
}

const downstream = ({ client }: CarriedSession) => ({ socket: client, head: HEAD });
const upstream = ({ node }: CarriedSession) => ({ socket: node, head: HEAD });
const requested = (tty: boolean) => ({ stdin: true, stdout: true, stderr: !tty, tty });

function passing(
  name: string,
  subresource: "exec" | "portforward",
  transport: "spdy" | "websocket",
  protocol: string,
  peers: Pick<Carrier, "client" | "node" | "hasStdinEnd" | "hasStreamEnds">,
): Carrier {
  const header = transport === "spdy" ? "X-Stream-Protocol-Version" : "Sec-WebSocket-Protocol";
  const passThrough = passThroughOf(
    { offer: { transport } as StreamingRequest["offer"], subresource, ports: [PORT] },
    [[header, protocol]],
    { spdy: defaultSpdyLimits },
  );
  const { ends, decoderFor } = passThrough;
  const begin: Carrier["begin"] = (carried, life) =>
    new Relay(downstream(carried), upstream(carried), life, { decoder: decoderFor(life.observers), ends });
  return { name: `pass-through, ${name}`, ...peers, passThrough, begin };
}

const webSocketNode = (socket: MemorySocket): Peer =>
  channelPeer(webSocketPipe(socket, "server"), { isNode: true });
const v5Client = (socket: MemorySocket): Peer =>
  channelPeer(webSocketPipe(socket, "client"), { hasClose: true });
const v4Client = (socket: MemorySocket): Peer => channelPeer(webSocketPipe(socket, "client"));
const base64 = (socket: MemorySocket, role: "client" | "server", isForward = false): Peer =>
  channelPeer(webSocketPipe(socket, role, OPCODE.TEXT), {
    isBase64: true,
    isForward,
    isNode: role === "server",
  });
const spdyClient = (socket: MemorySocket, streams: readonly string[]): Peer =>
  spdyPeer(plainPipe(socket), "client", streams);
const spdyNode = (socket: MemorySocket): Peer => spdyPeer(plainPipe(socket), "server");

function bridged(name: string, version: string, client: Carrier["client"]): Carrier {
  const begin: Carrier["begin"] = (carried, life, isTerminal) =>
    new CommandBridge(
      downstream(carried),
      upstream(carried),
      {
        webSocketLimits: defaultWebSocketLimits,
        hasTerminal: isTerminal,
        clientOf: (handler) => {
          const options = { version, requested: requested(isTerminal) } as never as {
            version: "v4.channel.k8s.io";
            requested: ReturnType<typeof requested>;
          };
          return name === "SPDY"
            ? new SpdyCommandClient(
                carried.client,
                handler,
                { ...options, spdyLimits: defaultSpdyLimits, maxQueuedBytes: 1_024 },
                life,
              )
            : new ChannelCommandClient(
                carried.client,
                handler,
                { ...options, webSocketLimits: defaultWebSocketLimits },
                life,
              );
        },
      },
      life,
    );
  return { name: `bridge, ${name} to v5`, hasStdinEnd: name === "SPDY", client, node: webSocketNode, begin };
}

const commands = (): Carrier[] => [
  {
    name: "translate",
    hasStdinEnd: true,
    client: v5Client,
    node: spdyNode,
    begin: (carried, life, isTerminal) =>
      new Translator(
        downstream(carried),
        upstream(carried),
        {
          requested: requested(isTerminal),
          upstreamVersion: "v4.channel.k8s.io",
          webSocketLimits: defaultWebSocketLimits,
          spdyLimits: defaultSpdyLimits,
          maxQueuedBytes: 1_024,
        },
        life,
      ),
  },
  passing("WebSocket v5", "exec", "websocket", "v5.channel.k8s.io", {
    hasStdinEnd: true,
    client: v5Client,
    node: webSocketNode,
  }),
  passing("WebSocket v4", "exec", "websocket", "v4.channel.k8s.io", {
    client: v4Client,
    node: webSocketNode,
  }),
  passing("WebSocket v4 in base64", "exec", "websocket", "v4.base64.channel.k8s.io", {
    client: (socket) => base64(socket, "client"),
    node: (socket) => base64(socket, "server"),
  }),
  passing("SPDY v4", "exec", "spdy", "v4.channel.k8s.io", {
    hasStdinEnd: true,
    client: spdyClient,
    node: spdyNode,
  }),
  bridged("SPDY", "v4.channel.k8s.io", spdyClient),
  bridged("WebSocket v4", "v4.channel.k8s.io", v4Client),
  bridged("WebSocket v4 in base64", "v4.base64.channel.k8s.io", (socket) => base64(socket, "client")),
];

const tunnelClient = (socket: MemorySocket): Peer => spdyPeer(webSocketPipe(socket, "client"), "client");
const tunnelNode = (socket: MemorySocket): Peer => spdyPeer(webSocketPipe(socket, "server"), "server");
const legacyClient = (socket: MemorySocket): Peer =>
  channelPeer(webSocketPipe(socket, "client"), { isForward: true });
const legacyNode = (socket: MemorySocket): Peer =>
  channelPeer(webSocketPipe(socket, "server"), { isForward: true, isNode: true });

const LIMITS = { webSocketLimits: defaultWebSocketLimits, spdyLimits: defaultSpdyLimits };

const forwards = (): Carrier[] => [
  {
    name: "tunnel",
    hasStreamEnds: true,
    client: tunnelClient,
    node: spdyNode,
    begin: (carried, life) =>
      new Tunnel(
        downstream(carried),
        upstream(carried),
        { client: "messages", node: "spdy", ...LIMITS },
        life,
      ),
  },
  passing("SPDY", "portforward", "spdy", "portforward.k8s.io", {
    hasStreamEnds: true,
    client: spdyClient,
    node: spdyNode,
  }),
  {
    name: "tunnel through to a tunnel",
    hasStreamEnds: true,
    client: tunnelClient,
    node: tunnelNode,
    begin: (carried, life) =>
      new Tunnel(
        downstream(carried),
        upstream(carried),
        { client: "messages", node: "messages", ...LIMITS },
        life,
      ),
  },
  passing("legacy WebSocket", "portforward", "websocket", "v4.channel.k8s.io", {
    client: legacyClient,
    node: legacyNode,
  }),
  passing("legacy WebSocket in base64", "portforward", "websocket", "v4.base64.channel.k8s.io", {
    client: (socket) => base64(socket, "client", true),
    node: (socket) => base64(socket, "server", true),
  }),
  {
    name: "bridge, SPDY to the tunnel",
    hasStreamEnds: true,
    client: spdyClient,
    node: tunnelNode,
    begin: (carried, life) =>
      new Tunnel(
        downstream(carried),
        upstream(carried),
        { client: "spdy", node: "messages", ...LIMITS },
        life,
      ),
  },
  {
    name: "bridge, legacy WebSocket to the tunnel",
    client: legacyClient,
    node: tunnelNode,
    begin: (carried, life) =>
      new LegacyForwardBridge(
        downstream(carried),
        upstream(carried),
        {
          ports: [PORT],
          isBase64: false,
          webSocketLimits: defaultWebSocketLimits,
          spdyLimits: defaultSpdyLimits,
        },
        life,
      ),
  },
];

interface Observed {
  readonly carried: CarriedSession;
  readonly client: Peer;
  readonly node: Peer;
  /** Lets it happen, step by step. */
  step(...acts: (() => void)[]): Promise<void>;
}

async function observed(
  carrier: Carrier,
  observers: SessionObserver[],
  isTerminal = false,
): Promise<Observed> {
  const ends = carrier.passThrough === undefined ? [] : [carrier.passThrough.ends];
  const carried = new CarriedSession({ idleMs: 1e9, streamCreationMs: 1e9 }, [...ends, ...observers]);
  for (const socket of [carried.client, carried.node]) socket.on("error", () => {});
  carried.carry((life) => carrier.begin(carried, life, isTerminal));
  const streams = ["error", "stdin", "stdout", isTerminal ? "resize" : "stderr"];
  const isForward = forwardNames.has(carrier.name);
  const client = carrier.client(carried.client, isForward ? [] : streams);
  const node = carrier.node(carried.node);
  await settle(client, node);
  const step: Observed["step"] = async (...acts) => {
    for (const act of acts) {
      act();
      await settle(client, node);
    }
  };
  return { carried, client, node, step };
}
const forwardNames = new Set(forwards().map(({ name }) => name));

/** What a peer was sent on all of its streams. */
const heardBy = ({ received }: Peer): string => Object.values(received).join("\n");

describe.each(commands())("$name", (carrier) => {
  const stdinEnd = carrier.hasStdinEnd ? ["client ends stdin"] : [];
  let list: EventList;
  beforeEach(() => {
    list = new EventList();
  });
  const start = (isTerminal = false): Promise<Observed> => {
    const fresh = commands().find(({ name }) => name === carrier.name) as Carrier;
    return observed(fresh, [list], isTerminal);
  };

  it("shows a command from its input to its status", async () => {
    const { carried, client, node, step } = await start();
    await step(
      () => client.send("stdin", "hello "),
      () => client.send("stdin", "world"),
      () => client.finish("stdin"),
      () => node.send("stdout", "out"),
      () => node.send("stderr", "err"),
      () => node.send("stdout", "more"),
      () => {
        node.send("error", SUCCESS);
        for (const stream of ["error", "stdout", "stderr"]) node.finish(stream);
        node.leave();
      },
      () => void carried.node.push(null),
      () => void carried.client.push(null),
    );
    expect(list.events).toEqual([
      "begins",
      "client stdin: hello world",
      ...stdinEnd,
      "node stdout: out",
      "node stderr: err",
      "node stdout: more",
      `node status: ${SUCCESS}`,
      "node ends status",
      "completed, by node",
    ]);
  });

  it("shows a terminal's sizes, and a client that leaves", async () => {
    const { carried, client, node, step } = await start(true);
    await step(
      () => client.send("resize", SIZE),
      () => node.send("stdout", "$ "),
      () => client.send("stdin", "exit"),
      () => client.leave(),
      () => void carried.client.push(null),
      () => void carried.node.push(null),
    );
    expect(list.events).toEqual([
      "begins",
      `client resize: ${SIZE}`,
      "node stdout: $ ",
      "client stdin: exit",
      "client-gone, by client",
    ]);
  });

  it("shows a node that dies", async () => {
    const { carried, node, step } = await start();
    await step(
      () => node.send("stdout", "half"),
      () => carried.node.destroy(new Error("reset")),
    );
    expect(list.events).toEqual(["begins", "node stdout: half", "upstream-lost, by node"]);
  });
});

describe.each(forwards())("$name", (carrier) => {
  it("shows a connection to a port, both ways", async () => {
    const list = new EventList();
    const { client, node, step } = await observed(carrier, [list]);
    await step(
      () => client.open(PORT),
      () => node.open(PORT),
      () => client.send("data", "ping"),
      () => node.send("data", "pong"),
      () => node.send("error", "refused"),
      () => client.finish("data"),
      () => {
        if (carrier.hasStreamEnds) for (const stream of ["data", "error"]) node.finish(stream);
      },
    );
    const ends = carrier.hasStreamEnds ? ["client ends data", "node ends data", "node ends error"] : [];
    expect(list.events).toEqual([
      "begins",
      `client opens error of 0 to ${PORT}`,
      `client opens data of 0 to ${PORT}`,
      "client data: ping",
      "node data: pong",
      "node error: refused",
      ...ends,
    ]);
  });
});

describe.each([...commands(), ...forwards()])("an observer on $name", (carrier) => {
  const fresh = (): Carrier =>
    [...commands(), ...forwards()].find(({ name }) => name === carrier.name) as Carrier;
  const isForward = forwardNames.has(carrier.name);
  let faults: string[];
  let stop: () => void;
  beforeEach(() => {
    faults = [];
    stop = onFault((where, error) => void faults.push(`${where}: ${(error as Error).message}`));
  });
  afterEach(() => stop());

  const exchange = async (
    observers: SessionObserver[],
    onBegun: (carried: CarriedSession) => void = () => {},
  ): Promise<CarriedSession> => {
    const { carried, client, node, step } = await observed(fresh(), observers);
    onBegun(carried);
    const [input, output] = isForward ? ["data", "data"] : ["stdin", "stdout"];
    if (isForward)
      await step(
        () => client.open(PORT),
        () => node.open(PORT),
      );
    await step(
      () => client.send(input, "one"),
      () => client.send(input, "two"),
      () => node.send(output, "three"),
    );
    return carried;
  };

  it("that keeps a view of payload sees it spoilt", async () => {
    const kept: Uint8Array[] = [];
    const seen: string[] = [];
    const observer: SessionObserver = {
      isRequired: false,
      payload: { node: true, input: true, sizes: true },
      onData: (_stream, _from, part) => {
        seen.push(Buffer.from(part).toString());
        kept.push(part);
      },
    };
    await exchange([observer]);
    expect(seen).toEqual(["one", "two", "three"]);
    for (const [index, part] of kept.entries()) expect(Buffer.from(part).toString()).not.toBe(seen[index]);
  });

  it("sees payload before the other side has it", async () => {
    const early: string[] = [];
    let carried: CarriedSession | undefined;
    const observer: SessionObserver = {
      isRequired: false,
      payload: { node: true, input: true, sizes: true },
      onData: (_stream, from, part) => {
        const other = from === "client" ? carried?.node : carried?.client;
        early.push(`${Buffer.from(part)} ${other?.sentBytes.includes(Buffer.from(part))}`);
      },
    };
    carried = await exchange([observer], (begun) => {
      carried = begun;
    });
    expect(early).toEqual(["one false", "two false", "three false"]);
  });

  it("that throws is detached, counted, and the session continues", async () => {
    const list = new EventList();
    const throwing: SessionObserver = {
      isRequired: false,
      payload: { node: true, input: true, sizes: true },
      onData: () => {
        throw new Error("thrown");
      },
      onEnd: () => {
        throw new Error("detached already");
      },
    };
    const carried = await exchange([throwing, list]);
    expect(faults).toEqual(["observer: thrown"]);
    expect(list.events.filter((event) => / (?:data|stdin|stdout): /.test(event))).toHaveLength(2);
    expect(carried.reports).toEqual([]);
  });

  it("that is required and throws ends the session", async () => {
    const required: SessionObserver = {
      isRequired: true,
      payload: { node: true, input: true, sizes: true },
      onData: () => {
        throw new Error("thrown");
      },
    };
    const carried = await exchange([required]);
    await turn();
    expect(faults[0]).toBe("session: thrown");
    expect(carried.life.isOver).toBe(true);
    expect(carried.causes).toEqual(["internal-error"]);
  });

  it("that asks for one kind of payload is shown no other", async () => {
    const kinds = ["node", "input", "sizes"] as const;
    const seen = Object.fromEntries(kinds.map((kind) => [kind, [] as string[]]));
    const observers = kinds.map(
      (kind): SessionObserver => ({
        isRequired: false,
        payload: { [kind]: true },
        onData: (_stream, _from, part) => void seen[kind]?.push(Buffer.from(part).toString()),
      }),
    );
    const { client, node, step } = await observed(fresh(), observers, !isForward);
    if (isForward)
      await step(
        () => client.open(PORT),
        () => node.open(PORT),
      );
    await step(
      () => client.send(isForward ? "data" : "stdin", "in"),
      () => node.send(isForward ? "data" : "stdout", "out"),
      () => !isForward && client.send("resize", SIZE),
    );
    expect(seen).toEqual({ node: ["out"], input: ["in"], sizes: isForward ? [] : [SIZE] });
  });

  it.each(["client", "node"] as const)("may refuse a part of the %s: it is not passed on", async (side) => {
    const refusal = endOf("refused", "not this", {
      status: "Failure",
      message: "not this",
      reason: "Forbidden",
      code: 403,
    });
    const refusing: SessionObserver = {
      isRequired: false,
      payload: { node: true, input: true },
      onData: (_stream, from, part) =>
        from === side && Buffer.from(part).toString() === "secret" ? refusal : undefined,
    };
    const { carried, client, node, step } = await observed(fresh(), [refusing]);
    if (isForward)
      await step(
        () => client.open(PORT),
        () => node.open(PORT),
      );
    const [peer, stream] =
      side === "client" ? [client, isForward ? "data" : "stdin"] : [node, isForward ? "data" : "stdout"];
    await step(
      () => peer.send(stream, "before"),
      () => peer.send(stream, "secret"),
      () => peer.send(stream, "after"),
    );
    await expect.poll(() => carried.reports).toMatchObject([{ cause: "refused", code: 403 }]);
    const reached = heardBy(side === "client" ? node : client);
    expect(reached).toContain("before");
    expect(reached).not.toContain("secret");
    expect(reached).not.toContain("after");
    if (!isForward) expect(client.received.error).toContain("not this");
  });

  it.each(["client", "node"] as const)("may hold what the %s sends, and release it", async (side) => {
    let session: ObservedSession | undefined;
    const holding: SessionObserver = {
      isRequired: false,
      onBegin: (it) => {
        session = it;
      },
    };
    const { client, node, step } = await observed(fresh(), [holding]);
    if (isForward)
      await step(
        () => client.open(PORT),
        () => node.open(PORT),
      );
    const input = () => client.send(isForward ? "data" : "stdin", "held");
    const output = () => node.send(isForward ? "data" : "stdout", "held");
    const release = session?.hold(side);
    const to = side === "client" ? node : client;
    await step(side === "client" ? input : output);
    expect(heardBy(to)).not.toContain("held");
    await step(() => release?.());
    expect(heardBy(to)).toContain("held");
  });

  it("that comes later sees what comes from then on, until it leaves", async () => {
    const { carried, client, node, step } = await observed(fresh(), []);
    const list = new EventList();
    if (isForward)
      await step(
        () => client.open(PORT),
        () => node.open(PORT),
      );
    const [input, output] = isForward ? ["data", "data"] : ["stdin", "stdout"];
    await step(
      () => client.send(input, "one"),
      () => node.send(output, "two"),
    );
    const leave = carried.life.observe(list);
    await step(
      () => client.send(input, "three"),
      () => node.send(output, "four"),
    );
    leave();
    await step(
      () => client.send(input, "five"),
      () => node.send(output, "six"),
    );
    carried.life.cut("shutdown", "bye");
    const isNamed = !isForward || carrier.name.includes("legacy");
    expect(list.events).toEqual([
      "begins",
      ...(isNamed ? [`client ${input}: three`, `node ${output}: four`] : []),
    ]);
  });

  it("changes no byte of what either side gets", async () => {
    const without = await exchange([]);
    const with_ = await exchange([new EventList()]);
    const unmasked = (socket: MemorySocket): number => socket.sentBytes.byteLength;
    expect([unmasked(with_.client), unmasked(with_.node)]).toEqual([
      unmasked(without.client),
      unmasked(without.node),
    ]);
  });
});
