// The gRPC backend of the HTTP benches, over h2c: answers every call with a message of 7 bytes and
// status 0.
import { createServer } from "node:http2";

/** A health answer (SERVING) with its prefix: not compressed, 2 bytes long. */
const message = Buffer.from([0, 0, 0, 0, 2, 8, 1]);
const server = createServer();
server.on("session", (session) => session.on("error", () => {}));
server.on("stream", (stream) => {
  stream.on("error", () => {});
  stream.resume().once("end", () => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(message);
  });
});
server.listen(Number(process.argv[2]), "127.0.0.1");
