import { randomInt } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { onTestFinished } from "vitest";

/** A raw TCP upstream on loopback that records every connection it accepted. */
export interface RawUpstream {
  readonly port: number;
  readonly sockets: Socket[];
  /** Everything received on all connections, as latin1. */
  received(): string;
  close(): Promise<void>;
}

export async function listenRaw(onConnection: (socket: Socket) => void): Promise<RawUpstream> {
  const sockets: Socket[] = [];
  let received = "";
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
    });
    onConnection(socket);
  });
  const port = await listen(server);
  return { port, sockets, received: () => received, close: () => closeServer(server, sockets) };
}

/** Writes the text once the request head has been received. */
export function answering(...parts: readonly (string | Buffer)[]): (socket: Socket) => void {
  return (socket) => {
    afterHead(socket, () => {
      for (const part of parts) socket.write(typeof part === "string" ? Buffer.from(part, "latin1") : part);
    });
  };
}

export function afterHead(socket: Socket, action: (received: Buffer) => void): void {
  let received = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    received = Buffer.concat([received, chunk]);
    if (!received.includes("\r\n\r\n")) return;
    socket.off("data", onData);
    action(received);
  };
  socket.on("data", onData);
}

/** Passes connections to `accept` until the test ends. Resolves with the port. */
export function acceptUntilEnd(accept: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    accept(socket);
  });
  onTestFinished(() => closeServer(server, sockets));
  return listen(server);
}

export async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/**
 * Linux assigns ephemeral ports from 32768 on, so no other program is assigned a lower port before
 * ours is opened.
 */
const [FIRST_PORT, LAST_PORT] = [20_000, 30_000];

/**
 * Distinct ports on which nothing listens, at any address. For programs that do not accept port 0.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listenBelowEphemeral));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => closeServer(server, [])));
  return ports;
}

async function listenBelowEphemeral(): Promise<Server> {
  for (;;) {
    const server = createServer().listen(randomInt(FIRST_PORT, LAST_PORT), "0.0.0.0");
    try {
      await once(server, "listening");
      return server;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    }
  }
}

export async function closeServer(server: Server, sockets: Iterable<Duplex>): Promise<void> {
  for (const socket of sockets) socket.destroy();
  if (!server.listening) return;
  server.close();
  await once(server, "close");
}

export async function openClient(port: number): Promise<Socket> {
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Resolves when nothing listens on the port any more. */
export async function untilRefused(port: number): Promise<void> {
  let outcome: unknown;
  while (outcome !== "ECONNREFUSED") {
    const client = connect(port, "127.0.0.1");
    outcome = await once(client, "connect").catch((error: NodeJS.ErrnoException) => error.code);
    client.destroy();
  }
}

/** Resolves when the predicate is true; checks it after every turn of the event loop. */
export async function until(isTrue: () => boolean, what: string): Promise<void> {
  const deadlineMs = Date.now() + 30_000;
  while (!isTrue()) {
    if (Date.now() > deadlineMs) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** All bytes until the peer ends or closes, and whether the connection ended cleanly. */
export async function readToEnd(socket: Socket): Promise<{ text: string; isClean: boolean }> {
  const chunks: Buffer[] = [];
  let isClean = false;
  socket.on("data", (chunk) => chunks.push(chunk));
  socket.on("end", () => {
    isClean = true;
    socket.end();
  });
  if (!socket.destroyed) await new Promise((resolve) => socket.once("close", resolve));
  return { text: Buffer.concat(chunks).toString("latin1"), isClean: isClean && !socket.errored };
}

/**
 * The number of open TCP sockets of this process, client and server ends on loopback. For leak
 * checks.
 */
export function openSocketCount(): number {
  return process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap" || kind === "TLSWrap")
    .length;
}
