// `npm run bench:cluster [-- --nodes 5000 --pods 50000 --changes 1000 --seconds 10 --repeat 3]`:
// measures a gateway that watches a large cluster: the time until it is ready, memory per pod, and
// the cost of a look-up. Also measures the echo of one byte through an exec session while the API
// reports that many changes a second, as a ratio to the echo without changes. The two alternate, so
// both see the same machine.
import { execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { runFakeNode } from "@sluice/lab/fake-node/run-fake-node";
import { WebSocket } from "ws";
import { readFlags } from "./flags.mjs";

const { values } = readFlags({
  options: {
    nodes: { type: "string", default: "5000" },
    pods: { type: "string", default: "50000" },
    changes: { type: "string", default: "1000" },
    seconds: { type: "string", default: "10" },
    repeat: { type: "string", default: "3" },
  },
});
const [nodes, pods, changes, seconds, repeat] = ["nodes", "pods", "changes", "seconds", "repeat"].map(
  (name) => Number(values[name]),
);
const TOKEN = "bench-token";
const STDIN = 0;
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-cluster-"));
const children = [];
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});
const started = (child) => {
  children.push(child);
  child.once("exit", (code) => {
    if (code) process.exit(code);
  });
  return child;
};
const file = (name, content) => {
  const whole = path.join(folder, name);
  writeFileSync(whole, typeof content === "string" ? content : JSON.stringify(content));
  return whole;
};

// The tests' API server is TypeScript, which the oldest supported Node cannot run.
const built = here("../node_modules/.cache/sluice-bench");
mkdirSync(built, { recursive: true });
writeFileSync(path.join(built, "package.json"), '{ "type": "module" }');
execFileSync("npx", ["tsc", "-p", here("tsconfig.api-server.json")], {
  stdio: ["ignore", "inherit", "inherit"],
});

const tls = await createSelfSignedCertificate();
const node = await runFakeNode({
  name: "front",
  declaresWebSockets: true,
  tls,
  pods: [{ namespace: "default", name: "web", uid: "u", containers: [{ name: "main", command: ["cat"] }] }],
});
const kubeconfig = path.join(folder, "kubeconfig");
const apiServer = started(
  fork(here("peers/large-cluster.mjs"), [nodes, pods, node.port, kubeconfig].map(String)),
);
await once(apiServer, "message");

const held = JSON.parse(
  execFileSync(process.execPath, ["--expose-gc", here("peers/held-cluster.mjs"), kubeconfig], {
    encoding: "utf8",
  }),
);
console.log(`${held.pods} pods, ${held.nodes} nodes`);
console.log(`lists            pods ${held.podSeconds.toFixed(2)} s, nodes ${held.nodeSeconds.toFixed(2)} s`);
console.log(
  `heap             ${held.bytesPerPod.toFixed(0)} B per pod, ${held.bytesPerNode.toFixed(0)} B per node`,
);
console.log(`look-up          ${held.lookUpNs.toFixed(0)} ns: pod, container, node and address`);

const gateway = await startGateway();
console.log(
  `ready            ${gateway.readySeconds.toFixed(2)} s after its start, RSS ${rssMiB(gateway.child.pid).toFixed(0)} MiB`,
);

const echo = await openEcho(gateway.port);
await echo.measure(500);
const samples = { idle: [], churn: [] };
for (let round = 0; round < repeat; round += 1) {
  for (const kind of ["idle", "churn"]) {
    const rate = kind === "churn" ? changes : 0;
    const before = await churn(rate);
    const startedMs = performance.now();
    const times = await echo.measure(seconds * 1_000, startedMs);
    const done = (await churn(0)) - before;
    const perSecond = (done / (performance.now() - startedMs)) * 1_000;
    samples[kind].push({
      p50: quantile(times, 0.5),
      p99: quantile(times, 0.99),
      max: times.at(-1),
      perSecond,
    });
  }
}
for (const [kind, list] of Object.entries(samples)) {
  const shown = ["p50", "p99", "max"].map(
    (name) => `${name} ${median(list.map((one) => one[name])).toFixed(3)} ms`,
  );
  console.log(
    `echo, ${kind.padEnd(10)} ${shown.join("  ")}  ${median(list.map((one) => one.perSecond)).toFixed(0)} changes/s`,
  );
}
const ratio = (name) =>
  (median(samples.churn.map((one) => one[name])) / median(samples.idle.map((one) => one[name]))).toFixed(2);
console.log(`churn / idle     p50 ${ratio("p50")}x  p99 ${ratio("p99")}x  max ${ratio("max")}x`);
process.exit(0);

/** Sets the rate of changes. Resolves with the number of pods changed so far. */
async function churn(changesPerSecond) {
  const answer = once(apiServer, "message");
  apiServer.send({ changesPerSecond });
  const [{ changed }] = await answer;
  return changed;
}

async function startGateway() {
  const configuration = file("gateway.json", {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: { apiServer: { port: 0 }, admin: { port: 0 } },
    cluster: { kubeconfig },
    authentication: { tokenAuthFile: file("tokens.csv", `${TOKEN},bench,1\n`) },
    authorization: { mode: ["AlwaysAllow"] },
    kubelet: { certificateAuthorityFile: file("ca.crt", tls.certPem), allowedAddresses: ["127.0.0.0/8"] },
  });
  const startedMs = performance.now();
  const args = [
    "--no-incremental-marking",
    "--max-semi-space-size=8",
    here("../dist/src/main.js"),
    "serve",
    "--config",
    configuration,
  ];
  const child = started(spawn(process.execPath, args, { stdio: ["ignore", "inherit", "pipe"] }));
  const { apiServerUrl, adminUrl } = await new Promise((resolve) => {
    createInterface(child.stderr).on("line", (line) => {
      const entry = JSON.parse(line);
      if (entry.apiServerUrl !== undefined) resolve(entry);
    });
  });
  while (!(await fetch(`${adminUrl}/readyz`)).ok) await delay(5);
  return { child, port: new URL(apiServerUrl).port, readySeconds: (performance.now() - startedMs) / 1_000 };
}

/** Opens an exec session of `cat` and measures round trips of one byte, in milliseconds, sorted. */
async function openEcho(port) {
  const url = `ws://127.0.0.1:${port}/api/v1/namespaces/default/pods/web/exec?stdin=true&stdout=true&command=cat`;
  const socket = new WebSocket(url, "v5.channel.k8s.io", { headers: { Authorization: `Bearer ${TOKEN}` } });
  await once(socket, "open");
  let answered = () => {};
  socket.on("message", (data) => {
    // The first message is empty and shows that the session runs.
    if (data.length > 1) answered();
  });
  const roundTrip = () =>
    new Promise((resolve) => {
      const sentMs = performance.now();
      answered = () => resolve(performance.now() - sentMs);
      socket.send(Buffer.from([STDIN, 0x61]));
    });
  return {
    async measure(forMs, startedMs = performance.now()) {
      const times = [];
      while (performance.now() - startedMs < forMs) times.push(await roundTrip());
      return times.toSorted((a, b) => a - b);
    },
  };
}

function quantile(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

function median(list) {
  return quantile(
    list.toSorted((a, b) => a - b),
    0.5,
  );
}

function rssMiB(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
}
