// Sends requests over HTTP/2 for `seconds`, with `connections` x `streams` in flight. Prints the
// number of answers, the bytes of their bodies, and the median time in milliseconds. `body`: sends
// it with each request as a gRPC call, whose answer must have trailers.
import { connect } from "node:http2";

const { url, path, connections, streams, seconds, headers, body } = JSON.parse(process.argv[2]);
let [answered, bytes, isOver] = [0, 0, false];
const times = [];
const payload = body === undefined ? undefined : Buffer.from(body, "base64");

const request = (session) => {
  if (isOver) return;
  const beganMs = performance.now();
  const asked = { ":path": path, ...(payload && { ":method": "POST" }), ...headers };
  const stream = session.request(asked, { endStream: payload === undefined });
  let isGood = payload === undefined;
  stream.on("response", (answer) => {
    if (answer[":status"] !== 200) throw new Error(`status ${answer[":status"]}`);
  });
  stream.on("trailers", (trailers) => {
    isGood = trailers["grpc-status"] === "0";
  });
  stream.on("data", (chunk) => {
    bytes += chunk.length;
  });
  stream.on("end", () => {
    if (!isGood) throw new Error("a call ended without its status");
    answered += 1;
    times.push(performance.now() - beganMs);
    request(session);
  });
  stream.end(payload);
};
for (let count = 0; count < connections; count++) {
  // The window sizes of Go's client, and so of kubectl. Node's own 64 KiB would stop a list at
  // every turn.
  const session = connect(url, {
    rejectUnauthorized: false,
    settings: { initialWindowSize: 4 * 1024 * 1024 },
  });
  session.once("connect", () => session.setLocalWindowSize(1024 * 1024 * 1024));
  session.once("remoteSettings", () => {
    for (let stream = 0; stream < streams; stream++) request(session);
  });
}
setTimeout(() => {
  isOver = true;
  const medianMs = times.sort((one, other) => one - other)[times.length >> 1];
  console.log(JSON.stringify({ answered, bytes, medianMs }));
  process.exit();
}, seconds * 1000);
