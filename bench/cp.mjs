// `node bench/cp.mjs [--mib 1024 --repeat 5 --small-repeat 11 --files 10000 --files-repeat 3
// --slow-runs 50 --slow-at-once 10 --slow-mib 8 --slow-rate 1 --stopped-mib 64 --link-mib-s 0]`:
// compares `sluice cp` with `kubectl cp` through the demo's gateway, both ways: one large file, one
// of 1 KiB, and a folder of small files. The contenders take turns; time and CPU are measured. Then
// tests readers that take SLOW-RATE MiB a second and stall for a second in between, here
// (downloads) and in the container (uploads): each run must deliver every byte and exit with 0.
// Last, copies STOPPED-MIB while the program that takes the bytes (the client of a download, the
// writer of an upload in the container) is repeatedly stopped for a second. Needs kubectl in PATH
// and `npm run build`. 0 leaves a part out. Prints tables; exits with 1 if a copy was wrong.
// `--link-mib-s`: the comparisons use a link of that many MiB a second; 0: no link.
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  createReadStream,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";
import { lineOf, startProgram, stop } from "./processes.mjs";

const { values } = readFlags({
  options: {
    mib: { type: "string", default: "1024" },
    repeat: { type: "string", default: "5" },
    "small-repeat": { type: "string", default: "11" },
    files: { type: "string", default: "10000" },
    "files-repeat": { type: "string", default: "3" },
    "slow-runs": { type: "string", default: "50" },
    "slow-at-once": { type: "string", default: "10" },
    "slow-mib": { type: "string", default: "8" },
    "slow-rate": { type: "string", default: "1" },
    "stopped-mib": { type: "string", default: "64" },
    "link-mib-s": { type: "string", default: "0" },
  },
});
const MIB = 1024 * 1024;
/** Reads `$1` bytes and waits a second, `$2` times, then reads to the end. Prints the SHA-256. */
const SLOW_READER =
  '{ i=0; while [ $i -lt "$2" ]; do head -c "$1"; sleep 1; i=$((i+1)); done; cat; } | sha256sum';
const program = fileURLToPath(new URL("../dist/src/main.js", import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-cp-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const demo = startProgram(process.execPath, [program, "demo", "--dir", path.join(folder, "demo")]);
const KUBECONFIG = await lineOf(demo, /^ready (.+)$/m);
const link = values["link-mib-s"] === "0" ? undefined : await overLink(values["link-mib-s"]);
const env = { ...process.env, KUBECONFIG };

const contenders = {
  "sluice cp": [process.execPath, program, "cp"],
  "sluice cp --no-verify": [process.execPath, program, "cp", "--no-verify"],
  "kubectl cp": ["kubectl", "cp"],
};
const wrong = [];
const source = path.join(folder, "source");
fill(source, Math.max(Number(values.mib), Number(values["slow-mib"])) * MIB);
const small = path.join(folder, "small");
fill(small, 1024);
compare(`${values.mib} MiB`, source, Number(values.repeat));
compare("1 KiB", small, Number(values["small-repeat"]));
if (values.files !== "0" && values["files-repeat"] !== "0") {
  const tree = path.join(folder, "tree");
  for (let index = 0; index < Number(values.files); index += 1) {
    const below = path.join(tree, `folder-${index % 100}`);
    mkdirSync(below, { recursive: true });
    writeFileSync(path.join(below, `file-${index}`), randomBytes(200 + ((index * 37) % 3000)));
  }
  compare(`${values.files} files`, tree, Number(values["files-repeat"]));
}

const slowBytes = Number(values["slow-mib"]) * MIB;
const slowHash = digestOfStart(source, slowBytes);
for (const [name, command] of [
  ["sluice cp", [process.execPath, program, "cp", "-q"]],
  ["sluice exec", [process.execPath, program, "exec"]],
  ["kubectl exec", ["kubectl", "exec"]],
]) {
  if (slowBytes === 0) break;
  const isCopy = name === "sluice cp";
  const slowSource = path.join(folder, "slow");
  if (isCopy)
    execFileSync("head", ["-c", String(slowBytes), source], {
      stdio: ["ignore", openSync(slowSource, "w"), "inherit"],
    });
  const down = isCopy ? [`web:${slowSource}`, "-"] : ["web", "--", "head", "-c", String(slowBytes), source];
  await fiftyTimes(`slow reader here, ${name}`, () => readSlowly([...command, ...down]));
  // kubectl cp and sluice cp write to files, which are not slow, so in the container a program
  // reads slowly.
  if (!isCopy) {
    const up = ["-i", "web", "--", "sh", "-c", SLOW_READER];
    await fiftyTimes(`slow reader in the container, ${name}`, () => writeToSlow([...command, ...up]));
  }
}
if (values["stopped-mib"] !== "0") await compareStopped();
if (link !== undefined) await stop(link);
await stop(demo);
if (wrong.length > 0) console.log(`\nwrong:\n  ${wrong.join("\n  ")}`);
process.exit(wrong.length > 0 ? 1 : 0);

/**
 * Every contender copies the original there and back in each round; the first round does not count.
 */
function compare(what, original, repeat) {
  if (repeat === 0) return;
  const expected = digest(original);
  console.log(`${what}, median of ${repeat}: seconds, CPU seconds of the client\n`);
  for (const way of ["download", "upload"]) {
    const samples = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
    for (let round = 0; round <= repeat; round += 1) {
      for (const [name, command] of Object.entries(contenders)) {
        const target = path.join(folder, "target");
        rmSync(target, { recursive: true, force: true });
        const ends = way === "download" ? [`web:${original}`, target] : [original, `web:${target}`];
        const sample = timed([...command, ...ends]);
        if (digest(target) !== expected) wrong.push(`${name}, ${way} of ${what}: not what was sent`);
        if (round > 0) samples[name].push(sample);
      }
    }
    for (const [name, taken] of Object.entries(samples)) {
      const [seconds, cpu] = ["seconds", "cpu"].map((key) => median(taken.map((sample) => sample[key])));
      console.log(
        `${way.padEnd(10)}${name.padEnd(24)}${seconds.toFixed(2).padStart(8)}${cpu.toFixed(2).padStart(8)}`,
      );
    }
  }
  console.log("");
}

/** Puts a link in front of the gateway that the kubeconfig names. */
async function overLink(mibPerSecond) {
  const text = readFileSync(KUBECONFIG, "utf8");
  const port = /127\.0\.0\.1:(\d+)/.exec(text)[1];
  const program = startProgram(process.execPath, [
    fileURLToPath(new URL("link.mjs", import.meta.url)),
    port,
    mibPerSecond,
  ]);
  const linkPort = await lineOf(program, /^listening (\d+)$/m);
  writeFileSync(KUBECONFIG, text.replace(`127.0.0.1:${port}`, `127.0.0.1:${linkPort}`));
  return program;
}

function fill(file, bytes) {
  const descriptor = openSync(file, "w");
  for (let left = bytes; left > 0; left -= MIB) writeSync(descriptor, randomBytes(Math.min(left, MIB)));
  closeSync(descriptor);
}

/** Digest of a file, or of a folder's files in the order of their names; "" if nothing is there. */
function digest(file) {
  const stats = statSync(file, { throwIfNoEntry: false });
  if (stats === undefined) return "";
  const hash = createHash("sha256");
  const files = stats.isDirectory()
    ? readdirSync(file, { recursive: true })
        .sort()
        .map((name) => path.join(file, name))
    : [file];
  const buffer = Buffer.alloc(4 * MIB);
  for (const each of files) {
    if (statSync(each).isDirectory()) continue;
    hash.update(path.relative(file, each));
    const descriptor = openSync(each, "r");
    for (let bytes = -1; bytes !== 0; ) {
      bytes = readSync(descriptor, buffer);
      hash.update(buffer.subarray(0, bytes));
    }
    closeSync(descriptor);
  }
  return hash.digest("hex");
}

/**
 * Wall-clock time, and user and system time of the process and its children, as reported by bash.
 */
function timed(command) {
  const script = 'TIMEFORMAT="%R %U %S"; { time "$@" 2>/dev/null >/dev/null; } 2>&1';
  const said = execFileSync("bash", ["-c", script, "bash", ...command], { env, encoding: "utf8" });
  const [seconds, user, system] = said.trim().split("\n").at(-1).split(" ").map(Number);
  return { seconds, cpu: user + system };
}

async function fiftyTimes(what, attempt) {
  let failures = 0;
  let started = 0;
  const runs = async () => {
    while (started < Number(values["slow-runs"])) {
      const run = ++started;
      const problem = await attempt();
      if (problem === undefined) continue;
      failures += 1;
      console.log(`  ${what}, run ${run}: ${problem}`);
      if (what.includes("sluice")) wrong.push(`${what}: ${problem}`);
    }
  };
  await Promise.all(Array.from({ length: Number(values["slow-at-once"]) }, runs));
  console.log(`${what}: ${failures} of ${values["slow-runs"]} runs failed`);
}

function digestOfStart(file, bytes) {
  return execFileSync("sh", ["-c", 'head -c "$1" "$2" | sha256sum', "sh", String(bytes), file], {
    encoding: "utf8",
  }).slice(0, 64);
}

/**
 * Returns the problem, or undefined. The container must have the whole input and report its digest
 * before the command ends.
 */
async function writeToSlow(command) {
  const [file, ...args] = command;
  const pieces = String(Math.ceil(slowBytes / (values["slow-rate"] * MIB)));
  const child = spawn(file, [...args, "sh", String(Number(values["slow-rate"]) * MIB), pieces], {
    env,
    stdio: ["pipe", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  child.stdin.on("error", () => {});
  createReadStream(source, { end: slowBytes - 1 }).pipe(child.stdin);
  const [code] = await ended;
  if (code === 0 && stdout.startsWith(slowHash)) return undefined;
  return `exit code ${code}, ${JSON.stringify(stdout)} ${stderr.trim().slice(-200)}`;
}

/** Returns the problem, or undefined. */
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
    // Takes a second's share at once, and then nothing for the rest of the second.
    const dueMs = Math.floor(bytes / MIB / Number(values["slow-rate"])) * 1000;
    await delay(Math.max(0, dueMs - (performance.now() - startedMs)));
  }
  const [code] = await ended;
  if (code === 0 && bytes === slowBytes) return undefined;
  return `exit code ${code}, ${bytes} of ${slowBytes} bytes ${stderr.trim().slice(-200)}`;
}

/**
 * Copies to files and stops the program that takes the bytes, as a debugger or a swapping machine
 * would.
 */
async function compareStopped() {
  const file = path.join(folder, "stopped");
  fill(file, Number(values["stopped-mib"]) * MIB);
  const expected = digest(file);
  let copies = 0;
  for (const [name, way] of [
    ["sluice cp", "download"],
    ["sluice cp", "upload"],
    ["kubectl cp", "download"],
  ]) {
    await fiftyTimes(
      `stopped taker of ${way === "upload" ? "an upload" : "a download"}, ${name}`,
      async () => {
        const target = path.join(folder, `target-${++copies}`);
        const growing = name === "sluice cp" ? path.join(folder, `.target-${copies}.sluice-partial`) : target;
        const ends = way === "download" ? [`web:${file}`, target] : [file, `web:${target}`];
        const [command, ...args] = [...contenders[name], ...ends];
        const child = spawn(command, args, { env, stdio: "ignore" });
        const ended = once(child, "close");
        const stops = await stopAgainAndAgain(child, growing, way === "download" ? child.pid : undefined);
        const [code] = await ended;
        const isWhole = digest(target) === expected;
        rmSync(target, { force: true });
        if (stops === 0) return "it was over before it could be stopped";
        return code === 0 && isWhole ? undefined : `exit code ${code}, ${isWhole ? "" : "not "}what was sent`;
      },
    );
  }
}

/**
 * Stops a process for a second, up to three times, once the file `growing` has grown: `taker`, or
 * the process whose id is in the file beside `growing`. Returns the number of stops.
 */
async function stopAgainAndAgain(child, growing, taker) {
  let stops = 0;
  while (child.exitCode === null && stops < 3) {
    const isGrowing = (statSync(growing, { throwIfNoEntry: false })?.size ?? 0) > 0;
    try {
      const pid = isGrowing ? (taker ?? Number(readFileSync(`${growing}.pid`, "utf8"))) : 0;
      if (pid > 0) {
        process.kill(pid, "SIGSTOP");
        stops += 1;
        await delay(1000);
        process.kill(pid, "SIGCONT");
      }
    } catch {
      // The process has ended, or has not written its id yet.
    }
    await delay(2);
  }
  return stops;
}

function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}
