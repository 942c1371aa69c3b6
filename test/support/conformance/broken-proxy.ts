import { once } from "node:events";
import { performServerHandshake } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import {
  type ConnectionOptions,
  connect as connectTls,
  createServer as createTlsServer,
  type TLSSocket,
} from "node:tls";
import { selfSignedPair } from "../gateway-files.ts";
import type { ByteFilter } from "./byte-filters.ts";

const PASS: ByteFilter = { push: (chunk, send) => send(chunk) };
/** The size of a masked PING or an unmasked PONG with little payload. */
const MAX_PING_BYTES = 30;

/** A request's or an answer's first line and header lines, without the empty line. */
export interface MessageHead {
  start: string;
  lines: [name: string, value: string][];
}

export interface ProxyDefect extends ProxyBehaviour {
  readonly id: string;
  /** What the proxy does wrong. */
  readonly what: string;
  /** The cases that must fail because of it, at least. */
  readonly namedBy: readonly string[];
}

export interface ProxyBehaviour {
  /** Changes the request's head. If it returns text, that is the proxy's own complete answer. */
  request?(head: MessageHead): string | undefined;
  /** Changes the answer's head. */
  response?(head: MessageHead, request: MessageHead): void;
  /** Filters what the server sends after a 101. */
  downstream?(request: MessageHead): ByteFilter;
  /** Filters what the client sends after a 101. */
  upstream?(request: MessageHead): ByteFilter;
  /** Filters the body of an answer that is not a 101. */
  body?(request: MessageHead): ByteFilter;
  /** A connection that has carried nothing for this long is ended. */
  readonly idleMs?: number;
  /** Only data counts as carried: PINGs and PONGs, which are short frames, do not. */
  readonly countsDataOnly?: boolean;
  /** A connection is ended this long after it began, whatever it carries. */
  readonly maxDurationMs?: number;
  /** The most upgraded connections at once; others are refused with 503. */
  readonly maxConnections?: number;
  /** The client's connection is reset, not closed, when the server's has ended. */
  readonly resetsAtEnd?: boolean;
  /** The server's connection stays open after the client has left. */
  readonly keepsServer?: boolean;
  /** The client's connection stays open after the server's has ended. */
  readonly keepsClient?: boolean;
  /**
   * If the client leaves more of the server's bytes than this unread, further bytes are dropped.
   */
  readonly maxBufferedBytes?: number;
  /** No session is read while the client of any session does not read. */
  readonly sharesBackpressure?: boolean;
  /** The proxy offers TLS with HTTP/2, allows extended CONNECT, and answers it with this status. */
  readonly http2Status?: number;
}

export interface BrokenProxy {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * A hop with one known defect in front of an HTTPS server on loopback. Without a defect it is a
 * plain hop.
 */
export async function startBrokenProxy(
  upstreamPort: number,
  behaviour: ProxyBehaviour,
): Promise<BrokenProxy> {
  const hop = new Hop(upstreamPort, behaviour);
  const { http2Status } = behaviour;
  const listener: Server =
    http2Status === undefined
      ? createServer({ allowHalfOpen: true }, (client) => hop.accept(client))
      : await http2Listener(http2Status, (client) => hop.accept(client));
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const scheme = http2Status === undefined ? "http" : "https";
  return {
    url: `${scheme}://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    close: async () => {
      hop.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}

async function http2Listener(status: number, onHttp1: (client: Socket) => void): Promise<Server> {
  const { cert, key } = await selfSignedPair("hop");
  return createTlsServer({ cert, key, ALPNProtocols: ["h2", "http/1.1"] }, (client: TLSSocket) => {
    if (client.alpnProtocol !== "h2") {
      onHttp1(client);
      return;
    }
    client.on("error", () => {});
    const session = performServerHandshake(client, { settings: { enableConnectProtocol: true } });
    session.on("error", () => {});
    session.on("stream", (stream) => stream.respond({ ":status": status }, { endStream: true }));
  });
}

class Hop {
  readonly #upstreamPort: number;
  readonly #behaviour: ProxyBehaviour;
  readonly #sockets = new Set<Socket>();
  readonly #blocked = new Set<Socket>();
  #upgraded = 0;

  constructor(upstreamPort: number, behaviour: ProxyBehaviour) {
    this.#upstreamPort = upstreamPort;
    this.#behaviour = behaviour;
  }

  accept(client: Socket): void {
    this.#serve(client).catch(() => client.destroy());
  }

  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {});
  }

  async #serve(client: Socket): Promise<void> {
    const behaviour = this.#behaviour;
    this.#track(client);
    const { head: request, rest } = await readHead(client);
    const ownAnswer = behaviour.request?.(request) ?? this.#admit(client, request);
    if (ownAnswer !== undefined) {
      client.end(ownAnswer);
      return;
    }
    const server = connectTls({
      port: this.#upstreamPort,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      allowHalfOpen: true,
    } as ConnectionOptions);
    this.#track(server);
    if (!behaviour.keepsServer) client.once("close", () => server.destroy());
    await once(server, "secureConnect");
    server.write(encodeHead(request));
    if (rest.byteLength > 0) server.write(rest);
    const { head: response, rest: first } = await readHead(server);
    const isSwitched = response.start.includes(" 101");
    behaviour.response?.(response, request);
    client.write(encodeHead(response));
    const down = isSwitched ? behaviour.downstream?.(request) : behaviour.body?.(request);
    const up = isSwitched ? behaviour.upstream?.(request) : undefined;
    watchTimes(behaviour, client, server);
    this.#carry(client, server, up ?? PASS, () => {
      if (!behaviour.keepsServer) server.end();
    });
    const takeFirst = this.#carry(server, client, down ?? PASS, () => {
      if (behaviour.resetsAtEnd) client.resetAndDestroy();
      else if (!behaviour.keepsClient) client.end();
    });
    if (!behaviour.keepsClient && !behaviour.resetsAtEnd) server.once("close", () => client.end());
    if (first.byteLength > 0) takeFirst(first);
  }

  /** The refusal of one connection too many; undefined if the connection is admitted. */
  #admit(client: Socket, request: MessageHead): string | undefined {
    if (headerOf(request, "upgrade") === undefined) return undefined;
    if (this.#upgraded >= (this.#behaviour.maxConnections ?? Number.POSITIVE_INFINITY))
      return refuse(503, "busy");
    this.#upgraded += 1;
    client.once("close", () => {
      this.#upgraded -= 1;
    });
    return undefined;
  }

  /** Returns a function that handles a chunk as if it had been read. */
  #carry(from: Socket, to: Socket, filter: ByteFilter, onEnd: () => void): (chunk: Buffer) => void {
    const { maxBufferedBytes, sharesBackpressure } = this.#behaviour;
    const send = (part: Uint8Array): void => {
      if (to.destroyed || to.writableEnded || part.byteLength === 0) return;
      if (maxBufferedBytes !== undefined) {
        if (to.writableLength < maxBufferedBytes) to.write(part);
        return;
      }
      if (to.write(part)) return;
      if (sharesBackpressure) this.#block(to);
      else {
        from.pause();
        to.once("drain", () => from.resume());
      }
    };
    const take = (chunk: Buffer): void => filter.push(chunk, send);
    from.on("data", take);
    from.once("end", () => {
      filter.end?.(send);
      onEnd();
    });
    if (this.#blocked.size === 0) from.resume();
    return take;
  }

  #block(socket: Socket): void {
    this.#blocked.add(socket);
    for (const other of this.#sockets) other.pause();
    const release = (): void => {
      if (!this.#blocked.delete(socket) || this.#blocked.size > 0) return;
      for (const other of this.#sockets) other.resume();
    };
    socket.once("drain", release).once("close", release);
  }
}

function watchTimes(
  { idleMs, countsDataOnly, maxDurationMs }: ProxyBehaviour,
  client: Socket,
  server: Socket,
): void {
  const cut = (): void => {
    client.destroy();
    server.destroy();
  };
  if (maxDurationMs !== undefined) {
    const timer = setTimeout(cut, maxDurationMs);
    client.once("close", () => clearTimeout(timer));
  }
  if (idleMs === undefined) return;
  const timer = setTimeout(cut, idleMs);
  for (const socket of [client, server]) {
    socket.on("data", (chunk) => {
      if (!countsDataOnly || chunk.byteLength > MAX_PING_BYTES) timer.refresh();
    });
  }
  client.once("close", () => clearTimeout(timer));
}

export function headerOf({ lines }: MessageHead, name: string): string | undefined {
  return lines.find(([line]) => line.toLowerCase() === name)?.[1];
}

/**
 * Removes every line with this name. Returns nothing, so that it can be the whole change of a
 * request.
 */
export function withoutHeader(head: MessageHead, name: string): undefined {
  head.lines = head.lines.filter(([line]) => line.toLowerCase() !== name);
}

export function refuse(status: number, text: string): string {
  return `HTTP/1.1 ${status} Refused\r\nContent-Type: text/plain\r\nContent-Length: ${text.length}\r\nConnection: close\r\n\r\n${text}`;
}

/** Reads to the end of a head, and then pauses the socket. */
function readHead(socket: Socket): Promise<{ head: MessageHead; rest: Buffer }> {
  return new Promise((resolve, reject) => {
    let read: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      read = Buffer.concat([read, chunk]);
      const end = read.indexOf("\r\n\r\n");
      if (end === -1) return;
      socket.off("data", onData).off("close", onClose).pause();
      const [start = "", ...lines] = read.subarray(0, end).toString("latin1").split("\r\n");
      const pairs = lines.map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      });
      resolve({ head: { start, lines: pairs }, rest: read.subarray(end + 4) });
    };
    const onClose = (): void => reject(new Error("closed before a head"));
    socket.on("data", onData).once("close", onClose).once("end", onClose);
    socket.resume();
  });
}

function encodeHead({ start, lines }: MessageHead): string {
  return `${[start, ...lines.map(([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`;
}
