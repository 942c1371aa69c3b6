// `node bench/cp.mjs [--mib 1024 --repeat 5 --slow-runs 50 --slow-mib 32 --slow-rate 1]`: `sluice cp` against `kubectl cp` through the demo's
// gateway, both ways, time and CPU taken in turns; then downloads by a reader that takes SLOW-RATE MiB a second, each of which must
// bring every byte and exit code 0. Needs kubectl in PATH and `npm run build`. Prints a table; exits 1 when a copy was wrong.
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { lineOf, startProgram, stop } from "./processes.mjs";

const { values } = parseArgs({
  options: {
    mib: { type: "string", default: "1024" },
    repeat: { type: "string", default: "5" },
    "slow-runs": { type: "string", default: "50" },
    "slow-mib": { type: "string", default: "32" },
    "slow-rate": { type: "string", default: "1" },
  },
});
const MIB = 1024 * 1024;
const program = fileURLToPath(new URL("../dist/src/main.js", import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-cp-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const demo = startProgram(process.execPath, [program, "demo", "--dir", path.join(folder, "demo")]);
const KUBECONFIG = await lineOf(demo, /^ready (.+)$/m);
const env = { ...process.env, KUBECONFIG };

const source = path.join(folder, "source");
fill(source, Number(values.mib));
const expected = digest(source);

const contenders = {
  "sluice cp": [process.execPath, program, "cp"],
  "sluice cp --no-verify": [process.execPath, program, "cp", "--no-verify"],
  "kubectl cp": ["kubectl", "cp"],
};
const wrong = [];
console.log(`${values.mib} MiB, median of ${values.repeat}: seconds, CPU seconds of the client\n`);
for (const way of ["download", "upload"]) {
  const samples = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = 0; round <= Number(values.repeat); round += 1) {
    for (const [name, command] of Object.entries(contenders)) {
      const target = path.join(folder, "target");
      rmSync(target, { force: true });
      const ends = way === "download" ? [`web:${source}`, target] : [source, `web:${target}`];
      const sample = timed([...command, ...ends]);
      if (digest(target) !== expected) wrong.push(`${name}, ${way}: not what was sent`);
      if (round > 0 || values.repeat === "0") samples[name].push(sample);
    }
  }
  for (const [name, taken] of Object.entries(samples)) {
    const [seconds, cpu] = ["seconds", "cpu"].map((key) => median(taken.map((sample) => sample[key])));
    console.log(
      `${way.padEnd(10)}${name.padEnd(24)}${seconds.toFixed(2).padStart(8)}${cpu.toFixed(2).padStart(8)}`,
    );
  }
}

const slowBytes = Number(values["slow-mib"]) * MIB;
for (const [name, command] of [
  ["sluice exec", [process.execPath, program, "exec", "web", "--"]],
  ["kubectl exec", ["kubectl", "exec", "web", "--"]],
]) {
  let failures = 0;
  for (let run = 0; run < Number(values["slow-runs"]); run += 1) {
    const problem = await readSlowly([...command, "head", "-c", String(slowBytes), source]);
    if (problem === undefined) continue;
    failures += 1;
    console.log(`  ${name}, run ${run + 1}: ${problem}`);
    if (name.startsWith("sluice")) wrong.push(`${name}: ${problem}`);
  }
  console.log(`slow reader, ${name}: ${failures} of ${values["slow-runs"]} runs failed`);
}
await stop(demo);
if (wrong.length > 0) console.log(`\nwrong:\n  ${wrong.join("\n  ")}`);
process.exit(wrong.length > 0 ? 1 : 0);

function fill(file, mib) {
  const descriptor = openSync(file, "w");
  for (let written = 0; written < mib; written += 1) writeSync(descriptor, randomBytes(MIB));
  closeSync(descriptor);
}

function digest(file) {
  const hash = createHash("sha256");
  const descriptor = openSync(file, "r");
  const buffer = Buffer.alloc(4 * MIB);
  for (let left = statSync(file).size; left > 0; ) {
    const bytes = readSync(descriptor, buffer);
    hash.update(buffer.subarray(0, bytes));
    left -= bytes;
  }
  closeSync(descriptor);
  return hash.digest("hex");
}

/** Time on the wall, and user and system time of the process and its children, as bash tells them. */
function timed(command) {
  const script = 'TIMEFORMAT="%R %U %S"; { time "$@" 2>/dev/null >/dev/null; } 2>&1';
  const said = execFileSync("bash", ["-c", script, "bash", ...command], { env, encoding: "utf8" });
  const [seconds, user, system] = said.trim().split("\n").at(-1).split(" ").map(Number);
  return { seconds, cpu: user + system };
}

/** What was wrong, or undefined. */
async function readSlowly(command) {
  const [file, ...args] = command;
  const child = spawn(file, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  let stderr = "";
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  let bytes = 0;
  const startedMs = performance.now();
  for await (const chunk of child.stdout) {
    bytes += chunk.byteLength;
    const dueMs = (bytes / MIB / Number(values["slow-rate"])) * 1000;
    await delay(Math.max(0, dueMs - (performance.now() - startedMs)));
  }
  const [code] = await ended;
  if (code === 0 && bytes === slowBytes) return undefined;
  return `exit code ${code}, ${bytes} of ${slowBytes} bytes ${stderr.trim().slice(-200)}`;
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
