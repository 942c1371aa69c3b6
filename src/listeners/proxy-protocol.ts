import { isIPv6, type Server, type Socket } from "node:net";
import { AddressList, canonicalAddress } from "@sluice/client/internal/config/address-list";
import { contain, containEvents } from "@sluice/client/internal/observability/faults";
import { ProtocolError } from "@sluice/protocols";
import { ByteCollector } from "@sluice/protocols/bytes";
import { beginsProxyHeader, decodeProxyHeader, type ProxyHeader } from "@sluice/protocols/proxy-protocol";
import type { Logger } from "../observability/logger.ts";

/**
 * Why a connection was refused because of its first bytes. Labels of
 * `sluice_connections_refused_total`.
 */
export type ProxyHeaderRefusal =
  | "proxy-header-untrusted"
  | "proxy-header-missing"
  | "proxy-header-malformed"
  | "proxy-header-late";

interface AdmittingOptions {
  /**
   * Addresses and networks whose connections must begin with a header; others may not. Absent: headers
   * are not parsed.
   */
  readonly from: readonly string[] | undefined;
  /** The time for the header to arrive, or for the first bytes of a connection without one. */
  readonly timeoutMs: number;
  /** Counts a connection by its client's address; false: the connection has been closed. */
  admit(socket: Socket): boolean;
  onRefused(reason: ProxyHeaderRefusal): void;
  readonly logger: Pick<Logger, "warn">;
}

/**
 * The pause between log lines about refused PROXY protocol headers, for each port and reason. Past
 * it the next refusal is logged.
 */
const REFUSAL_LOG_INTERVAL_MS = 60_000;

const PROBLEMS: Readonly<Record<ProxyHeaderRefusal, string>> = {
  "proxy-header-untrusted": "proxyProtocol.from does not have this address, and it sent a header",
  "proxy-header-missing": "proxyProtocol.from has this address, and it sent no header",
  "proxy-header-malformed": "the header is not valid",
  "proxy-header-late": "no header came in time",
};

type Judged = { readonly header: ProxyHeader | undefined } | { readonly refusal: ProxyHeaderRefusal };

/**
 * Makes a server serve admitted connections. With `from`, the server's existing listeners get them
 * without the header, with the client as the peer, unread and paused.
 */
export function admitConnections(server: Server, options: AdmittingOptions): void {
  const { from, timeoutMs, admit } = options;
  if (from === undefined) {
    server.on("connection", admit);
    return;
  }
  const proxies = new AddressList(from);
  const serve = server.listeners("connection") as ((socket: Socket) => void)[];
  server.removeAllListeners("connection");
  const refuse = refusalsOf(options);
  server.on("connection", (socket: Socket) => {
    const address = canonicalAddress(socket.remoteAddress ?? "");
    const isProxy = proxies.has(address);
    // A proxy's connections count against its clients.
    if (!isProxy && !admit(socket)) return;
    judgeByFirstBytes<Judged>(socket, {
      timeoutMs,
      judge: isProxy ? headerOf : noHeaderOf,
      consumes: (judged) => ("header" in judged ? (judged.header?.byteLength ?? 0) : 0),
      onLate: () => isProxy && refuse(socket, address, "proxy-header-late"),
      decide: (judged) => {
        if ("refusal" in judged) return refuse(socket, address, judged.refusal);
        const begin = (): void => {
          const peer = judged.header?.peer;
          if (peer !== undefined)
            claimPeer(socket, { address: canonicalAddress(peer.address), port: peer.port });
          if (isProxy && !admit(socket)) return;
          for (const listener of serve) listener.call(server, socket);
        };
        contain("listener", begin, () => socket.destroy());
      },
    });
  });
}

function headerOf(seen: Buffer): Judged | undefined {
  if (beginsProxyHeader(seen) === false) return { refusal: "proxy-header-missing" };
  try {
    const header = decodeProxyHeader(seen);
    return header && { header };
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
    return { refusal: "proxy-header-malformed" };
  }
}

function noHeaderOf(seen: Buffer): Judged | undefined {
  const begins = beginsProxyHeader(seen);
  if (begins === undefined) return undefined;
  return begins ? { refusal: "proxy-header-untrusted" } : { header: undefined };
}

function refusalsOf({ onRefused, logger }: AdmittingOptions) {
  const loggedMs = new Map<ProxyHeaderRefusal, number>();
  return (socket: Socket, remoteAddress: string, reason: ProxyHeaderRefusal): void => {
    onRefused(reason);
    socket.destroy();
    const nowMs = performance.now();
    if (nowMs - (loggedMs.get(reason) ?? Number.NEGATIVE_INFINITY) < REFUSAL_LOG_INTERVAL_MS) return;
    loggedMs.set(reason, nowMs);
    logger.warn(
      { remoteAddress, reason, problem: PROBLEMS[reason] },
      "a connection was refused for its PROXY protocol header",
    );
  };
}

/** The addresses whose connections begin with a header, by the listener's name in logs. */
export function proxiesByListener(
  ports: readonly { readonly name: string; readonly proxies: readonly string[] | undefined }[],
): ReadonlyMap<string, AddressList> {
  return new Map(
    ports.flatMap(({ name, proxies }) => (proxies === undefined ? [] : [[name, new AddressList(proxies)]])),
  );
}

interface FirstBytesJudge<Answer> {
  /** How long a connection may stay undecided before it is closed. */
  readonly timeoutMs: number;
  /** Decides from all bytes so far; `newest` is the latest part. Undefined: more bytes are needed. */
  judge(seen: Buffer, newest: Buffer): Answer | undefined;
  /** Receives the answer. The socket is paused, with all bytes unread except those that `consumes` counts. */
  decide(answer: Answer): void;
  /** How many bytes to remove before the next reader. Absent: none. */
  consumes?(answer: Answer): number;
  onLate?(): void;
}

/** Reads a new connection until `judge` answers. Closes connections that end first or are late. */
export function judgeByFirstBytes<Answer>(socket: Socket, judging: FirstBytesJudge<Answer>): void {
  containEvents(socket, "listener", () => socket.destroy());
  const collector = new ByteCollector();
  const timer = setTimeout(() => {
    judging.onLate?.();
    socket.destroy();
  }, judging.timeoutMs);
  const done = (): void => {
    clearTimeout(timer);
    socket.off("data", onData).off("end", onEnd).off("close", onEnd);
  };
  const onEnd = (): void => {
    done();
    socket.destroy();
  };
  const onData = (chunk: Buffer): void => {
    collector.append(chunk);
    const { buffer, byteOffset, byteLength } = collector.bytes;
    const seen = Buffer.from(buffer, byteOffset, byteLength);
    const answer = judging.judge(seen, chunk);
    if (answer === undefined) return;
    done();
    socket.pause();
    const unread = seen.subarray(judging.consumes?.(answer) ?? 0);
    if (unread.byteLength > 0) socket.unshift(unread);
    judging.decide(answer);
  };
  socket.on("data", onData).on("end", onEnd).on("close", onEnd);
  socket.on("error", () => socket.destroy());
  // An earlier judge leaves the socket paused.
  if (socket.isPaused()) socket.resume();
}

interface Peer {
  readonly address: string;
  readonly port: number;
}

/**
 * The handle that Node's sockets, and TLS over them, ask for the peer's address. Unchanged from Node
 * 12 to 26.
 */
interface PeerHandle {
  getpeername(out: { address?: string; family?: string; port?: number }): number;
}

interface SocketInternals {
  readonly _handle: PeerHandle | null;
  _peername?: object | undefined;
}

/**
 * From now on the connection, and TLS that starts on it, reports this peer. Throws if it would not,
 * since a proxy's address must never pass for the client's.
 */
function claimPeer(socket: Socket, { address, port }: Peer): void {
  const internals = socket as unknown as SocketInternals;
  const { _handle: handle } = internals;
  if (handle !== null) {
    handle.getpeername = (out) => {
      Object.assign(out, { address, port, family: isIPv6(address) ? "IPv6" : "IPv4" });
      return 0;
    };
    internals._peername = undefined;
  }
  if (socket.remoteAddress !== address) throw new Error("the peer of a connection could not be replaced");
}
