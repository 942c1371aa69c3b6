import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface FaultProxy {
  readonly port: number;
  /** The number of connections that were cut so far. */
  readonly cuts: number;
  /** Bytes that were passed on, in both directions. */
  readonly bytes: number;
  /** The number of open connections. */
  readonly connections: number;
  /** The port to which new connections go. */
  targetPort: number;
  /** While true, new connections are reset. */
  isRefusing: boolean;
  /** Cuts every connection at once. */
  cutAll(): void;
  /**
   * From now on no bytes move on the open connections, and neither side is notified, as if a cable
   * had been pulled.
   */
  freeze(): void;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  /** Cuts a connection, without notice, after it has carried this many bytes. */
  readonly cutAfterBytes: number;
  /** The most connections that are cut; others live. */
  readonly maxCuts: number;
  /** How connections are cut. By default both ends are reset; with `fin` both get a proper FIN. */
  readonly cutBy?: "reset" | "fin" | undefined;
  /** The size of the pieces into which each read is cut; absent: unchanged. */
  readonly writeBytes?: number | undefined;
  /** How long each read is delayed. */
  readonly delayMs?: number | undefined;
  /**
   * Gets the beginning of each HTTP request. If it returns text, that is the answer instead of the
   * target's.
   */
  readonly answer?: ((head: string) => string | undefined) | undefined;
}

/** Matches a chunk that begins with a request. */
const REQUEST = /^(?:GET|HEAD|PUT|POST|DELETE) \//;

/** Carries TCP to a port on loopback, and cuts connections that have carried enough. */
export async function startFaultProxy(targetPort: number, options: FaultProxyOptions): Promise<FaultProxy> {
  const pairs = new Map<Socket, Socket>();
  const { cutBy = "reset", delayMs = 0 } = options;
  let cuts = 0;
  let bytes = 0;
  const cut = (client: Socket): void => {
    for (const socket of [client, pairs.get(client)]) {
      socket?.pause();
      if (cutBy === "reset") socket?.resetAndDestroy();
      else socket?.end(() => socket.destroy());
    }
  };
  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (proxy.isRefusing) {
      client.resetAndDestroy();
      return;
    }
    const target = connect({ host: "127.0.0.1", port: proxy.targetPort, allowHalfOpen: true, noDelay: true });
    client.setNoDelay(true);
    pairs.set(client, target);
    client.once("close", () => pairs.delete(client));
    let carried = 0;
    // The cut is decided and counted when the byte arrives: a delayed cut must not be decided
    // twice.
    let isCut = false;
    for (const [from, to] of [
      [client, target],
      [target, client],
    ] as const) {
      from.on("error", () => to.destroy());
      from.once("close", () => to.destroy());
      from.on("end", () => {
        later(() => to.end());
      });
      const write = (chunk: Uint8Array): void => {
        if (to.destroyed || to.writableEnded) return;
        const step = options.writeBytes ?? chunk.byteLength;
        for (let at = 0; at < chunk.byteLength; at += step) to.write(chunk.subarray(at, at + step));
        if (to.writableNeedDrain) {
          from.pause();
          to.once("drain", () => from.resume());
        }
      };
      from.on("data", (chunk) => {
        if (isCut) return;
        const head = from === client ? chunk.toString("latin1") : "";
        const own = REQUEST.test(head) ? options.answer?.(head) : undefined;
        if (own !== undefined) {
          isCut = true;
          // Reads what the client still sends, so that a reset does not overtake the answer.
          client.removeAllListeners("data").resume();
          client.end(own);
          target.destroy();
          return;
        }
        // The last chunk is passed on up to the byte at which the connection is cut.
        isCut = carried + chunk.byteLength > options.cutAfterBytes && cuts < options.maxCuts;
        if (isCut) cuts += 1;
        const part = isCut ? chunk.subarray(0, options.cutAfterBytes - carried) : chunk;
        bytes += part.byteLength;
        carried += part.byteLength;
        if (part.byteLength > 0) later(() => write(part));
        if (isCut) later(() => cut(client));
      });
    }
  });
  const later = (act: () => void): void => {
    if (delayMs > 0) setTimeout(act, delayMs);
    else act();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const proxy: FaultProxy = {
    targetPort,
    isRefusing: false,
    port: (server.address() as AddressInfo).port,
    get cuts() {
      return cuts;
    },
    get bytes() {
      return bytes;
    },
    get connections() {
      return pairs.size;
    },
    cutAll: () => {
      cuts += pairs.size;
      for (const client of [...pairs.keys()]) cut(client);
    },
    freeze: () => {
      for (const [client, target] of pairs) {
        for (const socket of [client, target]) {
          socket.removeAllListeners("data").removeAllListeners("end");
          socket.pause();
        }
      }
    },
    close: async () => {
      for (const [client, target] of pairs) {
        client.destroy();
        target.destroy();
      }
      server.close();
      await once(server, "close");
    },
  };
  return proxy;
}
