import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface FaultProxy {
  readonly port: number;
  /** Connections that were cut so far. */
  readonly cuts: number;
  /** What went through, both ways. */
  readonly bytes: number;
  /** Connections that are open. */
  readonly connections: number;
  /** Where new connections go. */
  targetPort: number;
  /** While true, new connections are reset. */
  isRefusing: boolean;
  /** Every connection is cut at once. */
  cutAll(): void;
  /** From now on nothing moves on the connections that are open, and nobody is told: a cable that was pulled. */
  freeze(): void;
  close(): Promise<void>;
}

export interface FaultProxyOptions {
  /** Cuts a connection, without a word, when so many bytes went through it. */
  readonly cutAfterBytes: number;
  /** So many connections at most; the others live. */
  readonly maxCuts: number;
  /** How: both ends are reset unless said otherwise; or both get a proper FIN. */
  readonly cutBy?: "reset" | "fin" | undefined;
  /** What each read is cut into, in bytes; absent: as it comes. */
  readonly writeBytes?: number | undefined;
  /** How long each read is held back. */
  readonly delayMs?: number | undefined;
  /** Gets the beginning of each HTTP request. The text that it returns is the answer, not the target's. */
  readonly answer?: ((head: string) => string | undefined) | undefined;
}

/** How a chunk begins that is the beginning of a request. */
const REQUEST = /^(?:GET|HEAD|PUT|POST|DELETE) \//;

/** Carries TCP to a port on loopback, and cuts connections that carry much. */
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
    // Decided, and counted, when the byte is reached: a held-back cut must not be decided twice.
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
          // What the client still sends is read, so that a reset does not overtake the answer.
          client.removeAllListeners("data").resume();
          client.end(own);
          target.destroy();
          return;
        }
        // The last chunk goes through up to the byte at which the connection is cut.
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
