import type { Socket } from "node:net";
import { goDialErrorText, joinHostPort } from "../upstream/go-dial-error.ts";

/** A connection or an exchange failed; the message is worded as Go words it, because the kubelet's Events quote it. */
export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  /** A new connection may well be answered: Go's HTTP/2 client tries again by itself. */
  readonly isRetryable: boolean;

  constructor(message: string, options: ErrorOptions & { isRetryable?: boolean } = {}) {
    super(message, options);
    this.isRetryable = options.isRetryable ?? false;
  }
}

/** The time was over first. */
export class DeadlineError extends Error {
  override readonly name = "DeadlineError";
}

/** `LOCAL->REMOTE` of a connection: a socket that broke no longer tells. */
const ROUTE = Symbol("route");
type RoutedSocket = Socket & { [ROUTE]?: string };

/** To be called once it is connected; `address` is what was dialled. */
export function noteRoute(socket: RoutedSocket, address: string): void {
  const local = joinHostPort(socket.localAddress ?? "", socket.localPort ?? 0);
  // A peer that has reset the connection by now has no address any more.
  const { remoteAddress, remotePort = 0 } = socket;
  socket[ROUTE] =
    `${local}->${remoteAddress === undefined ? address : joinHostPort(remoteAddress, remotePort)}`;
}

/**
 * What Go says when a socket breaks: `read tcp LOCAL->REMOTE: read: connection reset by peer` once it was connected, also where our
 * writing saw it first: Go's readers report. `address` is what was dialled.
 */
export function brokenText(error: Error, socket: Socket, address = ""): string {
  const { code, syscall } = error as NodeJS.ErrnoException;
  const route = (socket as RoutedSocket)[ROUTE];
  if (route === undefined || (syscall !== "read" && syscall !== "write")) {
    return goDialErrorText(error, address);
  }
  const isReset = code === "ECONNRESET" || code === "EPIPE";
  const reason = isReset ? "connection reset by peer" : (code ?? error.message).toLowerCase();
  return `read tcp ${route}: read: ${reason}`;
}
