import { isIPv6, type Socket } from "node:net";

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
