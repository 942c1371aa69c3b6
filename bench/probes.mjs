// `npm run bench:probes [-- --workers 10000 --seconds 20 --kinds exec,tcp,http,h2c,grpc,mixed
// --calls 500 --threads auto --servers node|nginx --json probes]`: measures the cost of each kind
// of probe (CPU and memory of this process, and CPU of the separate servers), how evenly the
// workers spread over a period, and how late they are. With Go, also compares the gRPC probe with
// running grpc-health-probe, as users did before Kubernetes had gRPC probes.
import { execFileSync, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";

const program = new URL("../dist/src/probes/", import.meta.url);
if (!existsSync(program)) throw new Error("npm run build comes first");
const { ProbeThreads } = await import(new URL("threads/probe-threads.js", program).href);
const { ProbeManager } = await import(new URL("worker/probe-manager.js", program).href);
const { TimerWheel } = await import(new URL("worker/timer-wheel.js", program).href);
const { Metrics } = await import(new URL("../observability/metrics.js", program).href);

const { values } = readFlags({
  options: {
    workers: { type: "string", default: "10000" },
    seconds: { type: "string", default: "20" },
    kinds: { type: "string", default: "exec,tcp,http,h2c,grpc,mixed" },
    calls: { type: "string", default: "500" },
    threads: { type: "string", default: "auto" },
    servers: { type: "string", default: spawnSync("nginx", ["-v"]).status === 0 ? "nginx" : "node" },
    json: { type: "string" },
  },
});
const workers = Number(values.workers);
const seconds = Number(values.seconds);
const calls = Number(values.calls);
const kinds = values.kinds.split(",");

const PERIOD_SECONDS = 1;
const gates = { H2CContainerProbe: true, GRPCContainerProbeTLS: true };
const results = [];

const probed = fork(fileURLToPath(new URL("peers/probed.mjs", import.meta.url)), [values.servers]);
process.on("exit", () => probed.kill());
const [ports] = await once(probed, "message");

const handlers = {
  // No command runs, so this measures only the worker.
  exec: () => ({ exec: { command: ["true"] } }),
  tcp: (port) => ({ tcpSocket: { port } }),
  http: (port) => ({ httpGet: { port, path: "/healthz" } }),
  h2c: (port) => ({ httpGet: { port, path: "/healthz", protocol: "HTTP2" } }),
  grpc: (port) => ({ grpc: { port, service: "" } }),
};
/** A rough mix of the kinds in real clusters. */
const MIX = ["http", "http", "http", "http", "tcp", "tcp", "exec", "exec", "exec", "grpc"];
const kindOf = (kind, index) => (kind === "mixed" ? MIX[index % MIX.length] : kind);
const portOf = (kind, index) => ports[kind]?.[index % ports[kind].length];
const runCommand = async () => ({ exitCode: 0, output: new Uint8Array() });
/** Each kind starts without threads, as a gateway does. */
let probeThreads;
const startThreads = () => {
  probeThreads?.stop();
  probeThreads = new ProbeThreads({
    maxThreads: values.threads === "auto" ? os.availableParallelism() : Number(values.threads),
    onProblem: (error) => {
      throw error;
    },
  });
};
startThreads();
const attempt = (handler, timeoutMs, signal) =>
  probeThreads.run(
    handler,
    { host: "127.0.0.1", containerPorts: [], runCommand },
    { timeoutMs, signal, userAgentVersion: "1.36", gates },
  );

const percentile = (sorted, share) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const cpuMs = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

const serverCpuMs = async () => {
  probed.send("cpu");
  return (await once(probed, "message"))[0].cpuMs;
};

/** Runs all workers of one kind for a while, after a warm-up. */
async function measureWorkers(kind) {
  startThreads();
  global.gc?.();
  const heapBefore = process.memoryUsage().heapUsed;
  const metrics = new Metrics();
  const wheel = new TimerWheel();
  const pods = new Map();
  const startedAt = new Date(Date.now() - 60_000).toISOString();
  const lateMs = [];
  const phases = new Array(10).fill(0);
  let isMeasured = false;
  let done = 0;
  let bad = 0;
  const manager = new ProbeManager({
    wheel,
    readPod: (uid) => pods.get(uid),
    attempt: async (handler, { pod }, { timeoutMs, signal }) => {
      const worker = manager.worker(pod.metadata.uid, "main", "Liveness");
      if (isMeasured && worker !== undefined) {
        lateMs.push(wheel.now() - worker.nextTickMs);
        phases[Math.floor((worker.nextTickMs % (PERIOD_SECONDS * 1_000)) / (PERIOD_SECONDS * 100))]++;
      }
      const result = await attempt(handler, timeoutMs, signal);
      if (isMeasured) done++;
      if (isMeasured && result.result !== "Success") bad++;
      return result;
    },
    series: (labels) => metrics.probes.series(labels),
    onEvent: () => {},
    onCrash: (error) => {
      throw error;
    },
  });
  for (let index = 0; index < workers; index++) {
    const uid = `uid-${index}`;
    const one = kindOf(kind, index);
    const handler = handlers[one](portOf(one, index));
    const livenessProbe = { ...handler, periodSeconds: PERIOD_SECONDS, failureThreshold: 1_000_000 };
    const pod = {
      metadata: { name: `pod-${index}`, namespace: "bench", uid },
      spec: { containers: [{ name: "main", livenessProbe }] },
      status: {
        phase: "Running",
        podIP: "127.0.0.1",
        containerStatuses: [
          { name: "main", containerID: `bench://${index}`, state: { running: { startedAt } } },
        ],
      },
    };
    pods.set(uid, pod);
    manager.addPod(pod);
  }
  global.gc?.();
  const heapOfWorkers = process.memoryUsage().heapUsed - heapBefore;
  // Threads start after the rate of the first second, and need another second until they work.
  await delay(4 * PERIOD_SECONDS * 1_000);
  const startServerCpuMs = await serverCpuMs();
  isMeasured = true;
  const startCpuMs = cpuMs();
  const startMs = performance.now();
  await delay(seconds * 1_000);
  const passedSeconds = (performance.now() - startMs) / 1_000;
  const usedMs = cpuMs() - startCpuMs;
  isMeasured = false;
  const serverMs = (await serverCpuMs()) - startServerCpuMs;
  const { threadCount } = probeThreads;
  const rss = process.memoryUsage().rss;
  manager.stop();
  lateMs.sort((one, other) => one - other);
  const shares = phases.map((count) => count / lateMs.length);
  const row = {
    kind,
    workers,
    probesPerSecond: done / passedSeconds,
    failedShare: bad / Math.max(1, done),
    cpuMicrosecondsPerProbe: (usedMs * 1_000) / Math.max(1, done),
    serverMicrosecondsPerProbe: (serverMs * 1_000) / Math.max(1, done),
    threads: threadCount,
    servers: values.servers,
    cpuShare: usedMs / 1_000 / passedSeconds,
    lateMedianMs: percentile(lateMs, 0.5),
    late99Ms: percentile(lateMs, 0.99),
    smallestTenth: Math.min(...shares),
    largestTenth: Math.max(...shares),
    heapBytesPerWorker: heapOfWorkers / workers,
    rssMiB: rss / 2 ** 20,
  };
  results.push({ test: "workers", ...row });
  console.log(
    `${kind.padEnd(5)} ${workers} workers  ${row.probesPerSecond.toFixed(0).padStart(6)} probes/s  ` +
      `${row.cpuMicrosecondsPerProbe.toFixed(0).padStart(5)} us CPU each (${(100 * row.cpuShare).toFixed(0)} % of a core, ` +
      `${threadCount} threads), ${row.serverMicrosecondsPerProbe.toFixed(0)} us the server's  ` +
      `late ${row.lateMedianMs.toFixed(1)} ms median, ${row.late99Ms.toFixed(1)} p99  ` +
      `tenths of the period ${(100 * row.smallestTenth).toFixed(1)}-${(100 * row.largestTenth).toFixed(1)} %  ` +
      `${row.heapBytesPerWorker.toFixed(0)} B/worker, RSS ${row.rssMiB.toFixed(0)} MiB${bad > 0 ? `  FAILED ${bad}` : ""}`,
  );
  await delay(500);
}

/** Runs one probe after another, with no other load. */
async function measureCalls(kind) {
  const run = async (count) => {
    for (let index = 0; index < count; index++) {
      const { result, message } = await attempt(handlers[kind](portOf(kind, index)), 5_000);
      if (result !== "Success") throw new Error(`${kind}: ${message}`);
    }
  };
  await run(Math.ceil(calls / 5));
  const startCpuMs = cpuMs();
  const startMs = performance.now();
  await run(calls);
  const row = {
    kind,
    milliseconds: (performance.now() - startMs) / calls,
    cpuMilliseconds: (cpuMs() - startCpuMs) / calls,
  };
  results.push({ test: "calls", ...row });
  console.log(
    `${kind.padEnd(18)} ${row.milliseconds.toFixed(3)} ms, ${row.cpuMilliseconds.toFixed(3)} ms CPU a probe, one after the other`,
  );
}

/**
 * Starts a process for each probe, as an exec probe does. The CPU is that of the processes, as
 * counted by their shell.
 */
function measureHealthProbe() {
  const bin = mkdtempSync(path.join(os.tmpdir(), "sluice-health-probe-"));
  try {
    const cwd = fileURLToPath(new URL("peers/grpc-health-probe", import.meta.url));
    const file = path.join(bin, "grpc-health-probe");
    execFileSync("go", ["build", "-o", file, "github.com/grpc-ecosystem/grpc-health-probe"], {
      cwd,
      stdio: "inherit",
    });
    const count = Math.max(1, Math.ceil(calls / 5));
    const loop = `for i in $(seq ${count}); do ${file} -addr=127.0.0.1:${portOf("grpc", 0)} >/dev/null 2>&1 || exit 1; done; times`;
    const startMs = performance.now();
    const { status, stdout } = spawnSync("bash", ["-c", loop], { encoding: "utf8" });
    if (status !== 0) throw new Error("grpc-health-probe found the server unhealthy");
    // The second line of `times` is for children: user and system as 0m1.234s.
    const spent = [
      ...stdout
        .trim()
        .split("\n")
        .at(-1)
        .matchAll(/(\d+)m([\d.]+)s/g),
    ];
    const cpuSeconds = spent.reduce((sum, [, minutes, rest]) => sum + 60 * Number(minutes) + Number(rest), 0);
    const row = {
      kind: "grpc-health-probe",
      milliseconds: (performance.now() - startMs) / count,
      cpuMilliseconds: (1_000 * cpuSeconds) / count,
    };
    results.push({ test: "calls", ...row });
    console.log(
      `${row.kind.padEnd(18)} ${row.milliseconds.toFixed(3)} ms, ${row.cpuMilliseconds.toFixed(3)} ms CPU a probe, a process each`,
    );
  } finally {
    rmSync(bin, { recursive: true, force: true });
  }
}

for (const kind of kinds) if (kind !== "mixed") await measureCalls(kind);
if (spawnSync("go", ["version"]).status === 0 && kinds.includes("grpc")) measureHealthProbe();
else console.log("grpc-health-probe: left out, there is no Go");
for (const kind of kinds) await measureWorkers(kind);
if (values.json !== undefined) {
  const { writeFileSync } = await import("node:fs");
  const machine = { cpus: os.cpus().length, model: os.cpus()[0].model, node: process.version };
  writeFileSync(`${values.json}.json`, `${JSON.stringify({ machine, results }, null, 1)}\n`);
}
process.exit();
