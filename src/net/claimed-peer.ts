import { isIPv6, type Socket } from "node:net";

interface Peer {
  readonly address: string;
  readonly port: number;
}

/** What Node's sockets ask for their peer. TLS over a socket asks the same object. Unchanged from Node 12 to 26. */
interface PeerHandle {
  getpeername(out: { address?: string; family?: string; port?: number }): number;
}

interface SocketInternals {
  readonly _handle: PeerHandle | null;
  _peername?: object | undefined;
}

/**
 * From now on the connection, and TLS that begins on it, has this peer. Throws where it would not: an address that is taken for the
 * client's must never be its proxy's.
 */
export function claimPeer(socket: Socket, { address, port }: Peer): void {
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
