// `npm run bench [-- --repeat 5 --mib 512]`: carries exec output and input through each contender, interleaved, and
// prints medians with their spread as ratios to the plain pipe of the same run. See README.md for the method.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import os from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

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

const median = (numbers) => {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
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
    const rows = contenders.map(({ name }, index) => {
      const speeds = samples[index].map(({ mibPerSecond }) => mibPerSecond);
      const cpus = samples[index].map(({ cpuSecondsPerGib }) => cpuSecondsPerGib);
      return { name, speeds, cpus, speed: median(speeds), cpu: median(cpus) };
    });
    for (const { name, speeds, cpus, speed, cpu } of rows) {
      const [limit] = rows;
      results.push({ test, sessions, name, speeds, cpus });
      console.log(
        `${test.padEnd(9)}${String(sessions).padStart(2)}  ${name.padEnd(27)}` +
          `${speed.toFixed(0).padStart(6)} MiB/s (${Math.min(...speeds).toFixed(0)}-${Math.max(...speeds).toFixed(0)})  ${(speed / limit.speed).toFixed(2)}x   ` +
          `CPU ${cpu.toFixed(2)} s/GiB (${Math.min(...cpus).toFixed(2)}-${Math.max(...cpus).toFixed(2)})  ${(cpu / limit.cpu).toFixed(2)}x`,
      );
    }
  }
}
if (values.json !== undefined) {
  mkdirSync(new URL("results/", import.meta.url), { recursive: true });
  const machine = {
    cpus: os.cpus().length,
    model: os.cpus()[0].model,
    node: process.version,
    date: new Date().toISOString(),
  };
  writeFileSync(
    new URL(`results/${values.json}.json`, import.meta.url),
    `${JSON.stringify({ machine, results }, null, 1)}\n`,
  );
}
process.exit();
