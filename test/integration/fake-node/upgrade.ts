import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import {
  createFakeNode,
  type FakeNode,
  type FakeNodeOptions,
} from "../../../packages/lab/src/fake-node/fake-node.ts";
import { SpdySession, type SpdyStream } from "../../../protocols/spdy/index.ts";
import { MAX_FRAME_HEADER_BYTES, writeMaskedFrameHeader } from "../../../protocols/websocket/index.ts";

export const POD = {
  namespace: "default",
  name: "web",
  uid: "5a1f",
  containers: [{ name: "main" }],
  ports: new Map<number, number>(),
};

/** A plain HTTP node with one pod `web`. */
export function startNode(options: Partial<FakeNodeOptions> = {}): Promise<FakeNode> {
  return createFakeNode({ name: "node", declaresWebSockets: true, pods: [POD], ...options });
}

export function execPath(command: readonly string[], flags: string, container = "main"): string {
  const query = command.map((word) => `command=${encodeURIComponent(word)}`).join("&");
  return `/exec/default/web/${container}?${flags}&${query}`;
}

export interface Upgraded {
  readonly socket: Socket;
  readonly head: Buffer;
  readonly response: IncomingMessage;
}

/** Opens a SPDY upgrade; rejects with the status and body of a refusal. */
export function spdyUpgrade(node: FakeNode, path: string, protocol: string): Promise<Upgraded> {
  return upgrade(node, "POST", path, { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": protocol });
}

/** The same for a WebSocket; `ws` takes no subprotocol with a slash in its name. */
export function webSocketUpgrade(node: FakeNode, path: string, subprotocol: string): Promise<Upgraded> {
  return upgrade(node, "GET", path, {
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": subprotocol,
  });
}

async function upgrade(
  { address: host, port }: FakeNode,
  method: string,
  path: string,
  headers: Record<string, string>,
): Promise<Upgraded> {
  const outgoing = request({ host, port, path, method, headers: { Connection: "Upgrade", ...headers } });
  outgoing.end();
  return Promise.race([
    once(outgoing, "upgrade").then(([response, socket, head]) => ({ response, socket, head })),
    once(outgoing, "response").then(async ([response]) => {
      const body = Buffer.concat(await (response as IncomingMessage).toArray()).toString();
      throw new Error(`${response.statusCode} ${body}`);
    }),
  ]);
}

/** A client's frame, masked with the key 0: the payload stays as it is. */
export function maskedFrame(opcode: number, payload: Uint8Array): Buffer {
  const frame = Buffer.alloc(MAX_FRAME_HEADER_BYTES + payload.length);
  const headerBytes = writeMaskedFrameHeader(frame, 0, opcode, payload.length, true, 0);
  frame.set(payload, headerBytes);
  return frame.subarray(0, headerBytes + payload.length);
}

/** Sends raw bytes and collects everything until the node ends the connection. */
export async function rawExchange(node: FakeNode, text: string): Promise<string> {
  const socket = connect(node.port, node.address);
  socket.end(text);
  return Buffer.concat(await socket.toArray()).toString("latin1");
}

/** What a stream of the client has received, and how it ended. */
export interface ClientStream {
  readonly stream: SpdyStream;
  readonly parts: Buffer[];
  end: "open" | "finished" | "reset" | "session-ended";
  readonly ended: Promise<void>;
}

/** A SPDY client made of our own session: opens streams and records what comes. */
export class SpdyClient {
  readonly socket: Socket;
  readonly session: SpdySession;
  readonly closed: Promise<unknown>;
  hasGoAway = false;

  constructor(socket: Socket, head: Uint8Array) {
    this.socket = socket;
    this.session = new SpdySession("client", {
      send: (bytes) => void socket.write(bytes),
      onStream: () => 3,
      onGoAway: () => {
        this.hasGoAway = true;
      },
    });
    socket.on("error", () => {});
    this.closed = once(socket, "close");
    socket.on("data", (chunk) => this.session.receive(chunk));
    socket.on("end", () => this.session.receiveEnd());
    if (head.length > 0) this.session.receive(head);
  }

  open(headers: Record<string, string>): ClientStream {
    const { promise, resolve } = withResolvers();
    const parts: Buffer[] = [];
    const client: { -readonly [Key in keyof ClientStream]: ClientStream[Key] } = {
      parts,
      end: "open",
      ended: promise,
      stream: this.session.openStream(Object.entries(headers), {
        onData(part, fin) {
          if (part.length > 0) parts.push(Buffer.from(part));
          if (!fin) return;
          client.end = "finished";
          resolve();
        },
        onEnd({ type }) {
          client.end = type;
          resolve();
        },
      }),
    };
    return client;
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

export const textOf = ({ parts }: { parts: readonly Buffer[] }): string => Buffer.concat(parts).toString();
