// The backend of the HTTP benches: `/small` is 12 bytes, `/large` is 1 MiB.
import { createServer } from "node:http";

const small = Buffer.from("hello world\n");
const large = Buffer.alloc(1024 * 1024, "x");
const server = createServer({ keepAlive: true, noDelay: true }, (request, response) => {
  const body = request.url === "/large" ? large : small;
  request.resume();
  response.writeHead(200, { "Content-Type": "text/plain", "Content-Length": body.length });
  response.end(body);
});
server.keepAliveTimeout = 60_000;
server.listen(Number(process.argv[2]), "127.0.0.1");
