// Requests over HTTP/2, as many at a time as `connections` x `streams`, for `seconds`: prints how many were answered, and the bytes of their bodies.
import { connect } from "node:http2";

const { url, path, connections, streams, seconds } = JSON.parse(process.argv[2]);
let [answered, bytes, isOver] = [0, 0, false];

const request = (session) => {
  if (isOver) return;
  const stream = session.request({ ":path": path }, { endStream: true });
  stream.on("response", (headers) => {
    if (headers[":status"] !== 200) throw new Error(`status ${headers[":status"]}`);
  });
  stream.on("data", (chunk) => {
    bytes += chunk.length;
  });
  stream.on("end", () => {
    answered += 1;
    request(session);
  });
};
for (let count = 0; count < connections; count++) {
  const session = connect(url, { rejectUnauthorized: false });
  session.once("remoteSettings", () => {
    for (let stream = 0; stream < streams; stream++) request(session);
  });
}
setTimeout(() => {
  isOver = true;
  console.log(JSON.stringify({ answered, bytes }));
  process.exit();
}, seconds * 1000);
