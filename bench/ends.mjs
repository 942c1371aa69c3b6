// Measures how soon clients learn that a gateway ends, from its SIGTERM without a grace period: the
// first client, the last client, and the gateway's exit. Also measures how long a request to the
// admin listener waits meanwhile. Needs no Go. `node bench/ends.mjs [--sessions 1000,3000,10000]
// [--plain] [--rounds 3] [--against ../before/dist/src/main.js] [--write]`
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { competeWith, contenders } from "./contenders.mjs";
import { machineLine, table, writeSection } from "./document.mjs";
import { readFlags } from "./flags.mjs";
import { cpuSeconds } from "./processes.mjs";
import { withSpread } from "./text.mjs";
import { sessionsWithin } from "./workloads.mjs";

const { values } = readFlags({
  options: {
    sessions: { type: "string", default: "1000,3000,10000" },
    plain: { type: "boolean", default: false },
    rounds: { type: "string", default: "1" },
    write: { type: "boolean", default: false },
    against: { type: "string" },
    "against-flags": { type: "string" },
  },
});
const SAMPLE_MS = 10;
const folder = mkdtempSync(path.join(tmpdir(), "sluice-ends-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const forked = (file, args = []) =>
  fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
const tls = await createSelfSignedCertificate(["127.0.0.1"], "sluice-ends");
tls.certFile = path.join(folder, "cert.pem");
tls.keyFile = path.join(folder, "key.pem");
writeFileSync(tls.certFile, tls.certPem);
writeFileSync(tls.keyFile, tls.keyPem);
const isTls = !values.plain;
const upstream = forked("peers/upstream.mjs", isTls ? ["-tls", `${tls.certFile},${tls.keyFile}`] : []);
const [upstreamPort] = await once(upstream, "message");
if (values.against !== undefined) competeWith(values.against, values["against-flags"]);
const builds = values.against === undefined ? ["sluice"] : ["sluice-other", "sluice"];

const figures = {
  "first end, ms": ({ firstMs }) => firstMs,
  "last end, ms": ({ lastMs }) => lastMs,
  "exit, ms": ({ exitMs }) => exitMs,
  "CPU, s": ({ cpu }) => cpu,
  "memory at most, MiB": ({ mib }) => mib,
  "an admin's longest wait, ms": ({ adminMs }) => adminMs,
  "read why": ({ told }) => told,
};
const rows = [];
for (const wanted of values.sessions.split(",").map(Number)) {
  const sessions = sessionsWithin(wanted);
  const ends = Object.fromEntries(builds.map((name) => [name, []]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const name of builds) {
      ends[name].push(await measure(name, sessions));
      console.error(`${name}, ${sessions} sessions: ${JSON.stringify(ends[name].at(-1))}`);
    }
  }
  for (const name of builds) {
    const cells = Object.entries(figures).map(([title, of]) =>
      withSpread(ends[name].map(of), title.startsWith("CPU") ? 2 : 0),
    );
    rows.push([...(builds.length > 1 ? [name] : []), `${sessions}`, ...cells]);
  }
}
upstream.kill();
const columns = [...(builds.length > 1 ? ["build"] : []), isTls ? "TLS sessions" : "plain sessions"];
const results = table([...columns, ...Object.keys(figures)], rows);
console.log(results);
if (values.write) {
  const command = `node bench/ends.mjs --sessions ${values.sessions} --rounds ${values.rounds} --write`;
  const [most, first, last] = rows.at(-1);
  writeSection(
    "ends-and-reloads.md",
    "SIGTERM with many sessions",
    `Without a grace period the first of ${most} clients reads why after ${first} ms (wanted: 50), the
last after ${last} ms (wanted: 3,000).

    ${command}

${machineLine()} Medians (minimum-maximum).
Clients and nodes share the cores with the gateway.

${results}`,
  );
}

async function measure(name, sessions) {
  const own = mkdtempSync(path.join(folder, "gateway-"));
  const options = { node: process.execPath, folder: own, upstreamPort, tls: isTls ? tls : undefined };
  const { child, port, adminPort } = await contenders[name].start({ ...options, gracePeriod: "0s" });
  const client = forked("client.mjs");
  client.send({ via: "held", port, isTls, sessions });
  await once(client, "message");
  // By then the work that setting up sessions left behind is done.
  await delay(1_000);
  const before = usageOf(child.pid);
  const isOver = Promise.all([once(client, "message"), once(child, "exit")]);
  const startedAt = Date.now();
  child.kill("SIGTERM");
  const [during, adminMs, [[{ firstAt, lastAt, told }]]] = await Promise.all([
    usageUntilExit(child),
    adminUntilExit(child, adminPort),
    isOver,
  ]);
  client.disconnect();
  return {
    firstMs: firstAt - startedAt,
    lastMs: lastAt - startedAt,
    exitMs: during.ms,
    cpu: during.cpu - before.cpu,
    mib: during.mib,
    adminMs,
    told,
  };
}

function usageOf(pid) {
  return {
    cpu: cpuSeconds(pid),
    mib: Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024),
  };
}

/** Milliseconds until the process exits, its CPU shortly before that, and its peak memory. */
async function usageUntilExit(child) {
  const startedAt = Date.now();
  let last = { cpu: 0, mib: 0 };
  while (child.exitCode === null && child.signalCode === null) {
    try {
      const { cpu, mib } = usageOf(child.pid);
      last = { cpu, mib: Math.max(mib || 0, last.mib) };
    } catch {
      // The process ended between two samples.
    }
    await delay(SAMPLE_MS);
  }
  return { ...last, ms: Date.now() - startedAt };
}

/** The longest time that the admin listener took to answer before it stopped accepting. */
async function adminUntilExit(child, port) {
  let longest = 0;
  while (child.exitCode === null && child.signalCode === null) {
    const startedAt = performance.now();
    try {
      await (await fetch(`http://127.0.0.1:${port}/livez`)).text();
    } catch {
      break;
    }
    longest = Math.max(longest, performance.now() - startedAt);
    await delay(SAMPLE_MS);
  }
  return Math.round(longest);
}
