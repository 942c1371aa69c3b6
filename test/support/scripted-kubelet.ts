import { createServer, type IncomingMessage, type Server } from "node:http";
import type { Duplex } from "node:stream";
import { SpdySession, type SpdyStream } from "../../protocols/spdy/index.ts";
import { closeServer, listen } from "./http/loopback.ts";

/**
 * One upgraded SPDY connection from the kubelet's side. Streams are named by `streamtype` (and
 * `requestid`).
 */
export interface KubeletSession {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly spdy: SpdySession;
  readonly streams: Map<string, SpdyStream>;
  /** Ids of our PINGs that came back: the peer has read everything sent before them. */
  readonly pongs: number[];
}

export interface KubeletScript {
  /** Answers with raw bytes instead of a 101, or continues if undefined. */
  refuse?(request: IncomingMessage): string | undefined;
  /** The protocol in the 101; absent: the first one offered. */
  protocol?: string;
  /** Never answers at all. */
  isSilent?: boolean;
  onStream?(name: string, stream: SpdyStream, session: KubeletSession): void;
  onData?(name: string, part: Uint8Array, fin: boolean, session: KubeletSession): void;
}

/**
 * A kubelet that a test scripts completely, over plain HTTP on loopback. Tests decide about
 * echoing, dying, stalling and refusing; this class only does the framing.
 */
export class ScriptedKubelet {
  readonly sessions: KubeletSession[] = [];
  readonly requests: IncomingMessage[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();

  constructor(script: KubeletScript) {
    this.#server = createServer((request, response) => {
      this.requests.push(request);
      response.end("ok");
    });
    this.#server.on("connection", (socket: Duplex) => {
      this.#sockets.add(socket);
      socket.on("error", () => {});
      socket.once("close", () => this.#sockets.delete(socket));
    });
    this.#server.on("upgrade", (request: IncomingMessage, socket: Duplex) =>
      this.#upgrade(request, socket, script),
    );
  }

  listen(): Promise<number> {
    return listen(this.#server);
  }

  get openSockets(): number {
    return this.#sockets.size;
  }

  close(): Promise<void> {
    return closeServer(this.#server, this.#sockets);
  }

  #upgrade(request: IncomingMessage, socket: Duplex, script: KubeletScript): void {
    this.requests.push(request);
    if (script.isSilent) return;
    const refusal = script.refuse?.(request);
    if (refusal !== undefined) {
      socket.end(refusal, "latin1");
      return;
    }
    const offered = String(request.headers["x-stream-protocol-version"] ?? "").split(",");
    const protocol = script.protocol ?? offered[0]?.trim() ?? "";
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
    );
    const streams = new Map<string, SpdyStream>();
    const spdy = new SpdySession("server", {
      send: (bytes) => {
        if (socket.writable) socket.write(bytes);
      },
      onPong: (id) => void session.pongs.push(id),
      onStream: (stream) => {
        const id = stream.headers.get("requestid");
        const name = `${stream.headers.get("streamtype")}${id === undefined ? "" : id}`;
        streams.set(name, stream);
        // The reply is sent when this function returns, and data must not overtake it.
        queueMicrotask(() => script.onStream?.(name, stream, session));
        return {
          onData: (part, fin) => script.onData?.(name, part, fin, session),
          onEnd: () => {},
        };
      },
    });
    const session: KubeletSession = { request, socket, spdy, streams, pongs: [] };
    this.sessions.push(session);
    socket.on("data", (chunk: Uint8Array) => spdy.receive(chunk));
    socket.on("end", () => spdy.receiveEnd());
  }
}

/**
 * Ends an exec as containerd does: output finished, status on the error stream, RST, GOAWAY,
 * half-close.
 */
export function endExec(session: KubeletSession, status: string): void {
  const { streams, spdy, socket } = session;
  for (const name of ["stdout", "stderr"]) streams.get(name)?.finish();
  streams.get("error")?.write(Buffer.from(status));
  for (const name of ["error", "stdin"]) streams.get(name)?.reset();
  spdy.goAway();
  socket.end();
}

export const SUCCESS = '{"metadata":{},"status":"Success"}';

/** Copies stdin to stdout, and succeeds at its end. */
export const CAT: KubeletScript = {
  onData: (name, part, fin, session) => {
    if (name !== "stdin") return;
    if (part.byteLength > 0) session.streams.get("stdout")?.write(Uint8Array.from(part));
    if (fin) endExec(session, SUCCESS);
  },
};
