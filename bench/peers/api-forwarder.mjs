// Forwards HTTP/2 over TLS to one API server with Node's own server and client. It neither
// authenticates nor edits requests, so it shows the cost of a plain hop in Node. Prints `listening
// PORT`.
import { readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { Agent, request } from "node:https";
import { pipeline } from "node:stream";

const { certFile, keyFile, url } = JSON.parse(process.argv[2]);
const [cert, key] = [certFile, keyFile].map((file) => readFileSync(file));
const { hostname, port } = new URL(url);
const agent = new Agent({ keepAlive: true, ca: cert, cert, key });
const server = createSecureServer({ cert, key });
server.on("session", (session) => session.on("error", () => {}));
server.on("stream", (stream, headers) => {
  stream.on("error", () => {});
  const { ":method": method, ":path": path, ...others } = headers;
  const lines = Object.entries(others).filter(([name]) => !name.startsWith(":"));
  const asked = request(
    { agent, hostname, port, method, path, headers: Object.fromEntries(lines) },
    (answer) => {
      const { connection, "keep-alive": keepAlive, ...kept } = answer.headers;
      stream.respond({ ":status": answer.statusCode, ...kept });
      pipeline(answer, stream, () => {});
    },
  );
  asked.on("error", () => stream.close());
  pipeline(stream, asked, () => {});
});
server.listen(0, "127.0.0.1", () => console.log(`listening ${server.address().port}`));
