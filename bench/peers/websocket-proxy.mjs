// http-proxy and httpxy, set up for WebSockets as in their manuals. They pass WebSocket upgrades
// through but cannot carry SPDY's: http-proxy sends no body with an upgrade, and both accept only
// `Upgrade: websocket`.
import { createServer } from "node:http";

const { upstreamPort, port, library } = JSON.parse(process.argv[2]);
const target = `http://127.0.0.1:${upstreamPort}`;
const { createProxyServer } =
  library === "httpxy" ? await import("httpxy") : (await import("http-proxy")).default;
const proxy = createProxyServer({ target, ws: true });
proxy.on("error", () => {});
const server = createServer((request, response) => proxy.web(request, response));
server.on("upgrade", (request, socket, head) => {
  socket.on("error", () => {});
  Promise.resolve(proxy.ws(request, socket, library === "httpxy" ? { target } : head, head)).catch(() =>
    socket.destroy(),
  );
});
server.listen(port, "127.0.0.1");
