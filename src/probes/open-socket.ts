import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, TLSSocket } from "node:tls";
import { joinHostPort } from "../upstream/go-dial-error.ts";
import { brokenText, DeadlineError, ExchangeError, noteRoute } from "./exchange-error.ts";
import type { ProbeDeadline } from "./probe-deadline.ts";
import type { WireFacts } from "./probe-result.ts";

export interface SocketTarget {
  /** A name or an IP address, the latter without brackets. */
  readonly host: string;
  readonly port: number;
  /** The protocols that are offered in TLS; absent: plain TCP. The certificate is not verified. */
  readonly alpn?: readonly string[] | undefined;
}

/** Long enough for a slow address, so that a healthy one does not lose against an unreachable one. */
const ADDRESS_ATTEMPT_TIMEOUT_MS = 1_000;

/**
 * What all plain sockets are read into: a read is looked at, and what is kept of it copied, before the next one. Node would take 64 KiB
 * anew for each answer of some hundred bytes.
 */
const readMemory = Buffer.allocUnsafeSlow(64 * 1024);

/** Parsing the system's authorities takes milliseconds, and nothing is verified by them here. */
let secureContext: SecureContext | undefined;

/**
 * A connected socket that swallows its 'error' events and belongs to the caller. Never through a proxy: Node knows none. Chunks of its
 * 'data' events may be overwritten when the event returns.
 * Rejects with ExchangeError, or with DeadlineError; nothing stays open then.
 */
export function openSocket(target: SocketTarget, deadline: ProbeDeadline): Promise<Socket> {
  const { host, port, alpn } = target;
  if (deadline.reason !== undefined) return Promise.reject(new DeadlineError());
  // Node throws for such a port; Go's dialler has these words.
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    return Promise.reject(new ExchangeError(`dial tcp: address ${port}: invalid port`));
  }
  return new Promise((resolve, reject) => {
    const socket = connect(target);
    const settle = (): void => {
      forgetDeadline();
      socket.off("error", onError).off("close", onClose);
      socket.on("error", ignore);
    };
    const fail = (error: Error): void => {
      settle();
      socket.destroy();
      reject(error);
    };
    const onError = (error: Error): void =>
      fail(new ExchangeError(brokenText(error, socket, joinHostPort(host, port)), { cause: error }));
    const onClose = (): void => fail(new ExchangeError("EOF"));
    const forgetDeadline = deadline.onOver(() => fail(new DeadlineError()));
    socket.on("error", onError).on("close", onClose);
    // A handshake may break too, and then names both ends.
    if (alpn !== undefined) socket.once("connect", () => noteRoute(socket, joinHostPort(host, port)));
    socket.once(alpn === undefined ? "connect" : "secureConnect", () => {
      settle();
      resolve(socket);
    });
  });
}

function connect({ host, port, alpn }: SocketTarget): Socket {
  const tcp = {
    host,
    port,
    noDelay: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_TIMEOUT_MS,
  };
  if (alpn === undefined) {
    const socket: Socket = connectTcp({
      ...tcp,
      onread: {
        buffer: readMemory,
        callback: (bytes, memory) => {
          socket.emit("data", memory.subarray(0, bytes));
          return true;
        },
      },
    });
    return socket;
  }
  secureContext ??= createSecureContext({ minVersion: "TLSv1.2", ca: [] });
  return connectTls({
    ...tcp,
    secureContext,
    rejectUnauthorized: false,
    ALPNProtocols: [...alpn],
    ...(isIP(host) === 0 && host !== "" ? { servername: host } : {}),
  });
}

/** What a TLS connection shows of its peer. */
export function noteCertificate(socket: Socket, wire: WireFacts): void {
  if (!(socket instanceof TLSSocket)) return;
  const { subject, valid_to } = socket.getPeerCertificate();
  if (subject === undefined) return;
  const names = Object.entries(subject).map(([name, value]) => `${name}=${String(value)}`);
  wire.certificate = `${names.join(", ") || "(no subject)"}, valid until ${valid_to}`;
}

function ignore(): void {}
