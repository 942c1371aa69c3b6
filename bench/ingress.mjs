// `node bench/ingress.mjs [--repeat 5 --seconds 3 --only throughput,reload,lookup]`: the front door beside nginx, HAProxy, http-proxy and httpxy;
// requests while 10,000 Ingresses are compiled again and again; the cost of a lookup among 10 to 100,000 hosts. Writes docs/evidence/ingress-performance.md.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import autocannon from "autocannon";
import { machine } from "./machine.mjs";
import { accepting, freePort, lineOf, processTree, startNginx, startProgram, stop } from "./processes.mjs";
import { median } from "./results.mjs";
import { withSpread } from "./text.mjs";

const { values } = parseArgs({
  options: {
    repeat: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
    only: { type: "string", default: "throughput,reload,lookup" },
    write: { type: "boolean", default: false },
  },
});
const [repeat, seconds] = [Number(values.repeat), Number(values.seconds)];
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const peer = (name) => fileURLToPath(new URL(`peers/${name}`, import.meta.url));
const program = fileURLToPath(new URL("../dist/src/main.js", import.meta.url));
const sections = [];

const upstreamPort = await freePort();
const upstream = startProgram(process.execPath, [peer("web-server.mjs"), String(upstreamPort)]);
await accepting(upstreamPort, upstream);

const starts = {
  sluice: async (port) => {
    const manifests = path.join(folder, "cluster.json");
    const items = [
      {
        apiVersion: "networking.k8s.io/v1",
        kind: "IngressClass",
        metadata: { name: "sluice" },
        spec: { controller: "sluice.dev/ingress-controller" },
      },
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "app", namespace: "default" },
        spec: { ports: [{ port: 80 }] },
      },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { name: "app-1", namespace: "default", labels: { "kubernetes.io/service-name": "app" } },
        addressType: "IPv4",
        endpoints: [{ addresses: ["127.0.0.1"] }],
        ports: [{ port: upstreamPort }],
      },
      {
        apiVersion: "networking.k8s.io/v1",
        kind: "Ingress",
        metadata: { name: "all", namespace: "default" },
        spec: {
          ingressClassName: "sluice",
          defaultBackend: { service: { name: "app", port: { number: 80 } } },
        },
      },
    ];
    writeFileSync(manifests, JSON.stringify({ apiVersion: "v1", kind: "List", items }));
    const file = path.join(folder, "gateway.json");
    writeFileSync(
      file,
      JSON.stringify({
        apiVersion: "sluice.dev/v1alpha1",
        kind: "GatewayConfiguration",
        listeners: {
          apiServer: { port: 0 },
          admin: { port: 0 },
          ingress: { httpPort: port, httpsPort: 0, allowedEndpointAddresses: ["127.0.0.0/8"] },
        },
        cluster: { manifests: [manifests] },
        logging: { level: "error" },
      }),
    );
    return startProgram(process.execPath, [
      "--no-incremental-marking",
      "--max-semi-space-size=8",
      program,
      "serve",
      "--config",
      file,
    ]);
  },
  "http-proxy": async (port) => startReverseProxy("http-proxy", port),
  httpxy: async (port) => startReverseProxy("httpxy", port),
  nginx: async (port) => {
    const file = path.join(folder, "nginx.conf");
    writeFileSync(
      file,
      `worker_processes 1; pid ${folder}/nginx.pid; error_log stderr crit; events { worker_connections 1024; }
http { access_log off; client_body_temp_path ${folder}/b; proxy_temp_path ${folder}/p; fastcgi_temp_path ${folder}/f; uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
  upstream app { server 127.0.0.1:${upstreamPort}; keepalive 64; }
  server { listen 127.0.0.1:${port}; location / { proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_buffering off; } } }
`,
    );
    return startNginx(file, folder);
  },
  haproxy: async (port) => {
    const file = path.join(folder, "haproxy.cfg");
    writeFileSync(
      file,
      `global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 1m\n  timeout server 1m\n  option forwardfor\n  http-reuse always\nfrontend f\n  bind 127.0.0.1:${port}\n  default_backend b\nbackend b\n  server s 127.0.0.1:${upstreamPort}\n`,
    );
    return startProgram("haproxy", ["-db", "-f", file]);
  },
};

const startReverseProxy = (library, port) =>
  startProgram(process.execPath, [
    peer("http-reverse-proxy.mjs"),
    JSON.stringify({ upstreamPort, port, library }),
  ]);

/** User and system time of a process and its children, in seconds. */
const cpuSeconds = (pid) =>
  processTree(pid).reduce((sum, each) => {
    const stat = readFileSync(`/proc/${each}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return sum + (Number(fields[11]) + Number(fields[12])) / 100;
  }, 0);

const load = (port, url, connections, duration = seconds, headers = {}) =>
  autocannon({ url: `http://127.0.0.1:${port}${url}`, connections, duration, headers });

async function throughput() {
  const running = [];
  for (const [name, start] of Object.entries(starts)) {
    const port = await freePort();
    try {
      const child = await start(port);
      await accepting(port, child);
      running.push({ name, port, child, small: [], smallCpu: [], large: [], largeCpu: [] });
    } catch (error) {
      console.log(`${name} is left out: ${error.message}`);
    }
  }
  for (let round = -1; round < repeat; round++) {
    for (const contender of running) {
      process.stderr.write(`\r\x1b[Kthroughput, round ${round + 1} of ${repeat}: ${contender.name}`);
      for (const [kind, url, connections] of [
        ["small", "/small", 32],
        ["large", "/large", 8],
      ]) {
        const before = cpuSeconds(contender.child.pid);
        const result = await load(contender.port, url, connections);
        const cpu = cpuSeconds(contender.child.pid) - before;
        // Ours must answer everything; others' odd reset is theirs, as long as it changes no figure.
        const wrong = result.non2xx + result.errors;
        if (wrong > (contender.name === "sluice" ? 0 : result.requests.total / 1000))
          throw new Error(`${contender.name}: ${result.non2xx} answers were no 2xx, ${result.errors} errors`);
        if (round < 0) continue;
        const total = result.requests.total;
        contender[kind].push(
          kind === "small" ? total / seconds : result.throughput.total / 2 ** 20 / seconds,
        );
        contender[`${kind}Cpu`].push(
          kind === "small" ? total / cpu : cpu / (result.throughput.total / 2 ** 30),
        );
      }
    }
  }
  process.stderr.write("\r\x1b[K");
  await Promise.all(running.map(({ child }) => stop(child)));
  const sluice = running.find(({ name }) => name === "sluice");
  const rows = running.map(
    ({ name, small, smallCpu, large, largeCpu }) =>
      `| ${name} | ${withSpread(small, 0)} | ${withSpread(smallCpu, 0)} | ${(median(sluice.smallCpu) / median(smallCpu)).toFixed(2)}x | ${withSpread(large, 0)} | ${withSpread(largeCpu, 2)} | ${(median(sluice.largeCpu) / median(largeCpu)).toFixed(2)}x |`,
  );
  sections.push(`## Beside other proxies

32 connections that ask for 12 bytes, 8 that ask for a MiB, each for ${seconds} s; one process (nginx and HAProxy: one worker or thread), kept connections to one backend. The
client (autocannon) and the backend share the two cores, so requests per CPU-second of the proxy is the figure that holds. "Sluice" columns: Sluice's figure over that row's.

| | requests/s | requests per CPU-second | Sluice | MiB/s | CPU s/GiB | Sluice |
|---|---|---|---|---|---|---|
${rows.join("\n")}`);
}

async function reload() {
  const port = await freePort();
  const child = startProgram(process.execPath, [
    "--no-incremental-marking",
    "--max-semi-space-size=8",
    peer("route-reload.mjs"),
    JSON.stringify({ upstreamPort, port, ingresses: 10_000 }),
  ]);
  await lineOf(child, /(ready)/);
  const host = { host: "host-9999.example.com" };
  const quiet = [];
  const busy = [];
  let reloads = 0;
  for (let round = -1; round < repeat; round++) {
    process.stderr.write(`\r\x1b[Kreload, round ${round + 1} of ${repeat}`);
    // A steady rate that leaves room on the core: queues of a saturated one would measure themselves.
    const steady = (duration) =>
      autocannon({
        url: `http://127.0.0.1:${port}/small`,
        connections: 16,
        duration,
        overallRate: 1000,
        headers: host,
      });
    const before = await steady(seconds);
    const timer = setInterval(() => child.stdin.write("change\n"), 100);
    const during = await steady(seconds);
    clearInterval(timer);
    for (const result of [before, during]) {
      if (result.non2xx + result.errors > 0)
        throw new Error(`${result.non2xx} answers were no 2xx, ${result.errors} errors`);
    }
    if (round < 0) continue;
    quiet.push(before.latency.p99);
    busy.push(during.latency.p99);
  }
  process.stderr.write("\r\x1b[K");
  const counted = lineOf(child, /reloads (\d+)/);
  child.stdin.write("count\n");
  reloads = Number(await counted);
  await stop(child);
  sections.push(`## 10,000 Ingresses compiled again while requests are served

1,000 requests a second over 16 connections, ${seconds} s without and ${seconds} s with a change ten times a second, each of which compiles all 10,000 (${reloads} times in all). No request failed.

| | p99 latency, ms |
|---|---|
| no change | ${withSpread(quiet, 1)} |
| a change every 100 ms | ${withSpread(busy, 1)} (${(median(busy) / median(quiet)).toFixed(2)}x) |`);
}

async function lookup() {
  const { RouteTable } = await import("../dist/src/ingress/route-table.js");
  const rows = [];
  for (const hosts of [10, 100, 1_000, 10_000, 100_000]) {
    const table = new RouteTable();
    for (let index = 0; index < hosts; index++) {
      const host = index % 10 === 0 ? `*.zone-${index}.example.com` : `host-${index}.example.com`;
      for (const route of ["/", "/api/v1", "/static/"])
        table.add({ host, path: route, pathType: "Prefix", backend: index });
    }
    const asked = Array.from({ length: 1000 }, (_, index) => {
      const at = (index * 7919) % hosts;
      return at % 10 === 0 ? `a.zone-${at}.example.com` : `host-${at}.example.com`;
    });
    const samples = [];
    for (let round = -1; round < repeat; round++) {
      let found = 0;
      const startedAt = process.hrtime.bigint();
      for (let index = 0; index < 500_000; index++) {
        if (table.match(asked[index % 1000], "/api/v1/items") !== undefined) found += 1;
      }
      const each = Number(process.hrtime.bigint() - startedAt) / 500_000;
      if (found !== 500_000) throw new Error("a host was not found");
      if (round >= 0) samples.push(each);
    }
    rows.push(`| ${hosts.toLocaleString("en")} | ${withSpread(samples, 0)} |`);
  }
  sections.push(`## A lookup

Hosts with three paths each, every tenth a wildcard; 1,000 different hosts asked for in turn.

| hosts | ns per lookup |
|---|---|
${rows.join("\n")}`);
}

const parts = { throughput, reload, lookup };
for (const name of values.only.split(",")) await parts[name]();
await stop(upstream);
console.log(sections.join("\n\n"));
if (values.write) {
  const { cpus, model, node } = machine();
  const head = `# Ingress performance

\`node bench/ingress.mjs --write\`, ${new Date().toISOString().slice(0, 10)}; ${cpus} x ${model}, Node.js ${node}. Medians of ${repeat} interleaved rounds with minimum and maximum.`;
  writeFileSync(
    new URL("../docs/evidence/ingress-performance.md", import.meta.url),
    `${head}\n\n${sections.join("\n\n")}\n`,
  );
}
process.exit();
