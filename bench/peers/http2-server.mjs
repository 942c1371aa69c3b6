// Shows what node:http2 costs by itself. `answers`: serves /small and /large; `forwards`: forwards
// to the backend through node:http; `calls`: forwards to an h2c backend over one connection.
import { readFileSync } from "node:fs";
import { Agent, request as requestUpstream } from "node:http";
import { connect, createSecureServer } from "node:http2";

const { port, upstreamPort, grpcPort, certFile, keyFile, role } = JSON.parse(process.argv[2]);
const [small, large] = [Buffer.from("hello world\n"), Buffer.alloc(1024 * 1024, "x")];
const agent = new Agent({ keepAlive: true, maxFreeSockets: 64, noDelay: true });
let session;
const roles = {
  calls: (stream, { ":path": path, ":method": method, "content-type": type, te }) => {
    session ??= connect(`http://127.0.0.1:${grpcPort}`);
    const call = session.request({ ":path": path, ":method": method, "content-type": type, te });
    stream.pipe(call);
    call.on("response", ({ ":status": status, "content-type": answered }) =>
      stream.respond({ ":status": status, "content-type": answered }, { waitForTrailers: true }),
    );
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    call.pipe(stream);
  },
  answers: (stream, headers) => {
    const body = headers[":path"] === "/large" ? large : small;
    stream.respond({ ":status": 200, "content-type": "text/plain", "content-length": body.length });
    stream.end(body);
  },
  forwards: (stream, { ":path": path, ":method": method }) => {
    const request = requestUpstream({ port: upstreamPort, host: "127.0.0.1", path, method, agent });
    request.on("response", (response) => {
      const { "content-type": type, "content-length": length } = response.headers;
      stream.respond({ ":status": response.statusCode, "content-type": type, "content-length": length });
      response.pipe(stream);
    });
    request.end();
  },
};
const server = createSecureServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) });
// Clients leave before their answers are complete.
server.on("session", (session) => session.on("error", () => {}));
server.on("stream", (stream) => stream.on("error", () => {}));
server.on("stream", roles[role]).listen(port, "127.0.0.1");
