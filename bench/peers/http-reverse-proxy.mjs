// http-proxy and httpxy as HTTP reverse proxies, with keep-alive connections to the backend as
// their manuals recommend.
import { Agent, createServer } from "node:http";

const { upstreamPort, port, library } = JSON.parse(process.argv[2]);
const { createProxyServer } =
  library === "httpxy" ? await import("httpxy") : (await import("http-proxy")).default;
const agent = new Agent({ keepAlive: true, maxFreeSockets: 64 });
const proxy = createProxyServer({ target: `http://127.0.0.1:${upstreamPort}`, agent, xfwd: true });
proxy.on("error", (_error, _request, response) => response.destroy?.());
createServer((request, response) => proxy.web(request, response)).listen(port, "127.0.0.1");
