// `node bench/ingress.mjs [--repeat 5 --seconds 3 --only throughput,reload,lookup --workload HTTP/2
// --against MAIN_JS --write]`: compares the Ingress listener with other proxies, measures requests
// while 10,000 Ingresses are compiled repeatedly, and measures a lookup among 10 to 100,000 hosts.
// `--write` writes docs/evidence/ingress-performance.md.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import autocannon from "autocannon";
import { readFlags } from "./flags.mjs";
import { carriesGrpc, frontDoors, http2Only, plainOnly } from "./front-doors.mjs";
import { machine } from "./machine.mjs";
import { startManyRoutes } from "./many-routes.mjs";
import { accepting, cpuSeconds, freePorts, lineOf, startProgram, stop } from "./processes.mjs";
import { median } from "./results.mjs";
import { withSpread } from "./text.mjs";

const { values } = readFlags({
  options: {
    repeat: { type: "string", default: "5" },
    seconds: { type: "string", default: "3" },
    only: { type: "string", default: "throughput,reload,lookup" },
    write: { type: "boolean", default: false },
    workload: { type: "string", default: "" },
    against: { type: "string" },
  },
});
const [repeat, seconds] = [Number(values.repeat), Number(values.seconds)];
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const peer = (name) => fileURLToPath(new URL(`peers/${name}`, import.meta.url));
const sections = [];

const [upstreamPort] = await freePorts(1);
const upstream = startProgram(process.execPath, [peer("web-server.mjs"), String(upstreamPort)]);
await accepting(upstreamPort, upstream);
const [grpcPort] = await freePorts(1);
const grpcUpstream = startProgram(process.execPath, [peer("grpc-server.mjs"), String(grpcPort)]);
await accepting(grpcPort, grpcUpstream);

/**
 * Returns the number of answers and the bytes of their bodies. Throws if any answer is not a 2xx;
 * with `mayReset`, one in 1,000 may fail.
 */
async function http1Load({ url, connections, mayReset }) {
  const result = await autocannon({ url, connections, duration: seconds, servername: "localhost" });
  const wrong = result.non2xx + result.errors;
  if (wrong > (mayReset ? result.requests.total / 1000 : 0))
    throw new Error(`${url}: ${result.non2xx} answers were no 2xx, ${result.errors} errors`);
  return { answered: result.requests.total, bytes: result.throughput.total };
}

async function http2Load({ url, connections, streams, body, headers }) {
  const { origin, pathname } = new URL(url);
  const options = { url: origin, path: pathname, connections, streams, seconds, body, headers };
  const client = startProgram(process.execPath, [peer("http2-client.mjs"), JSON.stringify(options)]);
  return JSON.parse(await lineOf(client, /^(\{.*\})$/m));
}

/** A gRPC health request for the whole server: not compressed, 0 bytes long. */
const GRPC_MESSAGE = Buffer.alloc(5).toString("base64");
const GRPC_HEADERS = { "content-type": "application/grpc", te: "trailers" };

/** The requests of each workload: `/small` is 12 bytes, `/large` is 1 MiB. */
const WORKLOADS = [
  { title: "HTTP/1.1, small, 32 connections", path: "/small", connections: 32 },
  { title: "HTTP/1.1, 1 MiB, 8 connections", path: "/large", connections: 8 },
  { title: "HTTP/1.1 over TLS, small, 64 connections", isTls: true, path: "/small", connections: 64 },
  {
    ...{ title: "HTTP/2, small, 8 connections of 8 streams", isTls: true, streams: 8 },
    ...{ path: "/small", connections: 8 },
  },
  {
    ...{ title: "HTTP/2, 1 MiB, 2 connections of 4 streams", isTls: true, streams: 4 },
    ...{ path: "/large", connections: 2 },
  },
  {
    ...{ title: "gRPC, unary, 4 connections of 8 calls to h2c", isTls: true, streams: 8, connections: 4 },
    ...{ path: "/grpc.health.v1.Health/Check", body: GRPC_MESSAGE, headers: GRPC_HEADERS },
  },
].filter(({ title }) => title.includes(values.workload));

const takesPart = (name, { isTls = false, streams, body }) =>
  body !== undefined
    ? carriesGrpc.has(name)
    : isTls
      ? !plainOnly.has(name) &&
        name !== "node:http2, both sides" &&
        (streams !== undefined || !http2Only.has(name))
      : !http2Only.has(name);

async function throughput() {
  const { certPem, keyPem } = await createSelfSignedCertificate(["127.0.0.1"], "sluice-bench");
  const files = { certFile: path.join(folder, "cert.pem"), keyFile: path.join(folder, "key.pem") };
  writeFileSync(files.certFile, certPem);
  writeFileSync(files.keyFile, keyPem);
  const running = [];
  for (const [name, start] of Object.entries(frontDoors(values.against))) {
    if (!WORKLOADS.some((workload) => takesPart(name, workload))) continue;
    const own = mkdtempSync(path.join(folder, "front-door-"));
    const [port, tlsPort] = await freePorts(2);
    try {
      const child = await start({
        folder: own,
        upstreamPort,
        grpcPort,
        port,
        tlsPort,
        ...files,
        certPem,
        keyPem,
      });
      await accepting(http2Only.has(name) ? tlsPort : port, child);
      running.push({ name, port, tlsPort, child, rates: new Map(), costs: new Map() });
    } catch (error) {
      console.log(`${name} is left out: ${error.message}`);
    }
  }
  for (let round = -1; round < repeat; round++) {
    for (const workload of WORKLOADS) {
      for (const contender of running.filter(({ name }) => takesPart(name, workload)))
        await measure(contender, workload, round);
    }
  }
  process.stderr.write("\r\x1b[K");
  await Promise.all(running.map(({ child }) => stop(child)));
  sections.push(`## Beside other proxies

Each workload for ${seconds} s, one process or thread per proxy, kept connections to one HTTP/1.1
backend, for gRPC to one over h2c. Compare CPU: client and backend share the cores. Column "Sluice":
Sluice's CPU divided by that row's; below 1 Sluice is cheaper. \`node:http\` and \`node:http2, both
sides\` show what Node.js costs by itself, without a route or a changed header; \`node:http2, which
answers\` answers itself and proxies nothing.`);
  for (const workload of WORKLOADS) sections.push(tableOf(workload, running));
}

async function measure({ name, port, tlsPort, child, rates, costs }, workload, round) {
  const { title, isTls, path: asked, connections, streams, body, headers } = workload;
  process.stderr.write(`\r\x1b[Kround ${round + 1} of ${repeat}: ${title}: ${name}`);
  const url = `${isTls ? `https://127.0.0.1:${tlsPort}` : `http://127.0.0.1:${port}`}${asked}`;
  const before = cpuSeconds(child.pid);
  const load = streams === undefined ? http1Load : http2Load;
  const { answered, bytes } = await load({
    ...{ url, connections, streams, body, headers },
    mayReset: !name.startsWith("sluice"),
  });
  const cpu = cpuSeconds(child.pid) - before;
  if (round < 0) return;
  const isSmall = asked !== "/large";
  (rates.get(title) ?? rates.set(title, []).get(title)).push(
    isSmall ? answered / seconds : bytes / 2 ** 20 / seconds,
  );
  (costs.get(title) ?? costs.set(title, []).get(title)).push(
    isSmall ? (cpu / answered) * 10_000 : cpu / (bytes / 2 ** 30),
  );
}

function tableOf({ title, path: asked }, running) {
  const isSmall = asked !== "/large";
  const ours = median(running.find(({ name }) => name === "sluice").costs.get(title));
  const rows = running
    .filter(({ costs }) => costs.has(title))
    .map(({ name, rates, costs }) => {
      const cost = costs.get(title);
      const ratio = (ours / median(cost)).toFixed(2);
      return `| ${name} | ${withSpread(rates.get(title), 0)} | ${withSpread(cost, 2)} | ${ratio}x |`;
    });
  return `### ${title}

| | ${isSmall ? "requests/s" : "MiB/s"} | ${isSmall ? "CPU s per 10,000" : "CPU s/GiB"} | Sluice |
|---|---|---|---|
${rows.join("\n")}`;
}

async function reload() {
  const [port] = await freePorts(1);
  const { child, change, reloads } = await startManyRoutes({ folder, port, upstreamPort });
  await accepting(port, child);
  const host = { host: `host-9999.example.com` };
  const quiet = [];
  const busy = [];
  for (let round = -1; round < repeat; round++) {
    process.stderr.write(`\r\x1b[Kreload, round ${round + 1} of ${repeat}`);
    // A steady rate that does not saturate the core, because the queues of a saturated one would
    // dominate the latency.
    const steady = (duration) =>
      autocannon({
        url: `http://127.0.0.1:${port}/small`,
        connections: 16,
        duration,
        overallRate: 1000,
        headers: host,
      });
    const before = await steady(seconds);
    const timer = setInterval(change, 100);
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
  const compiled = await reloads();
  await stop(child);
  sections.push(`## 10,000 Ingresses compiled again while requests are served

No request failed. 1,000 requests a second over 16 connections, ${seconds} s without and ${seconds} s with ten
changes of a manifest a second; each change compiles all 10,000 (${compiled} times in all).

| | p99 latency, ms |
|---|---|
| no change | ${wholeMs(quiet)} |
| a change every 100 ms | ${wholeMs(busy)} |`);
}

/** autocannon measures in whole milliseconds. */
const wholeMs = (samples) => (Math.max(...samples) < 1 ? "below 1" : withSpread(samples, 0));

async function lookup() {
  const { RouteTable } = await import("../dist/src/ingress/route-table.js");
  const rows = [];
  for (const hosts of [10, 100, 1_000, 10_000, 100_000]) {
    const table = new RouteTable();
    for (let index = 0; index < hosts; index++) {
      const host = index % 10 === 0 ? `*.zone-${index}.example.com` : `host-${index}.example.com`;
      for (const route of ["/", "/api/v1", "/static/"])
        table.add({ host, path: route, pathType: "Prefix", route: index });
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

Three paths per host, every tenth host a wildcard; 1,000 hosts in turn.

| hosts | ns per lookup |
|---|---|
${rows.join("\n")}`);
}

const parts = { throughput, reload, lookup };
for (const name of values.only.split(",")) {
  const done = sections.length;
  await parts[name]();
  console.log(`${sections.slice(done).join("\n\n")}\n`);
}
await Promise.all([upstream, grpcUpstream].map(stop));
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
