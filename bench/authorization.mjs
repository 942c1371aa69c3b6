// `node bench/authorization.mjs [--repeat 5 --sessions 2000 --at-once 8]`: sets up exec sessions
// through two gateways that differ only in their authorizers: one allows everything, the other
// checks RBAC and then a webhook, whose decisions it caches. Prints the figures of both and their
// ratio.
import { fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";
import { cpuSeconds, startGateway, temporaryFile } from "./processes.mjs";

const { values } = readFlags({
  options: {
    repeat: { type: "string", default: "5" },
    sessions: { type: "string", default: "2000" },
    "at-once": { type: "string", default: "8" },
  },
});
const [repeat, sessions, atOnce] = [values.repeat, values.sessions, values["at-once"]].map(Number);

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const started = (child) => {
  child.once("exit", (code) => {
    if (code) process.exit(code);
  });
  return child;
};

let reviews = 0;
const webhook = createServer((request, response) => {
  reviews += 1;
  request.resume();
  request.once("end", () => response.end('{"status":{"allowed":true}}'));
});
await new Promise((resolve) => webhook.listen(0, "127.0.0.1", resolve));
const upstream = started(
  fork(here("peers/upstream.mjs"), { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
);
const [upstreamPort] = await once(upstream, "message");

const file = (name, content) => temporaryFile(name, JSON.stringify(content));
const tokenAuthFile = temporaryFile("tokens.csv", "bench-token,bench,1\n");
const node = {
  addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
  daemonEndpoints: { kubeletEndpoint: { Port: upstreamPort } },
};
const pod = { nodeName: "node", containers: [{ name: "c", image: "x" }] };
const manifests = [
  file("node.json", { apiVersion: "v1", kind: "Node", metadata: { name: "node" }, status: node }),
  file("pod.json", {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "pod", namespace: "default" },
    spec: pod,
  }),
];

/** Starts `sluice serve` as an operator would. */
const gateway = async (name, authorization) => {
  const configuration = file(`${name}.json`, {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: { apiServer: { port: 0 }, admin: { port: 0 } },
    cluster: { manifests },
    authentication: { tokenAuthFile },
    authorization,
    kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
  });
  const flags = ["--no-incremental-marking", "--max-semi-space-size=8"];
  const { child, url } = await startGateway(configuration, { program: here("../dist/src/main.js"), flags });
  return { name, child, port: Number(new URL(url).port) };
};

const contenders = [
  await gateway("AlwaysAllow", { mode: ["AlwaysAllow"] }),
  await gateway("RBAC, then a webhook", {
    mode: ["RBAC", "Webhook"],
    webhook: { url: `http://127.0.0.1:${webhook.address().port}` },
  }),
];
const client = started(
  fork(here("peers/set-up-client.mjs"), { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
);

const measure = async ({ port, child }) => {
  const before = cpuSeconds(child.pid);
  client.send({ port, sessions, atOnce });
  const [{ seconds }] = await once(client, "message");
  const cpuMs = ((cpuSeconds(child.pid) - before) / sessions) * 1_000;
  return { perSecond: sessions / seconds, cpuMs };
};

const samples = contenders.map(() => []);
for (let round = -1; round < repeat; round += 1) {
  // The first contender of a round may find the machine in another state, so they alternate.
  for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
    const sample = await measure(contenders[index]);
    // The first round warms caches and the compiler.
    if (round >= 0) samples[index].push(sample);
  }
}
// One user does `get` and `create` on one pod: two reviews, regardless of the number of sessions.
if (reviews !== 2) throw new Error(`the webhook was asked ${reviews} times, expected 2`);

const of = (index, figure) => samples[index].map((sample) => sample[figure]).toSorted((a, b) => a - b);
const median = (sorted) => (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
const shown = (sorted, digits) =>
  `${median(sorted).toFixed(digits)} (${sorted[0].toFixed(digits)}-${sorted.at(-1).toFixed(digits)})`;
contenders.forEach(({ name }, index) => {
  const [speeds, cpus] = [of(index, "perSecond"), of(index, "cpuMs")];
  console.log(`${name.padEnd(22)} ${shown(speeds, 0)} set-ups/s   CPU ${shown(cpus, 3)} ms each`);
});
const ratio = (figure) => (median(of(1, figure)) / median(of(0, figure))).toFixed(3);
console.log(`${contenders[1].name}: ${ratio("perSecond")}x set-ups/s, ${ratio("cpuMs")}x CPU`);
process.exit();
