// A node that costs little: SPDY/3.1 exec over plain TCP with two commands, `source=BYTES` (stdout) and `sink` (counts
// stdin, says how much it was). Framing is the product's own codec; every run checks the byte counts.
import { createServer } from "node:http";
import { SpdySession } from "../../dist/protocols/spdy/index.js";

const CHUNK = Buffer.alloc(32 * 1024, "abcdefghijklmnopqrstuvwxyz");
const SUCCESS = '{"metadata":{},"status":"Success"}';

const server = createServer({ highWaterMark: 256 * 1024 });
server.on("upgrade", (request, socket) => {
  const [protocol] = request.headers["x-stream-protocol-version"].split(",");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol.trim()}\r\n\r\n`,
  );
  const command = new URL(`http://x${request.url}`).searchParams.get("command") ?? "";
  const streams = {};
  let counted = 0;
  const end = () => {
    streams.stdout?.finish();
    streams.error.write(Buffer.from(SUCCESS));
    streams.error.reset();
    session.goAway();
    socket.end();
  };
  const source = (left) => {
    socket.cork();
    while (left > 0 && !socket.writableNeedDrain) {
      const part = left >= CHUNK.length ? CHUNK : CHUNK.subarray(0, left);
      streams.stdout.write(part);
      left -= part.length;
    }
    socket.uncork();
    if (left > 0) socket.once("drain", () => source(left));
    else end();
  };
  const session = new SpdySession("server", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: (stream) => {
      const type = stream.headers.get("streamtype");
      streams[type] = stream;
      if (type === "stdout" && command.startsWith("source=")) setImmediate(source, Number(command.slice(7)));
      return {
        onData: (part, fin) => {
          if (type !== "stdin") return;
          counted += part.length;
          if (!fin) return;
          streams.stdout.write(Buffer.from(`${counted}\n`));
          end();
        },
        onEnd: () => {},
      };
    },
  });
  socket.on("data", (chunk) => session.receive(chunk));
  socket.on("end", () => socket.end());
  socket.on("error", () => {});
});
server.listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("disconnect", () => process.exit());
