import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { ByteFilter } from "./byte-filters.ts";

/** A request's or an answer's first line and header lines, without the empty line. */
export interface MessageHead {
  start: string;
  lines: [name: string, value: string][];
}

export interface ProxyDefect extends ProxyBehaviour {
  readonly id: string;
  /** What the proxy does wrong. */
  readonly what: string;
  /** The cases that have to fail because of it, at least. */
  readonly namedBy: readonly string[];
}

export interface ProxyBehaviour {
  /** Changes the request's head; text instead is the proxy's own answer, whole. */
  request?(head: MessageHead): string | undefined;
  /** Changes the answer's head. */
  response?(head: MessageHead, request: MessageHead): void;
  /** Of what the server sends behind a 101. */
  downstream?(request: MessageHead): ByteFilter;
  /** Of what the client sends behind a 101. */
  upstream?(request: MessageHead): ByteFilter;
  /** Of the body of an answer that is not a 101. */
  body?(request: MessageHead): ByteFilter;
  /** A connection ends without anything having been carried for so long. */
  readonly idleMs?: number;
  /** A connection ends this long after it began, whatever it carries. */
  readonly maxDurationMs?: number;
  /** So many upgraded connections at once; others are refused with 503. */
  readonly maxConnections?: number;
  /** The client's connection is reset, not closed, when the server's has ended. */
  readonly resetsAtEnd?: boolean;
  /** The server's connection stays open when the client's has gone. */
  readonly keepsServer?: boolean;
  /** The client's connection stays open when the server's has ended. */
  readonly keepsClient?: boolean;
}

export interface BrokenProxy {
  readonly url: string;
  close(): Promise<void>;
}

/** A hop with one known defect in front of an HTTPS server on loopback; without one it is a plain hop. */
export async function startBrokenProxy(upstreamPort: number, defect: ProxyBehaviour): Promise<BrokenProxy> {
  const sockets = new Set<Socket>();
  let upgraded = 0;
  const track = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  };
  const serve = async (client: Socket): Promise<void> => {
    track(client);
    const { head: request, rest } = await readHead(client);
    const ownAnswer = defect.request?.(request);
    if (ownAnswer !== undefined) {
      client.end(ownAnswer);
      return;
    }
    const isUpgrade = request.lines.some(([name]) => name.toLowerCase() === "upgrade");
    if (isUpgrade && upgraded >= (defect.maxConnections ?? Number.POSITIVE_INFINITY)) {
      client.end("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    const server = connectTls({
      port: upstreamPort,
      host: "127.0.0.1",
      rejectUnauthorized: false,
      allowHalfOpen: true,
    } as object);
    track(server);
    if (isUpgrade) {
      upgraded += 1;
      client.once("close", () => {
        upgraded -= 1;
      });
    }
    if (!defect.keepsServer) client.once("close", () => server.destroy());
    await once(server, "secureConnect");
    server.write(encodeHead(request));
    if (rest.byteLength > 0) server.write(rest);
    const { head: response, rest: first } = await readHead(server);
    defect.response?.(response, request);
    client.write(encodeHead(response));
    const isSwitched = response.start.includes(" 101");
    const pass: ByteFilter = { push: (chunk, send) => send(chunk) };
    const down = isSwitched ? (defect.downstream?.(request) ?? pass) : (defect.body?.(request) ?? pass);
    const up = isSwitched ? (defect.upstream?.(request) ?? pass) : pass;
    watchTimes(defect, client, server);
    carry(client, server, up, () => server.end());
    carry(server, client, down, () => {
      if (defect.resetsAtEnd) client.resetAndDestroy();
      else if (!defect.keepsClient) client.end();
    });
    if (!defect.keepsClient && !defect.resetsAtEnd) server.once("close", () => client.end());
    down.push(first, (part) => void client.write(part));
  };
  const listener = createServer({ allowHalfOpen: true }, (client) => {
    serve(client).catch(() => client.destroy());
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      listener.close();
      await once(listener, "close");
    },
  };
}

function carry(from: Socket, to: Socket, filter: ByteFilter, onEnd: () => void): void {
  const send = (part: Uint8Array): void => {
    if (to.destroyed || to.writableEnded || part.byteLength === 0) return;
    if (!to.write(part)) {
      from.pause();
      to.once("drain", () => from.resume());
    }
  };
  from.on("data", (chunk: Buffer) => filter.push(chunk, send));
  from.once("end", () => {
    filter.end?.(send);
    onEnd();
  });
  from.resume();
}

function watchTimes(
  { idleMs, maxDurationMs }: Pick<ProxyDefect, "idleMs" | "maxDurationMs">,
  client: Socket,
  server: Socket,
): void {
  const cut = (): void => {
    client.destroy();
    server.destroy();
  };
  if (maxDurationMs !== undefined) {
    const timer = setTimeout(cut, maxDurationMs);
    client.once("close", () => clearTimeout(timer));
  }
  if (idleMs === undefined) return;
  const timer = setTimeout(cut, idleMs);
  for (const socket of [client, server]) socket.on("data", () => void timer.refresh());
  client.once("close", () => clearTimeout(timer));
}

/** Reads to the end of a head; the socket is paused afterwards. */
function readHead(socket: Socket): Promise<{ head: MessageHead; rest: Buffer }> {
  return new Promise((resolve, reject) => {
    let read: Buffer = Buffer.alloc(0);
    const onData = (chunk: Buffer): void => {
      read = Buffer.concat([read, chunk]);
      const end = read.indexOf("\r\n\r\n");
      if (end === -1) return;
      socket.off("data", onData).off("close", onClose).pause();
      const [start = "", ...lines] = read.subarray(0, end).toString("latin1").split("\r\n");
      const pairs = lines.map((line): [string, string] => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1).trim()];
      });
      resolve({ head: { start, lines: pairs }, rest: read.subarray(end + 4) });
    };
    const onClose = (): void => reject(new Error("closed before a head"));
    socket.on("data", onData).once("close", onClose).once("end", onClose);
    socket.resume();
  });
}

function encodeHead({ start, lines }: MessageHead): string {
  return `${[start, ...lines.map(([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`;
}
