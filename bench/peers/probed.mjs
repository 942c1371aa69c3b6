// What the bench of probes probes: TCP, HTTP/1.1, h2c and gRPC health in one process, each kind on several ports, so that no
// single address runs out of ephemeral ports. Tells its ports over IPC.
import { createServer as createHttp } from "node:http";
import { createServer as createH2c } from "node:http2";
import { createServer as createTcp } from "node:net";

const PORTS_OF_A_KIND = 8;
const SERVING = Buffer.from([0, 0, 0, 0, 2, 8, 1]);

const listen = (server) =>
  new Promise((resolve) => {
    server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => resolve(server.address().port));
  });
const ports = async (make) => Promise.all(Array.from({ length: PORTS_OF_A_KIND }, () => listen(make())));

const grpc = () =>
  createH2c().on("stream", (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.on("error", () => {});
    stream.end(SERVING);
  });

process.send({
  tcp: await ports(() => createTcp((socket) => socket.on("error", () => {}).resume())),
  http: await ports(() => createHttp((_, response) => response.end("ok"))),
  h2c: await ports(() => createH2c((_, response) => response.end("ok"))),
  grpc: await ports(grpc),
});
process.on("disconnect", () => process.exit());
