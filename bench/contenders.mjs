// The contenders, how each is started, and the protocol that the load client speaks to it on each
// path.
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { hasGo } from "./peer-programs.mjs";
import { writeGatewayFiles } from "./peers/gateway-files.mjs";
import { accepting, freePorts, startNginx, startProgram } from "./processes.mjs";

const peer = (name) => fileURLToPath(new URL(`peers/${name}`, import.meta.url));
const program = fileURLToPath(new URL("../dist/src/main.js", import.meta.url));

/**
 * The load client's protocol on each path: for contenders that speak the protocols, and for those
 * that only carry bytes.
 */
const speaksProtocols = {
  translate: "ws",
  tunnel: "pf-ws",
  "pass-through": "spdy",
  "WebSocket pass-through": "ws4",
  "WebSocket v5 pass-through": "ws",
  bridge: "spdy",
  "bridged port-forward": "pf-spdy",
};
const carriesBytes = {
  translate: "spdy",
  tunnel: "pf-spdy",
  "pass-through": "spdy",
  "WebSocket pass-through": "ws4",
  "WebSocket v5 pass-through": "ws",
  bridge: "spdy",
  "bridged port-forward": "pf-spdy",
};
/**
 * On these paths Sluice connects to a node that accepts WebSocket v5 and the tunnel; other
 * contenders connect to the SPDY node.
 */
const isBridged = (plan) => plan.startsWith("bridge");
/**
 * On this path all contenders connect to that node, which stands for kubelets from Kubernetes 1.36
 * on.
 */
const meetsWebSocketNode = (plan) => plan === "WebSocket v5 pass-through";
export const nodeOf = (plan) =>
  isBridged(plan) ? "WebSocket for Sluice" : meetsWebSocketNode(plan) ? "WebSocket" : "SPDY";

const node = (script) => async (options) => {
  const [port] = await freePorts(1);
  const child = startProgram(options.node, [
    peer(script.file),
    JSON.stringify({ ...options, ...options.tls, ...script, port }),
  ]);
  await accepting(port, child);
  return { child, port };
};

/** The flags and the setting with which `sluice` starts itself; see src/cli/gateway-flags.ts. */
const NODE_FLAGS = ["--no-incremental-marking", "--max-semi-space-size=8"];
const MALLOC_SETTING = { GLIBC_TUNABLES: "glibc.malloc.tcache_count=65535" };

/** The build given by `--against` of run.mjs: its main.js, and Node's flags for it. */
let other;
export const competeWith = (main, nodeFlags) => {
  other = { main, nodeFlags: nodeFlags?.split(" ").filter(Boolean) };
};

/**
 * Accepts an OTLP exporter's spans without decoding them, because a collector's processing is not
 * Sluice's cost.
 */
let collector;
const collectorUrl = async () => {
  if (collector === undefined) {
    collector = createServer((request, response) => {
      request.resume();
      request.on("end", () => response.writeHead(200, { "Content-Type": "application/json" }).end("{}"));
    }).listen(0, "127.0.0.1");
    await once(collector, "listening");
    collector.unref();
  }
  return `http://127.0.0.1:${collector.address().port}/v1/traces`;
};

const sluice =
  (flags, { build = () => undefined, samplePercent, maxOutputBytes, rule = { name: "all" } } = {}) =>
  async ({ node, folder, upstreamPort, webSocketPort, tls, gracePeriod }) => {
    const [port, adminPort] = await freePorts(2);
    const tracing = samplePercent && { endpoint: await collectorUrl(), samplePercent };
    const folderOfRecordings = path.join(folder, "recordings");
    const recording = maxOutputBytes && {
      folder: folderOfRecordings,
      maxOutputBytes,
      rules: [rule],
    };
    const legs = { upstreamPort, webSocketPort, port, adminPort, tls, gracePeriod };
    const file = writeGatewayFiles(folder, { ...legs, tracing, recording });
    const { nodeFlags = NODE_FLAGS, main = program } = build() ?? {};
    const args = [...nodeFlags, main, "serve", "--config", file, ...flags];
    const child = startProgram(node, args, { env: { ...process.env, ...MALLOC_SETTING } });
    await accepting(port, child);
    return { child, port, adminPort, path: "/api/v1/namespaces/default/pods/pod", folderOfRecordings };
  };

const haproxy = async ({ folder, upstreamPort, tls }) => {
  const [port] = await freePorts(1);
  const pem = tls && path.join(folder, "haproxy.pem");
  if (tls) writeFileSync(pem, tls.certPem + tls.keyPem);
  const file = path.join(folder, "haproxy.cfg");
  writeFileSync(
    file,
    `global
  nbthread 1
  maxconn 20000
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen bench
  bind 127.0.0.1:${port}${tls ? ` ssl crt ${pem}` : ""}
  server upstream 127.0.0.1:${upstreamPort}${tls ? " ssl verify none" : ""}
`,
  );
  const child = startProgram("haproxy", ["-db", "-n", "9000", "-f", file]);
  await accepting(port, child);
  return { child, port };
};

const NGINX_STREAM_MODULE = "/usr/lib/nginx/modules/ngx_stream_module.so";
const nginx = async ({ folder, upstreamPort, tls }) => {
  const [port] = await freePorts(1);
  const file = path.join(folder, "nginx.conf");
  writeFileSync(
    file,
    `load_module ${NGINX_STREAM_MODULE};
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 18000; }
stream {
  server {
    listen 127.0.0.1:${port}${tls ? " ssl" : ""};
    proxy_pass 127.0.0.1:${upstreamPort};
    proxy_timeout 1h;
    ${tls ? `ssl_certificate ${tls.certFile}; ssl_certificate_key ${tls.keyFile}; proxy_ssl on;` : ""}
  }
}
`,
  );
  const child = startNginx(file, folder);
  await accepting(port, child);
  return { child, port };
};

const kubernetes = async ({ kubernetesPeers, upstreamPort, webSocketPort, tls }) => {
  const [port] = await freePorts(1);
  const scheme = tls ? "https" : "http";
  const args = ["-listen", `127.0.0.1:${port}`, "-upstream", `${scheme}://127.0.0.1:${upstreamPort}`];
  if (tls) args.push("-tls");
  if (webSocketPort !== undefined) args.push("-pass-through");
  const child = startProgram(kubernetesPeers.proxy[0], args);
  await accepting(port, child);
  return { child, port };
};

const found = (name) =>
  (process.env.PATH ?? "").split(":").some((folder) => existsSync(path.join(folder, name))) ||
  existsSync(`/usr/sbin/${name}`);

/**
 * `missing` returns why a contender cannot run here. Those with `isOfNode` also run under the Node
 * of `--node`.
 */
export const contenders = {
  direct: { title: "no proxy", via: carriesBytes, start: undefined },
  pipe: { title: "plain Node pipe", via: carriesBytes, start: node({ file: "pipe.mjs" }), isOfNode: true },
  sluice: { title: "Sluice", via: speaksProtocols, start: sluice([]), isOfNode: true },
  "sluice-2": {
    title: "Sluice, two workers",
    via: speaksProtocols,
    start: sluice(["--workers", "2"]),
    isOfNode: true,
  },
  "sluice-traced": {
    title: "Sluice, 10 % traced",
    via: speaksProtocols,
    start: sluice([], { samplePercent: 10 }),
  },
  "sluice-traced-all": {
    title: "Sluice, all traced",
    via: speaksProtocols,
    start: sluice([], { samplePercent: 100 }),
  },
  "sluice-recorded": {
    title: "Sluice, recorded",
    via: speaksProtocols,
    start: sluice([], { maxOutputBytes: "1Ti" }),
  },
  "sluice-recorded-past": {
    title: "Sluice, recorded, past `maxOutputBytes`",
    via: speaksProtocols,
    start: sluice([], { maxOutputBytes: "4Ki" }),
  },
  "sluice-unmatched": {
    title: "Sluice that records other sessions",
    via: speaksProtocols,
    start: sluice([], { maxOutputBytes: "1Ti", rule: { name: "others", match: { namespaces: ["other"] } } }),
  },
  "sluice-other": {
    title: "Sluice, the other build",
    via: speaksProtocols,
    start: sluice([], { build: () => other }),
    missing: () => (other === undefined ? "no --against PATH was given" : undefined),
  },
  "sluice-other-recorded": {
    title: "Sluice, the other build, recorded",
    via: speaksProtocols,
    start: sluice([], { build: () => other, maxOutputBytes: "1Ti" }),
    missing: () => (other === undefined ? "no --against PATH was given" : undefined),
  },
  kubernetes: {
    title: "Kubernetes' handlers",
    via: speaksProtocols,
    start: kubernetes,
    missing: () => (hasGo() ? undefined : "Go 1.26 or newer is not installed"),
  },
  haproxy: {
    title: "HAProxy, TCP",
    via: carriesBytes,
    start: haproxy,
    missing: () => (found("haproxy") ? undefined : "haproxy is not installed"),
  },
  nginx: {
    title: "nginx, stream",
    via: carriesBytes,
    start: nginx,
    missing: () =>
      found("nginx") && existsSync(NGINX_STREAM_MODULE)
        ? undefined
        : "nginx with libnginx-mod-stream is not installed",
  },
  naive: { title: "ws + spdy-transport", via: { translate: "ws" }, start: node({ file: "naive.mjs" }) },
  "http-proxy": {
    title: "http-proxy",
    via: { "WebSocket pass-through": "ws4" },
    start: node({ file: "websocket-proxy.mjs", library: "http-proxy" }),
  },
  httpxy: {
    title: "httpxy",
    via: { "WebSocket pass-through": "ws4" },
    start: node({ file: "websocket-proxy.mjs", library: "httpxy" }),
  },
};
