import { once } from "node:events";
import { createServer as createHttp1 } from "node:http";
import { createServer as createHttp2 } from "node:http2";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { Chance, seededBytes } from "./seeded.ts";

export interface Backend {
  readonly port: number;
  /** Ends every connection, as a backend does with idle ones. */
  endConnections(): void;
  close(): Promise<void>;
}

/** Answers `/SEED/LENGTH` with that many bytes of that seed. */
export async function startSeededBackend(protocol: "h1" | "h2c"): Promise<Backend> {
  const bodyOf = (url: string | undefined): Buffer => {
    const [, seed, length] = (url ?? "").split("/").map(Number);
    return seededBytes(seed ?? 0, length ?? 0);
  };
  const server =
    protocol === "h1"
      ? createHttp1((request, response) => {
          request.resume();
          response.end(bodyOf(request.url));
        })
      : createHttp2((request, response) => {
          request.resume();
          response.end(bodyOf(request.url));
        });
  return listening(server as unknown as Server);
}

/** Answers every request with something that a sane server would not send, or not in this way. Bodies hold `x` alone. */
export async function startMisbehavingBackend(seed: number): Promise<Backend> {
  const chance = new Chance(seed);
  const body = (length: number): string => "x".repeat(length);
  const whole = (head: string, length = 20): string =>
    `${head}Content-Length: ${length}\r\n\r\n${body(length)}`;
  const answers: readonly ((socket: Socket) => void)[] = [
    (socket) =>
      socket.write(
        whole("HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Type: c/d\r\nETag: 1\r\nETag: 2\r\n"),
      ),
    (socket) => socket.write(whole("HTTP/1.1 999 Odd\r\n")),
    (socket) => socket.write(whole("HTTP/1.1 600 Odd\r\nHTTP2-Settings: AAAA\r\n")),
    (socket) =>
      socket.write(
        `HTTP/1.1 103 Early Hints\r\nConnection: x\r\nTe: y\r\n\r\n${whole("HTTP/1.1 200 OK\r\n")}`,
      ),
    (socket) =>
      socket.write(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: connection\r\n\r\n3\r\nxxx\r\n0\r\nConnection: x\r\n\r\n",
      ),
    (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nxxx"),
    (socket) => socket.end("no HTTP at all\r\n\r\n"),
    (socket) => socket.write(`HTTP/1.1 200 OK\r\nX-Long: ${body(200_000)}\r\n\r\n`),
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
      socket.write(body(50_000), () => socket.resetAndDestroy());
    },
    (socket) => socket.resetAndDestroy(),
    (socket) => socket.write(`${whole("HTTP/1.1 200 OK\r\n")}${whole("HTTP/1.1 200 Unasked\r\n")}`),
    (socket) => socket.end(`HTTP/1.0 200 OK\r\n\r\n${body(10_000)}`),
    (socket) => socket.write(whole("HTTP/1.1 204 No Content\r\n")),
    (socket) =>
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nxxx"),
  ];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () => chance.oneOf(answers)(socket));
  });
  return listening(server);
}

async function listening(server: Server): Promise<Backend> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => sockets.delete(socket));
  });
  const endConnections = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    endConnections,
    async close() {
      endConnections();
      server.close();
      await once(server, "close");
    },
  };
}
