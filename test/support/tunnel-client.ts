import { randomBytes } from "node:crypto";
import { type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import { SpdySession, type SpdyStream, type StreamEnd } from "../../protocols/spdy/index.ts";

export const TUNNEL_PROTOCOL = "SPDY/3.1+portforward.k8s.io";

/** One SPDY stream inside the tunnel, and what was received on it. */
export interface TunnelStream {
  readonly stream: SpdyStream;
  /** What came so far. */
  text(): Buffer;
  readonly ended: Promise<"finished" | StreamEnd>;
}

export interface TunnelRefusal {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface TunnelClientOptions {
  /** Subprotocols to offer; by default the shipped name. */
  readonly protocols?: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Default `web`. */
  readonly pod?: string;
  /** False: received bytes are only collected, not read as SPDY. */
  readonly speaksSpdy?: boolean;
}

/**
 * A port-forward client like client-go's: SPDY frames, each write one binary message, over the
 * WebSocket of `ws`.
 */
export class TunnelClient {
  readonly socket: WebSocket;
  /** The subprotocol that the server chose. */
  readonly protocol: string;
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly messages: Buffer[] = [];
  readonly spdy: SpdySession;
  pings = 0;

  /** Over a connection, or an HTTP/2 stream, that has already switched to `protocol`. */
  constructor(protocol: string, socket: Duplex, head: Buffer, speaksSpdy: boolean) {
    this.protocol = protocol;
    this.socket = clientSocketOver(socket, head);
    this.spdy = new SpdySession("client", {
      // `ws` masks its input in place.
      send: (bytes) => this.socket.send(Buffer.from(bytes)),
      onStream: () => 3,
    });
    this.socket.on("message", (data: Buffer) => {
      this.messages.push(data);
      if (speaksSpdy) this.spdy.receive(data);
    });
    this.socket.on("ping", () => {
      this.pings += 1;
    });
    this.closed = new Promise((resolve) => {
      this.socket.once("close", (code, reason) => resolve({ code, reason: reason.toString() }));
    });
    this.socket.on("error", () => {});
  }

  /** Rejects if the answer is not a 101. */
  static async open(authority: string, options: TunnelClientOptions = {}): Promise<TunnelClient> {
    const answer = await ask(authority, options);
    if ("status" in answer) throw new Error(`refused with ${answer.status}: ${answer.body}`);
    const { response, socket, head } = answer;
    const protocol = response.headers["sec-websocket-protocol"] ?? "";
    return new TunnelClient(protocol, socket, head, options.speaksSpdy ?? false);
  }

  /** Rejects if the answer is a 101. */
  static async refused(authority: string, options: TunnelClientOptions = {}): Promise<TunnelRefusal> {
    const answer = await ask(authority, options);
    if ("status" in answer) return answer;
    answer.socket.destroy();
    throw new Error("not refused");
  }

  /** All received bytes, without message boundaries. */
  bytes(): Buffer {
    return Buffer.concat(this.messages);
  }

  /** Opens one of the two streams of a forwarded connection. */
  openStream(streamType: "error" | "data", requestId: number, port = 80): TunnelStream {
    const parts: Buffer[] = [];
    let resolve: (end: "finished" | StreamEnd) => void = () => {};
    const ended = new Promise<"finished" | StreamEnd>((settle) => {
      resolve = settle;
    });
    const headers: [string, string][] = [
      ["streamtype", streamType],
      ["port", String(port)],
      ["requestid", String(requestId)],
    ];
    const stream = this.spdy.openStream(headers, {
      onData: (part, fin) => {
        parts.push(Buffer.from(part));
        if (fin) resolve("finished");
      },
      onEnd: resolve,
    });
    return { stream, text: () => Buffer.concat(parts), ended };
  }
}

type Answer = TunnelRefusal | { response: IncomingMessage; socket: Duplex; head: Buffer };

function ask(
  authority: string,
  { protocols = [TUNNEL_PROTOCOL], headers, pod = "web" }: TunnelClientOptions,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const upgrade = request(`http://${authority}/api/v1/namespaces/default/pods/${pod}/portforward`, {
      headers: {
        Connection: "Upgrade",
        Upgrade: "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
        ...(protocols.length > 0 && { "Sec-WebSocket-Protocol": protocols.join(", ") }),
        ...headers,
      },
    });
    upgrade.on("error", reject);
    upgrade.on("upgrade", (response, socket, head) => resolve({ response, socket, head }));
    upgrade.on("response", (response) => {
      let body = "";
      response.on("data", (chunk: Buffer) => {
        body += chunk.toString("latin1");
      });
      const { statusCode: status = 0, headers: received } = response;
      response.on("close", () => resolve({ status, headers: received, body }));
    });
    upgrade.end();
  });
}

/**
 * The client side of `ws` over a connection that is already upgraded. Its constructor refuses to
 * offer the tunnel's name, whose slash is not a token character of RFC 9110, so only the handshake
 * is ours.
 */
export function clientSocketOver(socket: Duplex, head: Buffer): WebSocket {
  const Bare = WebSocket as unknown as new (
    address: null,
    protocols: undefined,
    options: object,
  ) => WebSocket & { _isServer: boolean; setSocket(socket: Duplex, head: Buffer, options: object): void };
  const webSocket = new Bare(null, undefined, { autoPong: true, closeTimeout: 30_000 });
  webSocket._isServer = false;
  webSocket.setSocket(socket, head, {
    allowSynchronousEvents: true,
    maxPayload: 0,
    skipUTF8Validation: false,
  });
  return webSocket;
}
