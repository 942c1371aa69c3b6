import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** What a hostile server does with a request that it should answer with this JSON. */
export type Act = (socket: Socket, honest: string) => void;

/** Longer than the tested clients wait. */
const LATE_MS = 600;

export const OK = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
export const withLength = (body: string | Buffer, more = ""): Buffer =>
  Buffer.concat([
    Buffer.from(`${OK}${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n`),
    Buffer.from(body),
  ]);
export const slowly =
  (head: string, part: string): Act =>
  (socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write(part), 20);
    socket.on("close", () => clearInterval(timer));
  };
export const endlessly =
  (head: string, part: string): Act =>
  (socket) => {
    socket.write(head);
    const chunk = Buffer.from(part.repeat(Math.ceil(65_536 / part.length)));
    // Yields to other work of this process.
    const flood = (): void => {
      if (!socket.destroyed && socket.write(chunk)) setImmediate(flood);
    };
    socket.on("drain", flood);
    flood();
  };

/** None of these answers is well-formed. */
export const FAULTS: Record<string, Act> = {
  "a head byte by byte": slowly("HTTP/1.1 200 OK\r\nA: ", "a"),
  "a body byte by byte": slowly(`${OK}\r\n`, " "),
  "an endless body": endlessly(`${OK}\r\n`, " "),
  "endless chunks": endlessly(`${OK}Transfer-Encoding: chunked\r\n\r\n`, "1\r\n \r\n"),
  "endless headers": endlessly(OK, "A: b\r\n"),
  "endless trailers": endlessly(`${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n`, "A: b\r\n"),
  "interim answers without end": endlessly("", "HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n"),
  nothing: () => {},
  "half-close at once": (socket) => socket.end(),
  "half-close in the head": (socket) => socket.end("HTTP/1.1 200 O"),
  "half-close in the body": (socket, honest) => socket.end(withLength(honest).subarray(0, -1)),
  reset: (socket) => (socket instanceof TLSSocket ? socket.destroy() : socket.resetAndDestroy()),
  "a body shorter than its length": (socket, honest) => socket.write(withLength(honest).subarray(0, -1)),
  "a body longer than its length": (socket, honest) =>
    socket.end(`${OK}Content-Length: ${honest.length - 1}\r\n\r\n${honest}`),
  "a redirect": (socket) =>
    socket.end(
      "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.2:1/\r\nContent-Length: 0\r\n\r\n",
    ),
  HTML: (socket) => socket.end(withLength("<html>allowed: true</html>")),
  "bytes that are not UTF-8": (socket, honest) =>
    socket.end(
      withLength(
        Buffer.concat([Buffer.from(`${honest.slice(0, -1)},"a":"`), Buffer.from([0xff, 0x22, 0x7d])]),
      ),
    ),
  "gzip that was not asked for": (socket, honest) =>
    socket.end(withLength(honest, "Content-Encoding: gzip\r\n")),
  null: (socket) => socket.end(withLength("null")),
  "an array": (socket) => socket.end(withLength("[]")),
  "an answer after the deadline": (socket, honest) => {
    const timer = setTimeout(() => socket.end(withLength(honest)), LATE_MS);
    socket.on("close", () => clearTimeout(timer));
  },
};
