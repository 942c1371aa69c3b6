// HTTP reverse proxies of Node.js, with kept connections to the backend: http-proxy and httpxy as
// their manuals recommend, and what `node:http` costs by itself, without a route or a changed header.
import { Agent, createServer, request as startRequest } from "node:http";

const { upstreamPort, port, library } = JSON.parse(process.argv[2]);
const agent = new Agent({ keepAlive: true, maxFreeSockets: 64 });

const bare = (request, response) => {
  const { method, url: path, headers } = request;
  const forwarded = startRequest({ host: "127.0.0.1", port: upstreamPort, agent, method, path, headers });
  forwarded.on("error", () => response.destroy());
  forwarded.on("response", (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    answer.pipe(response);
  });
  request.pipe(forwarded);
};

async function proxyOf() {
  const { createProxyServer } =
    library === "httpxy" ? await import("httpxy") : (await import("http-proxy")).default;
  const proxy = createProxyServer({ target: `http://127.0.0.1:${upstreamPort}`, agent, xfwd: true });
  proxy.on("error", (_error, _request, response) => response.destroy?.());
  return (request, response) => proxy.web(request, response);
}

createServer(library === "node:http" ? bare : await proxyOf()).listen(port, "127.0.0.1");
