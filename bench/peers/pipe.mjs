// The limit: what a TCP hop in Node costs that understands nothing.
import { connect, createServer } from "node:net";

const upstreamPort = Number(process.argv[2]);
const server = createServer({ allowHalfOpen: true, noDelay: true }, (downstream) => {
  const upstream = connect({ port: upstreamPort, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  for (const socket of [downstream, upstream]) socket.on("error", () => {});
  downstream.pipe(upstream);
  upstream.pipe(downstream);
});
server.listen(0, "127.0.0.1", () => process.send(server.address().port));
process.on("disconnect", () => process.exit());
