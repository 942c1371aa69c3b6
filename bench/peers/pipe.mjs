// The lower limit: a hop in Node that does not interpret any bytes. With TLS it terminates one
// connection and opens another, like a gateway.
import { readFileSync } from "node:fs";
import net from "node:net";
import tls from "node:tls";

const { upstreamPort, port = 0, certFile, keyFile } = JSON.parse(process.argv[2]);
const isTls = certFile !== undefined;
const dial = () => {
  const options = { port: upstreamPort, host: "127.0.0.1", allowHalfOpen: true, noDelay: true };
  return isTls
    ? tls.connect({ ...options, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] })
    : net.connect(options);
};
const join = (downstream) => {
  const upstream = dial();
  for (const socket of [downstream, upstream]) {
    // Some Node versions ignore `noDelay` in TLS options.
    socket.setNoDelay(true);
    socket.on("error", () => {});
  }
  // If one side breaks off, `pipe` does not close the other, whose peer would wait forever.
  downstream.on("close", () => upstream.destroySoon());
  upstream.on("close", () => downstream.destroySoon());
  downstream.pipe(upstream);
  upstream.pipe(downstream);
};
const server = isTls
  ? tls.createServer(
      { allowHalfOpen: true, noDelay: true, cert: readFileSync(certFile), key: readFileSync(keyFile) },
      join,
    )
  : net.createServer({ allowHalfOpen: true, noDelay: true }, join);
server.listen(port, "127.0.0.1", () => {
  console.log(`listening ${server.address().port}`);
  process.send?.(server.address().port);
});
process.on("disconnect", () => process.exit());
