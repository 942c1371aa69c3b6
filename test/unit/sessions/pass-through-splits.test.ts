import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultSpdyLimits } from "../../../protocols/spdy/index.ts";
import { OPCODE } from "../../../protocols/websocket/index.ts";
import { SessionObservers } from "../../../src/sessions/observers/session-observers.ts";
import { passThroughOf } from "../../../src/sessions/relayed-session.ts";
import type { StreamingRequest } from "../../../src/sessions/streaming-request.ts";
import { MemorySocket } from "../../support/carried-session.ts";
import { EventList } from "../../support/event-list.ts";
import { channelPeer, type Peer, plainPipe, spdyPeer, webSocketPipe } from "../../support/session-peers.ts";

const PORT = 8080;
const SUCCESS = '{"metadata":{},"status":"Success"}';
const LONG = "0123456789".repeat(30);

/** What one side pushes, whole. */
class Collected extends MemorySocket {
  readonly pushed: Buffer[] = [];
  override push(bytes: Buffer): boolean {
    this.pushed.push(bytes);
    return true;
  }
}

interface Session {
  readonly subresource: "exec" | "portforward";
  readonly transport: "spdy" | "websocket";
  readonly protocol: string;
  client(socket: MemorySocket): Peer;
  node(socket: MemorySocket): Peer;
}

const channels = (isBase64: boolean, isForward: boolean): Pick<Session, "client" | "node"> => {
  const opcode = isBase64 ? OPCODE.TEXT : OPCODE.BINARY;
  return {
    client: (socket) =>
      channelPeer(webSocketPipe(socket, "client", opcode), {
        isBase64,
        isForward,
        hasClose: !isBase64 && !isForward,
      }),
    node: (socket) =>
      channelPeer(webSocketPipe(socket, "server", opcode), { isBase64, isForward, isNode: true }),
  };
};
const COMMAND_STREAMS = ["error", "stdin", "stdout", "stderr"];

const sessions: Readonly<Record<string, Session>> = {
  "a WebSocket command": {
    subresource: "exec",
    transport: "websocket",
    protocol: "v5.channel.k8s.io",
    ...channels(false, false),
  },
  "a command in base64": {
    subresource: "exec",
    transport: "websocket",
    protocol: "v4.base64.channel.k8s.io",
    ...channels(true, false),
  },
  "a SPDY command": {
    subresource: "exec",
    transport: "spdy",
    protocol: "v4.channel.k8s.io",
    client: (socket) => spdyPeer(plainPipe(socket), "client", COMMAND_STREAMS),
    node: (socket) => spdyPeer(plainPipe(socket), "server"),
  },
  "a SPDY port-forward": {
    subresource: "portforward",
    transport: "spdy",
    protocol: "portforward.k8s.io",
    client: (socket) => spdyPeer(plainPipe(socket), "client"),
    node: (socket) => spdyPeer(plainPipe(socket), "server"),
  },
  "a legacy port-forward": {
    subresource: "portforward",
    transport: "websocket",
    protocol: "v4.channel.k8s.io",
    ...channels(false, true),
  },
};

/** The bytes of both sides of one exchange. */
function conversation({ subresource, client, node }: Session): { fromClient: Buffer; fromNode: Buffer } {
  const [clientSocket, nodeSocket] = [new Collected(), new Collected()];
  const [clientPeer, nodePeer] = [client(clientSocket), node(nodeSocket)];
  const isForward = subresource === "portforward";
  if (isForward) for (const peer of [clientPeer, nodePeer]) peer.open(PORT);
  const [input, output, error] = isForward ? ["data", "data", "error"] : ["stdin", "stdout", "error"];
  clientPeer.send(input, "hello ");
  clientPeer.send(input, LONG);
  clientPeer.finish(input);
  const fromClient = Buffer.concat(clientSocket.pushed);
  nodeSocket.sent.push(Buffer.from(fromClient));
  nodePeer.receive();
  nodePeer.send(output, LONG);
  nodePeer.send(output, "more");
  nodePeer.send(error, SUCCESS);
  for (const stream of [output, error]) nodePeer.finish(stream);
  nodePeer.leave();
  return { fromClient, fromNode: Buffer.concat(nodeSocket.pushed) };
}

function decoderOf({ subresource, transport, protocol }: Session, list: EventList) {
  const header = transport === "spdy" ? "X-Stream-Protocol-Version" : "Sec-WebSocket-Protocol";
  const offer = { transport } as StreamingRequest["offer"];
  const limits = { spdy: defaultSpdyLimits };
  const { ends, decoderFor } = passThroughOf(
    { offer, subresource, ports: [PORT] },
    [[header, protocol]],
    limits,
  );
  return { ends, decoder: decoderFor(new SessionObservers([ends, list])) };
}

/** All of the client's bytes, then all of the node's, in pieces of these lengths, again and again. */
function decode(session: Session, fromClient: Buffer, fromNode: Buffer, lengths: readonly number[]) {
  const list = new EventList();
  const { ends, decoder } = decoderOf(session, list);
  const passed: Buffer[] = [];
  const inPieces = (bytes: Buffer, take: (piece: Buffer) => void): void => {
    for (let at = 0, turn = 0; at < bytes.byteLength; turn++) {
      const length = lengths[turn % lengths.length] as number;
      take(Buffer.from(bytes.subarray(at, at + length)));
      at += length;
    }
  };
  inPieces(fromClient, (piece) => expect(decoder.fromClient(piece, () => {})).toBeUndefined());
  inPieces(
    fromNode,
    (piece) => void decoder.fromNode(piece, (bytes) => void passed.push(Buffer.from(bytes))),
  );
  return { events: list.events, passed: Buffer.concat(passed), end: ends.nodeEnd("the connection ended") };
}

const pieces = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });

describe.each(Object.entries(sessions))("%s that passes through", (_name, session) => {
  const { fromClient, fromNode } = conversation(session);
  const whole = decode(session, fromClient, fromNode, [1e6]);

  it("has its events", () => {
    const isForward = session.subresource === "portforward";
    expect(whole.events).toContain(`client ${isForward ? "data" : "stdin"}: hello ${LONG}`);
    expect(whole.events).toContain(`node ${isForward ? "data" : "stdout"}: ${LONG}more`);
    expect(whole.events).toContain(isForward ? `node error: ${SUCCESS}` : `node status: ${SUCCESS}`);
    expect(whole.end.cause).toBe("completed");
  });

  it("has the same events and the same end, wherever its bytes are cut", () => {
    fc.assert(
      fc.property(pieces, (lengths) => {
        const { events, end, passed } = decode(session, fromClient, fromNode, lengths);
        expect([events, end]).toEqual([whole.events, whole.end]);
        // A SPDY command's frames are cut at the ends of reads; everything else passes byte for byte.
        if (session.subresource !== "exec" || session.transport !== "spdy")
          expect(passed.equals(fromNode)).toBe(true);
      }),
      { numRuns: 60 },
    );
  });

  it("of other bytes throws nothing, and refuses nothing that no observer refuses", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.nat(300),
        pieces,
        (noise, at, lengths) => {
          const spoilt = Buffer.concat([fromClient.subarray(0, at), noise, fromClient.subarray(at)]);
          decode(session, spoilt, Buffer.concat([fromNode.subarray(0, at), noise]), lengths);
        },
      ),
      { numRuns: 100 },
    );
  });
});
