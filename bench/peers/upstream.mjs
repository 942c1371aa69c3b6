// A cheap node for machines without Go: SPDY/3.1 exec and port-forward like
// peers/kubernetes/kube-upstream (commands source=N[:CHUNK], sink, echo, exit=0; ports 7 echo, 9
// sink, 20000+M and 10000+M source). It uses the product's own codec for framing; every run checks
// the byte counts. `-tls CERT,KEY` serves TLS.
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { SpdySession } from "@sluice/protocols/spdy";

const MIB = 1024 * 1024;
const LETTERS = Buffer.alloc(32 * 1024, "abcdefghijklmnopqrstuvwxyz");
const SUCCESS = '{"metadata":{},"status":"Success"}';
const REFUSED_STREAM = 3;

const [, , flag, files] = process.argv;
const options = { highWaterMark: 256 * 1024 };
const server =
  flag === "-tls"
    ? https.createServer({
        ...options,
        ...Object.fromEntries(
          files.split(",").map((file, index) => [["cert", "key"][index], readFileSync(file)]),
        ),
      })
    : http.createServer(options);
server.on("upgrade", (request, socket) => {
  socket.setNoDelay(true);
  const [protocol] = request.headers["x-stream-protocol-version"].split(",");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol.trim()}\r\n\r\n`,
  );
  const url = new URL(`http://x${request.url}`);
  const waiting = new Set();
  socket.on("drain", () => {
    for (const resume of [...waiting]) {
      waiting.delete(resume);
      resume();
    }
    socket.resume();
  });
  const connection = { socket, waiting };
  const session = new SpdySession("server", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: /portforward/i.test(url.pathname)
      ? forwardedPorts(connection)
      : command(connection, url.searchParams.get("command") ?? "", () => session.goAway()),
  });
  socket.on("data", (chunk) => {
    socket.cork();
    session.receive(chunk);
    socket.uncork();
    // If nothing reads the echo, stop reading its input.
    if (socket.writableNeedDrain) socket.pause();
  });
  socket.on("end", () => socket.end());
  socket.on("error", () => {});
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  if (process.send === undefined) console.log(`listening 127.0.0.1:${port}`);
  else process.send(port);
});
process.on("disconnect", () => process.exit());

/** Writes this many bytes, as fast as the socket accepts them. */
function source({ socket, waiting }, stream, left, chunkBytes, done) {
  const chunk = LETTERS.subarray(0, chunkBytes);
  const step = () => {
    if (!socket.writable) return;
    socket.cork();
    while (left > 0 && !socket.writableNeedDrain) {
      const part = left >= chunk.length ? chunk : chunk.subarray(0, left);
      stream.write(part);
      left -= part.length;
    }
    socket.uncork();
    if (left > 0) waiting.add(step);
    else done();
  };
  setImmediate(step);
}

function command(connection, text, goAway) {
  const [name, argument = ""] = text.split("=");
  const streams = {};
  const early = [];
  let takeInput;
  let counted = 0;
  const end = () => {
    streams.stdout?.finish();
    streams.error.write(Buffer.from(SUCCESS));
    streams.error.reset();
    goAway();
    connection.socket.end();
  };
  return (stream) => {
    const type = stream.headers.get("streamtype");
    streams[type] = stream;
    if (type === "stdout" && name === "source") {
      const [bytes, chunkBytes = LETTERS.length] = argument.split(":").map(Number);
      source(connection, stream, bytes, chunkBytes, end);
    }
    if (type === "stdout" && name === "exit") setImmediate(end);
    const take = (part, fin) => {
      counted += part.length;
      if (name === "echo" && part.length > 0) streams.stdout.write(part);
      if (!fin) return;
      if (name === "sink") streams.stdout.write(Buffer.from(`${counted}\n`));
      end();
    };
    if (type === "stdout") for (const [part, fin] of early.splice(0)) takeInput(part, fin);
    if (type === "stdin") takeInput = take;
    return {
      onData: (part, fin) => {
        if (type !== "stdin") return;
        // A client may send before it has opened every stream.
        if (streams.stdout === undefined) early.push([part, fin]);
        else take(part, fin);
      },
      onEnd: () => {},
    };
  };
}

function forwardedPorts(connection) {
  const errors = new Map();
  return (stream) => {
    const id = stream.headers.get("requestid");
    if (stream.headers.get("streamtype") === "error") {
      errors.set(id, stream);
      return { onData: () => {}, onEnd: () => errors.delete(id) };
    }
    const port = Number(stream.headers.get("port"));
    let counted = 0;
    const end = () => {
      stream.finish();
      errors.get(id)?.finish();
      errors.delete(id);
    };
    if (port >= 20_000) source(connection, stream, (port - 20_000) * MIB, LETTERS.length, end);
    else if (port >= 10_000) source(connection, stream, (port - 10_000) * MIB, 64, end);
    else if (port !== 7 && port !== 9) return REFUSED_STREAM;
    return {
      onData: (part, fin) => {
        counted += part.length;
        if (port === 7 && part.length > 0) stream.write(part);
        if (port === 9 && fin) stream.write(Buffer.from(`${counted}\n`));
        if (fin && port < 10_000) end();
      },
      onEnd: () => {},
    };
  };
}
