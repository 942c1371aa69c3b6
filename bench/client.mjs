// Load client of the benches: runs exec sessions over WebSocket v5 or SPDY/3.1 on plain sockets. It
// checks the number of bytes and the status, and does little else. Each message from the parent
// requests one run.
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import { SpdySession } from "@sluice/protocols/spdy";
import { applyMask, WebSocketFrameDecoder, writeMaskedFrameHeader } from "@sluice/protocols/websocket";

const CHUNK_BYTES = 32 * 1024;
const MASK_KEY = randomBytes(4).readUInt32BE();
/**
 * One masked stdin message, built once, because the cost of masking must not affect the
 * measurement.
 */
const STDIN_MESSAGE = (() => {
  const frame = Buffer.alloc(14 + 1 + CHUNK_BYTES, "z");
  const headerBytes = writeMaskedFrameHeader(frame, 0, 2, 1 + CHUNK_BYTES, true, MASK_KEY);
  const payload = frame.subarray(headerBytes, headerBytes + 1 + CHUNK_BYTES);
  payload[0] = 0;
  applyMask(payload, MASK_KEY, 0);
  return frame.subarray(0, headerBytes + 1 + CHUNK_BYTES);
})();
/** A PONG, masked with zeros. */
const PONG = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);
const SPDY_CHUNK = Buffer.alloc(CHUNK_BYTES, "z");

process.on("message", async ({ via, test, port, isTls, sessions, bytes }) => {
  if (via === "held") return hold({ port, isTls }, sessions);
  const run = via === "ws" ? webSocketSession : spdySession;
  const startedAt = process.hrtime.bigint();
  await Promise.all(Array.from({ length: sessions }, () => run({ port, isTls }, test, bytes / sessions)));
  process.send({ seconds: Number(process.hrtime.bigint() - startedAt) / 1e9 });
});
process.on("disconnect", () => process.exit());

const commandOf = (test, bytes) => (test === "download" ? `source=${bytes}` : "sink");
const pathOf = (test, bytes) =>
  `/api/v1/namespaces/default/pods/pod/exec?container=c&stdout=true&stdin=${test === "upload"}&command=${commandOf(test, bytes)}`;

/** Connects, sends the request, and resolves with the socket once the 101's head has been read. */
function upgrade({ port, isTls }, lines) {
  return new Promise((resolve, reject) => {
    const address = { port, host: "127.0.0.1", noDelay: true };
    const socket = isTls ? connectTls({ ...address, rejectUnauthorized: false }) : connect(address);
    let head = Buffer.alloc(0);
    socket.on("error", reject);
    socket.on("data", function onData(chunk) {
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf("\r\n\r\n");
      if (end === -1) return;
      socket.off("data", onData);
      if (!head.toString("latin1", 0, 12).endsWith("101")) reject(new Error(head.toString("latin1", 0, 300)));
      resolve({ socket, rest: head.subarray(end + 4) });
    });
    socket.write(
      `${lines.join("\r\n")}\r\nHost: bench\r\nAuthorization: Bearer bench-token\r\nConnection: Upgrade\r\n\r\n`,
    );
  });
}

const requestOf = (test, bytes) => [
  `GET ${pathOf(test, bytes)} HTTP/1.1`,
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  `Sec-WebSocket-Key: ${randomBytes(16).toString("base64")}`,
  "Sec-WebSocket-Protocol: v5.channel.k8s.io",
];

async function webSocketSession(server, test, bytes) {
  const { socket, rest } = await upgrade(server, requestOf(test, bytes));
  let counted = 0;
  let channel = 0;
  let said = "";
  let status = "";
  const decoder = new WebSocketFrameDecoder("client", {
    onMessage: (part, isFirst) => {
      const payload = isFirst ? part.subarray(1) : part;
      if (isFirst) channel = part[0];
      if (channel === 3) status += Buffer.from(payload).toString();
      else if (test === "download") counted += payload.length;
      else said += Buffer.from(payload).toString();
    },
    onPing: () => {},
    onPong: () => {},
    onClose: () => socket.end(),
  });
  socket.on("data", (chunk) => decoder.push(chunk));
  if (rest.length > 0) decoder.push(rest);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  if (test === "upload") {
    await pump(socket, bytes, () => socket.write(STDIN_MESSAGE));
    const close = Buffer.from([0x82, 0x82, 0, 0, 0, 0, 255, 0]);
    socket.write(close);
  }
  await closed;
  check(test, bytes, counted, said, status);
}

/**
 * Opens echo sessions and reports that to the parent. Later reports when the first and the last
 * session learned of their end.
 */
async function hold(server, sessions) {
  const ends = [];
  let told = 0;
  let left = sessions;
  const open = async () => {
    while (left-- > 0) {
      const { socket } = await upgrade(server, requestOf("upload"));
      const ended = new Promise((resolve) => {
        const decoder = new WebSocketFrameDecoder("client", {
          onMessage: (part) => {
            if (!Buffer.from(part).includes("shutting down")) return;
            told += 1;
            resolve(Date.now());
          },
          onPing: () => void socket.write(PONG),
          onPong: () => {},
          onClose: () => socket.end(),
        });
        socket.on("data", (chunk) => decoder.push(chunk));
        socket.once("close", () => resolve(Date.now()));
      });
      ends.push(ended);
    }
  };
  await Promise.all(Array.from({ length: 16 }, open));
  process.send({ held: ends.length });
  const times = await Promise.all(ends);
  const [firstAt, lastAt] = times.reduce(
    ([first, last], at) => [Math.min(first, at), Math.max(last, at)],
    [Number.POSITIVE_INFINITY, 0],
  );
  process.send({ firstAt, lastAt, told });
}

async function spdySession(server, test, bytes) {
  const { socket, rest } = await upgrade(server, [
    `POST ${pathOf(test, bytes)} HTTP/1.1`,
    "Upgrade: SPDY/3.1",
    "X-Stream-Protocol-Version: v4.channel.k8s.io",
    "Content-Length: 0",
  ]);
  let counted = 0;
  const said = { stdout: "", error: "" };
  const session = new SpdySession("client", { send: (out) => void socket.write(out), onStream: () => 3 });
  const open = (type) =>
    session.openStream([["streamtype", type]], {
      onData: (part) => {
        if (type === "stdout" && test === "download") counted += part.length;
        else said[type] += Buffer.from(part).toString();
      },
      onEnd: () => {},
    });
  open("error");
  const stdin = test === "upload" ? open("stdin") : undefined;
  open("stdout");
  socket.on("data", (chunk) => session.receive(chunk));
  if (rest.length > 0) session.receive(rest);
  const closed = new Promise((resolve) => socket.once("close", resolve));
  if (stdin !== undefined) {
    await pump(socket, bytes, () => stdin.write(SPDY_CHUNK));
    stdin.finish();
  }
  await closed;
  check(test, bytes, counted, said.stdout, said.error);
}

/** Writes `bytes` in chunks, as fast as the socket accepts them. */
function pump(socket, bytes, write) {
  return new Promise((resolve) => {
    let left = bytes / CHUNK_BYTES;
    const step = () => {
      socket.cork();
      while (left > 0 && !socket.writableNeedDrain) {
        write();
        left -= 1;
      }
      socket.uncork();
      if (left > 0) socket.once("drain", step);
      else resolve();
    };
    step();
  });
}

function check(test, bytes, counted, said, status) {
  if (!status.includes("Success")) throw new Error(`status ${status}`);
  const arrived = test === "download" ? counted : Number(said);
  if (arrived !== bytes) throw new Error(`${arrived} of ${bytes} bytes arrived`);
}
