// `node bench/start-up.mjs [--repeat 15 --binary FILE]`: measures an `exec` of 1 KiB from the start
// of the program to its first byte and to its end, and its CPU. Compares `sluice` as installed, its
// single binary, and kubectl, in turns through the demo's gateway; an empty script shows the cost
// of starting Node. Run `npm run build` first.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { readFlags } from "./flags.mjs";
import { lineOf, startProgram, stop } from "./processes.mjs";
import { median } from "./results.mjs";
import { withSpread } from "./text.mjs";

const { values } = readFlags({
  options: { repeat: { type: "string", default: "15" }, binary: { type: "string" } },
});
const installed = fileURLToPath(new URL("../dist/bin/sluice.cjs", import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), "sluice-bench-start-up-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const demo = startProgram(process.execPath, [installed, "demo", "--dir", path.join(folder, "demo")]);
// Node reads the files that these name at each start, which is a cost of this machine only.
const {
  NODE_EXTRA_CA_CERTS: _extra,
  SSL_CERT_FILE: _file,
  SSL_CERT_DIR: _folder,
  ...inherited
} = process.env;
const env = { ...inherited, KUBECONFIG: await lineOf(demo, /^ready (.+)$/m) };

const exec = ["exec", "web", "--", "head", "-c", "1024", "/dev/zero"];
const contenders = {
  "an empty script": [process.execPath, "-e", "process.stdout.write(Buffer.alloc(1024))"],
  "sluice exec": [process.execPath, installed, ...exec],
  ...(values.binary && { "sluice exec, single binary": [values.binary, ...exec] }),
  "kubectl exec": ["kubectl", ...exec],
};
const samples = new Map(Object.keys(contenders).map((name) => [name, []]));
for (let round = 0; round <= Number(values.repeat); round += 1) {
  for (const [name, command] of Object.entries(contenders)) {
    const sample = await timed(command);
    if (round > 0) samples.get(name).push(sample);
  }
}
await stop(demo);

console.log(`Node.js ${process.versions.node}, median of ${values.repeat} with minimum and maximum, in ms\n`);
console.log("| | first byte | end | CPU | of kubectl's CPU |\n|---|---|---|---|---|");
const cpuOf = (name) => median(samples.get(name).map(({ cpuMs }) => cpuMs));
for (const [name, taken] of samples) {
  const [first, end, cpu] = ["firstMs", "endMs", "cpuMs"].map((key) =>
    withSpread(
      taken.map((sample) => sample[key]),
      0,
    ),
  );
  console.log(
    `| ${name} | ${first} | ${end} | ${cpu} | ${(cpuOf(name) / cpuOf("kubectl exec")).toFixed(2)}x |`,
  );
}

/**
 * Wall-clock time, and user and system time of the process and its children, as reported by bash.
 * Throws unless 1 KiB arrived.
 */
async function timed(command) {
  const script = 'TIMEFORMAT="%U %S"; { time "$@" 2>/dev/null 1>&3; } 3>&1 1>&2 2>&4';
  const startMs = performance.now();
  const child = spawn("bash", ["-c", script, "bash", ...command], {
    env,
    stdio: ["ignore", "pipe", "inherit", "ignore", "pipe"],
  });
  let [bytes, firstMs, times] = [0, undefined, ""];
  child.stdout.on("data", (chunk) => {
    firstMs ??= performance.now() - startMs;
    bytes += chunk.length;
  });
  child.stdio[4].on("data", (chunk) => {
    times += chunk;
  });
  await once(child, "close");
  const endMs = performance.now() - startMs;
  if (bytes !== 1024) throw new Error(`${command.join(" ")}: ${bytes} bytes`);
  const [user, system] = times.trim().split(" ").map(Number);
  return { firstMs, endMs, cpuMs: (user + system) * 1000 };
}
