import { type ClientHttp2Session, connect } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { DeadlineError, ExchangeError } from "../exchange-error.ts";
import { noteCertificate, openSocket } from "../open-socket.ts";
import type { ProbeDeadline } from "../probe-deadline.ts";
import type { WireFacts } from "../probe-result.ts";

export interface GrpcTarget {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
}

export interface GrpcConnection {
  readonly session: ClientHttp2Session;
  readonly socket: Socket;
  /** Why the socket broke, once it has. */
  readonly error: () => Error | undefined;
}

/** gRPC's connection back-off: a second, then 1.6 times as long each time, give or take a fifth. */
const FIRST_BACKOFF_MS = 1_000;
const BACKOFF_FACTOR = 1.6;
const BACKOFF_JITTER = 0.2;

/**
 * Tries until the deadline, as grpc-go's blocking dial does: a refused connection, a wrong protocol and a missing certificate
 * all look the same to it. Connected means that the server's SETTINGS have come. Rejects with DeadlineError.
 */
export async function connectGrpc(
  target: GrpcTarget,
  deadline: ProbeDeadline,
  wire: WireFacts,
): Promise<GrpcConnection> {
  for (let backoffMs = FIRST_BACKOFF_MS; ; backoffMs *= BACKOFF_FACTOR) {
    const startMs = performance.now();
    try {
      return await connectOnce(target, deadline, wire);
    } catch (error) {
      if (!(error instanceof ExchangeError)) throw error;
    }
    const spreadMs = backoffMs * (1 + BACKOFF_JITTER * (2 * Math.random() - 1));
    await deadline.sleep(Math.max(0, startMs + spreadMs - performance.now()));
  }
}

async function connectOnce(
  { host, port, isTls }: GrpcTarget,
  deadline: ProbeDeadline,
  wire: WireFacts,
): Promise<GrpcConnection> {
  const socket = await openSocket({ host, port, alpn: isTls ? ["h2"] : undefined }, deadline);
  wire.protocol = "tcp";
  noteCertificate(socket, wire);
  if (socket instanceof TLSSocket && socket.alpnProtocol !== "h2") {
    socket.destroy();
    throw new ExchangeError("credentials: cannot check peer: missing selected ALPN property");
  }
  let broken: Error | undefined;
  socket.on("error", (error) => {
    broken = error;
  });
  const session = connect(`${isTls ? "https" : "http"}://probe`, {
    createConnection: () => socket,
    settings: { enablePush: false },
  });
  // Kept for good: a session that breaks later tells its stream.
  session.on("error", () => {});
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      forgetDeadline();
      session.off("remoteSettings", onSettings).off("close", onClose);
    };
    const onSettings = (): void => {
      settle();
      wire.protocol = isTls ? "h2" : "h2c";
      resolve({ session, socket, error: () => broken });
    };
    const fail = (error: Error): void => {
      settle();
      session.destroy();
      socket.destroy();
      reject(error);
    };
    const onClose = (): void => fail(new ExchangeError("error reading server preface: EOF"));
    const forgetDeadline = deadline.onOver(() => fail(new DeadlineError()));
    session.once("remoteSettings", onSettings).once("close", onClose);
  });
}
