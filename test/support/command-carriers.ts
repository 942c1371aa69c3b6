import { defaultSpdyLimits } from "../../protocols/spdy/index.ts";
import { defaultWebSocketLimits, OPCODE } from "../../protocols/websocket/index.ts";
import { CommandBridge } from "../../src/sessions/carriers/bridge/command-bridge.ts";
import { ChannelCommandClient } from "../../src/sessions/carriers/bridge/command-clients.ts";
import { Relay } from "../../src/sessions/carriers/relay.ts";
import { Translator } from "../../src/sessions/carriers/translator.ts";
import { passThroughOf } from "../../src/sessions/relayed-session.ts";
import type { StreamingSession } from "../../src/sessions/session.ts";
import type { StreamingRequest } from "../../src/sessions/streaming-request.ts";
import type { CarriedSession } from "./carried-session.ts";
import { channelPeer, type Peer, plainPipe, spdyPeer, webSocketPipe } from "./session-peers.ts";

const NOTHING = new Uint8Array(0);
const COMMAND_STREAMS = ["error", "stdin", "stdout"];
const requested = { stdin: true, stdout: true, stderr: false, tty: false };
const webSocketLimits = defaultWebSocketLimits;

/** A command on a carrier, with both peers. */
export interface CarriedCommand {
  readonly carried: CarriedSession;
  readonly session: StreamingSession;
  readonly client: Peer;
  readonly node: Peer;
}

export type Begin = (carried: CarriedSession) => CarriedCommand;

/** WebSocket or SPDY from end to end. */
export function passing(transport: "websocket" | "spdy", protocol: string, isTerminal = false): Begin {
  return (carried) => {
    const { client, node, life } = carried;
    const header = transport === "spdy" ? "X-Stream-Protocol-Version" : "Sec-WebSocket-Protocol";
    const { decoderFor, ...rest } = passThroughOf(
      { offer: { transport } as StreamingRequest["offer"], subresource: "exec", ports: [] },
      [[header, protocol]],
      { spdy: defaultSpdyLimits },
    );
    life.observers.add(rest.ends, life);
    const session = carried.carry(
      () =>
        new Relay({ socket: client, head: NOTHING }, { socket: node, head: NOTHING }, life, {
          decoder: decoderFor(life.observers),
          ...rest,
          isTerminal,
        }),
    );
    if (transport === "spdy") {
      const clientPeer = spdyPeer(plainPipe(client), "client", COMMAND_STREAMS);
      return { carried, session, client: clientPeer, node: spdyPeer(plainPipe(node), "server") };
    }
    const isBase64 = protocol.includes("base64");
    const opcode = isBase64 ? OPCODE.TEXT : OPCODE.BINARY;
    const hasClose = protocol.startsWith("v5");
    return {
      carried,
      session,
      client: channelPeer(webSocketPipe(client, "client", opcode), { isBase64, hasClose }),
      node: channelPeer(webSocketPipe(node, "server", opcode), { isBase64, isNode: true }),
    };
  };
}

export const translated: Begin = (carried) => {
  const { client, node, life } = carried;
  const options = {
    requested,
    upstreamVersion: "v4.channel.k8s.io",
    webSocketLimits,
    spdyLimits: defaultSpdyLimits,
    maxQueuedBytes: 1 << 20,
  } as const;
  const [downstream, upstream] = [client, node].map((socket) => ({ socket, head: NOTHING }));
  const session = carried.carry(() => new Translator(downstream as never, upstream as never, options, life));
  return {
    carried,
    session,
    client: channelPeer(webSocketPipe(client, "client"), { hasClose: true }),
    node: spdyPeer(plainPipe(node), "server"),
  };
};

export const bridged: Begin = (carried) => {
  const { client, node, life } = carried;
  const version = "v4.channel.k8s.io";
  const session = carried.carry(
    () =>
      new CommandBridge(
        { socket: client, head: NOTHING },
        { socket: node, head: NOTHING },
        {
          webSocketLimits,
          hasTerminal: false,
          clientOf: (handler) =>
            new ChannelCommandClient(client, handler, { version, requested, webSocketLimits }, life),
        },
        life,
      ),
  );
  return {
    carried,
    session,
    client: channelPeer(webSocketPipe(client, "client")),
    node: channelPeer(webSocketPipe(node, "server"), { isNode: true }),
  };
};

/** Every path that carries a command. */
export const carriers: Readonly<Record<string, Begin>> = {
  "WebSocket v5 that passes through": passing("websocket", "v5.channel.k8s.io"),
  "WebSocket v4 that passes through": passing("websocket", "v4.channel.k8s.io"),
  "WebSocket v1 that passes through": passing("websocket", "channel.k8s.io"),
  "base64 that passes through": passing("websocket", "v4.base64.channel.k8s.io"),
  "SPDY that passes through": passing("spdy", "v4.channel.k8s.io"),
  "a translated session": translated,
  "a bridged session": bridged,
};
