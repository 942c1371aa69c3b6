import type { AddressInfo } from "node:net";
import { createServer, type Server, type Socket } from "node:net";

type Behaviour = (socket: Socket) => void;

/** Acts once the client has sent anything. */
const onRequest =
  (act: Behaviour): Behaviour =>
  (socket) => {
    socket.once("data", () => {
      act(socket);
      socket.resume();
    });
  };

const answer = (text: string): Behaviour => onRequest((socket) => socket.end(text));

const trickle =
  (text: string): Behaviour =>
  (socket) => {
    const timer = setInterval(() => socket.write(text), 100);
    socket.on("close", () => clearInterval(timer));
  };

export function http2Frame(
  type: number,
  flags: number,
  streamId: number,
  payload: Buffer = Buffer.alloc(0),
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

export const SETTINGS = http2Frame(4, 0, 0);
/** `:status: 200` from HPACK's static table. */
const STATUS_200 = Buffer.from([0x88]);
/** The same, and `content-type: application/grpc`. */
const GRPC_HEAD = Buffer.concat([STATUS_200, Buffer.from([0x0f, 0x10, 16]), Buffer.from("application/grpc")]);

export function goaway(lastStreamId: number, code: number): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastStreamId, 0);
  payload.writeUInt32BE(code, 4);
  return http2Frame(7, 0, 0, payload);
}

function reset(code: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(code);
  return http2Frame(3, 0, 1, payload);
}

const PREFACE_BYTES = 24;

/** Speaks HTTP/2 until the client's request. */
export const onHttp2Request =
  (act: Behaviour): Behaviour =>
  (socket) => {
    socket.write(SETTINGS);
    let bytes = Buffer.alloc(0);
    let isDone = false;
    socket.on("data", (chunk) => {
      if (isDone) return;
      bytes = Buffer.concat([bytes, chunk]);
      for (let at = PREFACE_BYTES; bytes.length >= at + 9; at += 9 + bytes.readUIntBE(at, 3)) {
        if (bytes.length < at + 9 + bytes.readUIntBE(at, 3)) return;
        if (bytes[at + 3] !== 1) continue;
        isDone = true;
        act(socket);
        return;
      }
    });
  };

const answerHttp2 = (bytes: Buffer): Behaviour => onHttp2Request((socket) => socket.write(bytes));

const HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n";

/** Servers with faults that no web framework's test suite contains, keyed by the fault. */
export const MISBEHAVIOURS = {
  silent: (socket) => socket.resume(),
  "closes at once": onRequest((socket) => socket.end()),
  "resets at once": onRequest((socket) => socket.resetAndDestroy()),
  "answers garbage": answer("hello world\r\n\r\n"),
  "answers a byte at a time": trickle("H"),
  "sends its body a byte at a time": onRequest((socket) => {
    socket.write(HEAD);
    trickle("x")(socket);
  }),
  "ends its body early": answer(`${HEAD}abc`),
  "resets in its body": onRequest((socket) => {
    socket.write(`${HEAD}abc`, () => setTimeout(() => socket.resetAndDestroy(), 50));
  }),
  "sends a bad chunk": answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"),
  "has a length and chunks": answer(
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  ),
  "has two lengths": answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
  "ends in its head": answer("HTTP/1.1 200 OK\r\nContent-Le"),
  "sends a header without a colon": answer("HTTP/1.1 200 OK\r\nfoo bar\r\n\r\n"),
  "folds a header": answer("HTTP/1.1 200 OK\r\nContent-Length:\r\n \t 2 \r\nA: b\r\n\tc\r\n\r\nhi"),
  "folds its first header": answer("HTTP/1.1 200 OK\r\n Content-Length: 2\r\n\r\nhi"),
  "has a bare CR in a header": answer("HTTP/1.1 200 OK\r\nA: b\rC: d\r\nContent-Length: 2\r\n\r\nhi"),
  "has NUL in a header": answer("HTTP/1.1 200 OK\r\nA: b\0\r\nContent-Length: 2\r\n\r\nhi"),
  "has a space before a colon": answer("HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nhi"),
  "pads its status": answer("HTTP/1.1   200 OK\r\nContent-Length: 2\r\n\r\nhi"),
  "has a status below 100": answer("HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nhi"),
  "has an empty length": answer("HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nhi"),
  "has another coding": answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhi"),
  "has a coding in HTTP/1.0": answer(
    "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\nhi",
  ),
  "ends chunk lines with LF": answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nhi\n0\n\n"),
  "has no reason phrase": answer("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"),
  "says HTTP/2.0 in HTTP/1": answer("HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
  "ends lines with LF": answer("HTTP/1.1 200 OK\nContent-Length: 2\n\nhi"),
  "switches protocols": answer(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello",
  ),
  "answers 304": answer("HTTP/1.1 304 Not Modified\r\n\r\n"),
  "answers 204": answer("HTTP/1.1 204 No Content\r\n\r\n"),
  "answers 300": answer("HTTP/1.1 300 Multiple Choices\r\nLocation: /x\r\nContent-Length: 2\r\n\r\nhi"),
  "answers 404": answer("HTTP/1.1 404 Not Found\r\nContent-Length: 6\r\n\r\nsecret"),
  "redirects nowhere": answer("HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nhi"),
  "redirects to another scheme": answer(
    "HTTP/1.1 302 Found\r\nLocation: ftp://127.0.0.1/x\r\nContent-Length: 2\r\n\r\nhi",
  ),
  "redirects for ever": answer("HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 2\r\n\r\nhi"),
  "redirects to another host": answer(
    "HTTP/1.1 302 Found\r\nLocation: http://example.com/\r\nContent-Length: 2\r\n\r\nhi",
  ),
  "sends interim answers": answer(
    `${"HTTP/1.1 100 Continue\r\n\r\n".repeat(4)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi`,
  ),
  "sends 100 MB": onRequest((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n");
    const part = Buffer.alloc(64 * 1024, "x");
    const send = (): void => {
      while (!socket.destroyed && socket.write(part));
    };
    socket.on("drain", send);
    send();
  }),
  "speaks HTTP/2 and says nothing": (socket) => {
    socket.write(SETTINGS);
    socket.resume();
  },
  "goes away with an error": onHttp2Request((socket) => socket.end(goaway(0, 2))),
  "goes away because of too many pings": onHttp2Request((socket) => socket.end(goaway(0, 11))),
  "goes away gracefully, always": onHttp2Request((socket) => socket.end(goaway(0, 0))),
  "goes away having looked at the request": onHttp2Request((socket) => socket.end(goaway(1, 0))),
  "goes away with an error, having looked": onHttp2Request((socket) => socket.end(goaway(1, 2))),
  "begins HTTP/2 without SETTINGS": (socket) => {
    socket.write(http2Frame(6, 0, 0, Buffer.alloc(8)));
    socket.resume();
  },
  "sends a header block that is none": answerHttp2(http2Frame(1, 5, 1, Buffer.from([0xff]))),
  "sends no status over HTTP/2": answerHttp2(http2Frame(1, 5, 1, Buffer.from([0x58, 1, 0x61]))),
  "sends data before its head": answerHttp2(http2Frame(0, 1, 1, Buffer.from("hi"))),
  "ends a stream without trailers": answerHttp2(
    Buffer.concat([http2Frame(1, 4, 1, GRPC_HEAD), http2Frame(0, 1, 1)]),
  ),
  "ends a gRPC stream with its head": answerHttp2(http2Frame(1, 5, 1, GRPC_HEAD)),
  "says why it goes away": onHttp2Request((socket) =>
    socket.end(Buffer.concat([http2Frame(7, 0, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, 2, 0x6e, 0x6f]))])),
  ),
  "ends its body early over HTTP/2": onHttp2Request((socket) => {
    socket.end(Buffer.concat([http2Frame(1, 4, 1, STATUS_200), http2Frame(0, 0, 1, Buffer.from("hi"))]));
  }),
  "resets in its body over HTTP/2": answerHttp2(
    Buffer.concat([http2Frame(1, 4, 1, STATUS_200), http2Frame(0, 0, 1, Buffer.from("hi")), reset(8)]),
  ),
  "resets in its body with NO_ERROR": answerHttp2(
    Buffer.concat([http2Frame(1, 4, 1, STATUS_200), http2Frame(0, 0, 1, Buffer.from("hi")), reset(0)]),
  ),
  "resets the stream with INTERNAL_ERROR": answerHttp2(reset(2)),
  "resets the stream with REFUSED_STREAM": answerHttp2(reset(7)),
  "resets the stream with CANCEL": answerHttp2(reset(8)),
  "resets the stream with NO_ERROR": answerHttp2(reset(0)),
  "resets the stream with ENHANCE_YOUR_CALM": answerHttp2(reset(11)),
  "resets the stream with PROTOCOL_ERROR": answerHttp2(reset(1)),
  "resets the stream with INADEQUATE_SECURITY": answerHttp2(reset(12)),
  "closes after an HTTP/2 request": onHttp2Request((socket) => socket.end()),
  "resets after an HTTP/2 request": onHttp2Request((socket) => socket.resetAndDestroy()),
  "sends half a frame": onHttp2Request((socket) =>
    socket.end(http2Frame(1, 4, 1, STATUS_200).subarray(0, 7)),
  ),
  "announces a frame too large": (socket) => {
    socket.end(Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 4, 0, 0, 0, 0, 0]), Buffer.alloc(100)]));
    socket.resume();
  },
  "answers 200 without a body over HTTP/2": answerHttp2(http2Frame(1, 5, 1, STATUS_200)),
} as const satisfies Record<string, Behaviour>;

export type Misbehaviour = keyof typeof MISBEHAVIOURS;

export interface MisbehavingServer {
  readonly port: number;
  /** The number of open connections. */
  readonly openConnections: () => number;
  close(): Promise<void>;
}

export function startServer(behaviour: Behaviour): Promise<MisbehavingServer> {
  const sockets = new Set<Socket>();
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
    // The probe's end of the connection is counted; ours ends after it.
    socket.on("end", () => socket.end());
    behaviour(socket);
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      resolve({
        port,
        openConnections: () => sockets.size,
        close: () =>
          new Promise((closed) => {
            for (const socket of sockets) socket.destroy();
            server.close(() => closed());
          }),
      });
    });
  });
}

/** A port of this machine on which nothing listens. */
export async function closedPort(): Promise<number> {
  const { port, close } = await startServer(() => {});
  await close();
  return port;
}
