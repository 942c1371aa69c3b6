// `node bench/fairness.mjs [--seconds 20 --repeat 3 --write]`: 50 users read and write through the
// gateway: alone, beside one hostile user, and beside one stranger without credentials. Prints
// their p50, p99 and refusals, the ratio of each p99 to the p99 alone, and the gateway's CPU; exits
// with 1 if a ratio exceeds 2. The hostile client has the lowest priority (nice 19) and the gateway
// has its own core, so only waiting inside the gateway counts. `--write` writes
// docs/evidence/fairness.md.
import { fork, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { Agent, request } from "node:https";
import { availableParallelism, constants, setPriority } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { table } from "./document.mjs";
import { readFlags } from "./flags.mjs";
import { machine } from "./machine.mjs";
import { cpuSeconds, startGateway, stop, temporaryFile } from "./processes.mjs";
import { withSpread } from "./text.mjs";

const { values } = readFlags({
  options: {
    seconds: { type: "string", default: "20" },
    repeat: { type: "string", default: "3" },
    write: { type: "boolean", default: false },
    program: { type: "string", default: fileURLToPath(new URL("../dist/src/main.js", import.meta.url)) },
  },
});
const [seconds, repeat] = [values.seconds, values.repeat].map(Number);
const USERS = 50;
/**
 * The pause between a user's requests: 50 users send up to 500 requests a second, fewer than the
 * gateway can handle.
 */
const PAUSE_MS = 100;
/** How long the API server takes to answer. */
const ANSWER_MS = 5;
const MOST = 2;
/**
 * Until the hostile client starts: the gateway compiles its code and does TLS handshakes. Measuring
 * starts SETTLE_MS later.
 */
const WARM_UP_MS = 4_000;
const SETTLE_MS = 8_000;

/**
 * Knows the users' tokens, and answers once the whole request has arrived. Its backlog is that of
 * Go's servers.
 */
const apiServer = createServer((incoming, response) => {
  const isKnown = incoming.headers.authorization?.startsWith("Bearer token-") === true;
  incoming.resume().once("end", () => {
    setTimeout(() => response.writeHead(isKnown ? 200 : 401).end("{}"), ANSWER_MS);
  });
});
await new Promise((resolve) => apiServer.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, resolve));

const { certPem, keyPem } = await createSelfSignedCertificate();
const tls = { certFile: temporaryFile("tls.crt", certPem), keyFile: temporaryFile("tls.key", keyPem) };
const configuration = temporaryFile(
  "gateway.json",
  JSON.stringify({
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    listeners: { apiServer: { port: 0, tls }, admin: { port: 0 } },
    upstreamAPIServer: { url: `http://127.0.0.1:${apiServer.address().port}` },
    kubelet: { scheme: "http", allowedAddresses: ["127.0.0.0/8"] },
  }),
);

/** Moves this process, and so its children, off core 0, which the gateway gets. */
const cpus = availableParallelism();
const hasOwnCore =
  cpus > 1 &&
  spawnSync("taskset", ["--all-tasks", "--cpu-list", "--pid", `1-${cpus - 1}`, `${process.pid}`]).status ===
    0;

/** Runs one request to its end. Resolves with its status (0: none) and the milliseconds. */
const ask = (url, { agent, headers }, hasBody) =>
  new Promise((resolve) => {
    const beganMs = performance.now();
    const settle = (status) => resolve({ status, ms: performance.now() - beganMs });
    const [method, target] = hasBody ? ["POST", "/api/v1/namespaces/a/configmaps"] : ["GET", "/api/v1/pods"];
    const sent = request(`${url}${target}`, { method, agent, headers }, (response) => {
      response.resume().once("close", () => settle(response.complete ? response.statusCode : 0));
    });
    sent.once("error", () => settle(0));
    sent.end(hasBody ? "{}" : undefined);
  });

/** Runs all users, each from its own address; every third request writes. */
const measure = async ({ child, url }, beginHostile) => {
  const beginMs = performance.now() + WARM_UP_MS + SETTLE_MS;
  const endMs = beginMs + seconds * 1_000;
  setTimeout(beginHostile, WARM_UP_MS);
  let cpuBefore = 0;
  setTimeout(() => {
    cpuBefore = cpuSeconds(child.pid);
  }, WARM_UP_MS + SETTLE_MS);
  const answers = [];
  const user = async (_, index) => {
    const localAddress = `127.0.1.${index + 1}`;
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false, localAddress });
    const client = { agent, headers: { authorization: `Bearer token-${index}` } };
    await delay((index * PAUSE_MS) / USERS);
    for (let count = 0; performance.now() < endMs; count += 1) {
      const isCounted = performance.now() >= beginMs;
      const answer = await ask(url, client, count % 3 === 2);
      if (isCounted) answers.push(answer);
      await delay(PAUSE_MS);
    }
    agent.destroy();
  };
  await Promise.all(Array.from({ length: USERS }, user));
  const sorted = answers.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  const refused = answers.filter(({ status }) => status !== 200).length;
  const cores = (cpuSeconds(child.pid) - cpuBefore) / seconds;
  return { requests: sorted.length, p50: at(0.5), p99: at(0.99), refused, cores };
};

const rows = { alone: [], "one hostile user": [], "one stranger": [] };
const kinds = { "one hostile user": "user", "one stranger": "stranger" };
for (let round = 0; round < repeat; round += 1) {
  for (const name of Object.keys(rows)) {
    const gateway = await startGateway(configuration, {
      program: values.program,
      prefix: hasOwnCore ? ["taskset", "--cpu-list", "0"] : [],
    });
    const hostile =
      kinds[name] && fork(fileURLToPath(new URL("peers/hostile-client.mjs", import.meta.url)), [gateway.url]);
    if (hostile !== undefined) setPriority(hostile.pid, constants.priority.PRIORITY_LOW);
    rows[name].push(await measure(gateway, () => hostile?.send({ kind: kinds[name] })));
    hostile?.kill();
    await stop(gateway.child);
  }
}

const medianOf = (samples, figure) =>
  samples.map((sample) => sample[figure]).toSorted((a, b) => a - b)[samples.length >> 1];
const ratioOf = (samples) => medianOf(samples, "p99") / medianOf(rows.alone, "p99");
const columns = { requests: 0, p50: 1, p99: 1, refused: 0, cores: 2 };
const lines = Object.entries(rows).map(([name, samples]) => {
  const spreads = Object.entries(columns).map(([figure, digits]) =>
    withSpread(
      samples.map((sample) => sample[figure]),
      digits,
    ),
  );
  return [name, ...spreads, `${ratioOf(samples).toFixed(2)}x`];
});
const heads = [
  "50 users",
  "requests",
  "p50, ms",
  "p99, ms",
  "refused",
  "the gateway's cores",
  "p99, of alone",
];
const figures = table(heads, lines);
console.log(figures);
const ratios = Object.keys(kinds).map((name) => ratioOf(rows[name]));
const areServed = Object.values(rows).every((samples) => medianOf(samples, "refused") === 0);
if (!areServed || ratios.some((ratio) => ratio > MOST)) process.exitCode = 1;
if (values.write) {
  const { cpus, model, kernel, node } = machine();
  const [user, stranger] = ratios.map((ratio) => ratio.toFixed(1));
  writeFileSync(
    new URL("../docs/evidence/fairness.md", import.meta.url),
    `# Fairness

The 99th percentile of 50 users' requests is ${user}x of alone beside one hostile user, and ${stranger}x
beside one stranger without credentials (wanted: ${MOST}x).

Both hold five HTTP/2 connections with 240 POSTs each whose bodies do not come, and read as often as
all users; the stranger makes up a token for each request. The users come over HTTPS, each from an
address of its own. The gateway has a core of its own, if there are several.

    node bench/fairness.mjs --repeat ${repeat} --seconds ${seconds} --write

${cpus} cores (${model}), Linux ${kernel}, Node.js ${node}; ${new Date().toISOString().slice(0, 10)}; medians of ${repeat}
(minimum-maximum)

${figures}
`,
  );
}
apiServer.close();
