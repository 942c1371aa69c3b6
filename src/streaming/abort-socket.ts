import { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/**
 * Breaks a connection so that the peer sees it broken. `destroy` alone sends FIN over plain TCP, which looks like a proper
 * end; over TLS the missing close_notify tells.
 */
export function abortSocket(socket: Duplex): void {
  if (socket instanceof Socket && !(socket instanceof TLSSocket)) socket.resetAndDestroy();
  else socket.destroy();
}
