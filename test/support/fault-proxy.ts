import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface FaultProxy {
  readonly port: number;
  /** Connections that were cut so far. */
  readonly cuts: number;
  /** What went through, both ways. */
  readonly bytes: number;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  /** Cuts a connection, without a word, when so many bytes went through it. */
  readonly cutAfterBytes: number;
  /** So many connections at most; the others live. */
  readonly maxCuts: number;
}

/** Carries TCP to a port on loopback, and cuts connections that carry much. */
export async function startFaultProxy(targetPort: number, options: FaultProxyOptions): Promise<FaultProxy> {
  const sockets = new Set<Socket>();
  let cuts = 0;
  let bytes = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ host: "127.0.0.1", port: targetPort, allowHalfOpen: true });
    let carried = 0;
    const cut = (): void => {
      client.resetAndDestroy();
      target.resetAndDestroy();
    };
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.destroy());
      from.once("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.on("data", (chunk) => {
        bytes += chunk.byteLength;
        carried += chunk.byteLength;
        if (carried > options.cutAfterBytes && cuts < options.maxCuts && !client.destroyed) {
          cuts += 1;
          cut();
        }
      });
      from.pipe(to);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts;
    },
    get bytes() {
      return bytes;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
