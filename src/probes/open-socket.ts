import { DeadlineError, ExchangeError } from "./exchange-error.ts";
import type { ProbeDeadline } from "./probe-deadline.ts";
import type { WireFacts } from "./probe-result.ts";
import { ProbeSocket, type SocketTarget } from "./probe-socket.ts";

/**
 * Returns a connected socket; the caller owns it and must call `hear` synchronously. Rejects with
 * ExchangeError or DeadlineError and then leaves nothing open.
 */
export function openSocket(target: SocketTarget, deadline: ProbeDeadline): Promise<ProbeSocket> {
  const { port } = target;
  if (deadline.reason !== undefined) return Promise.reject(new DeadlineError());
  // Node throws for such a port; the text is from Go's dialler.
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    return Promise.reject(new ExchangeError(`dial tcp: address ${port}: invalid port`));
  }
  return new Promise((resolve, reject) => {
    const fail = (error: Error): void => {
      forgetDeadline();
      socket.destroy();
      reject(error);
    };
    const socket = new ProbeSocket(target, {
      onOpen: () => {
        forgetDeadline();
        resolve(socket);
      },
      onData: () => {},
      onEnd: () => fail(new ExchangeError("EOF")),
      onError: (error) => fail(new ExchangeError(socket.textOf(error), { cause: error })),
    });
    const forgetDeadline = deadline.onOver(() => fail(new DeadlineError()));
  });
}

/** Notes the peer's TLS certificate. */
export function noteCertificate(socket: ProbeSocket, wire: WireFacts): void {
  const { certificate } = socket;
  if (certificate !== undefined) wire.certificate = certificate;
}
