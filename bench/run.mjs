// `npm run bench [-- --repeat 5 --mib 512]`: carries exec output and input through each contender, interleaved, and
// prints medians with their spread as ratios to the plain pipe of the same run. See README.md for the method.
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { printRows, writeResults } from "./report.mjs";

const { values } = parseArgs({
  options: {
    repeat: { type: "string", default: "5" },
    mib: { type: "string", default: "512" },
    sessions: { type: "string", default: "1,8" },
    tests: { type: "string", default: "download,upload" },
    json: { type: "string" },
  },
});
const repeat = Number(values.repeat);
const bytes = Number(values.mib) * 1024 * 1024;
const TICKS_PER_SECOND = 100;
const children = [];
process.on("exit", () => {
  process.exit();
});

const start = async (script, ...args) => {
  const child = fork(fileURLToPath(new URL(script, import.meta.url)), args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    // As `sluice` itself is started; see src/main.ts.
    execArgv: script === "peers/gateway.mjs" ? ["--no-incremental-marking"] : [],
  });
  children.push(child);
  child.once("exit", (code) => {
    if (code) process.exitCode = 1;
  });
  if (script === "client.mjs") return { child };
  const [port] = await once(child, "message");
  return { child, port };
};

/** User and system time of a process so far, in seconds. */
const cpuSeconds = (pid) => {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
};

const upstream = await start("peers/upstream.mjs");
const contenders = [
  { name: "pipe (SPDY through)", via: "spdy", ...(await start("peers/pipe.mjs", String(upstream.port))) },
  { name: "Sluice, translate", via: "ws", ...(await start("peers/gateway.mjs", String(upstream.port))) },
];
contenders.push({ ...contenders[1], name: "Sluice, pass-through SPDY", via: "spdy" });
const client = await start("client.mjs");

const measure = async ({ via, port, child }, test, sessions) => {
  const before = cpuSeconds(child.pid);
  client.child.send({ via, test, port, sessions, bytes });
  const [{ seconds }] = await once(client.child, "message");
  return {
    mibPerSecond: bytes / 1024 / 1024 / seconds,
    cpuSecondsPerGib: (cpuSeconds(child.pid) - before) / (bytes / 1024 ** 3),
  };
};

const results = [];
for (const test of values.tests.split(",")) {
  for (const sessions of values.sessions.split(",").map(Number)) {
    const samples = contenders.map(() => []);
    for (let round = -1; round < repeat; round++) {
      for (const [index, contender] of contenders.entries()) {
        const sample = await measure(contender, test, sessions);
        // The first round warms caches and the compiler.
        if (round >= 0) samples[index].push(sample);
      }
      process.stderr.write(`\r${test}, ${sessions} sessions: round ${round + 1} of ${repeat} `);
    }
    process.stderr.write("\r\x1b[K");
    const rows = contenders.map(({ name }, index) => ({
      name,
      speeds: samples[index].map(({ mibPerSecond }) => mibPerSecond),
      cpus: samples[index].map(({ cpuSecondsPerGib }) => cpuSecondsPerGib),
    }));
    for (const row of rows) results.push({ test, sessions, ...row });
    printRows(test, sessions, rows);
  }
}
if (values.json !== undefined) writeResults(values.json, results);
process.exit();
