// `npm run bench:kubernetes [-- --repeat 5 --mib 1024]`: Kubernetes' stream translator and Sluice between the same client-go
// load client and the same upstream, interleaved; medians, spread, and ratios of the medians. Needs Go.
import { execFileSync, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { printRows, writeResults } from "./report.mjs";

const { values } = parseArgs({
  options: {
    repeat: { type: "string", default: "5" },
    mib: { type: "string", default: "1024" },
    sessions: { type: "string", default: "1,8" },
    tests: { type: "string", default: "download,upload" },
    json: { type: "string" },
  },
});
const source = fileURLToPath(new URL("peers/kubernetes", import.meta.url));
const bin = mkdtempSync(path.join(os.tmpdir(), "sluice-bench-go-"));
const children = [];
process.on("exit", () => {
  process.exit();
  rmSync(bin, { recursive: true, force: true });
});
process.stderr.write("building Kubernetes' handlers\n");
for (const program of ["kube-upstream", "kube-proxy-go", "kube-load"]) {
  execFileSync("go", ["build", "-o", path.join(bin, program), `./${program}`], {
    cwd: source,
    stdio: "inherit",
  });
}

/** Starts a program that prints `listening ADDRESS` and returns its address. */
const startGo = async (program, ...args) => {
  const child = spawn(path.join(bin, program), ["-listen", "127.0.0.1:0", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = await once(child.stdout, "data");
  return { child, address: /listening (\S+)/.exec(String(line))[1] };
};

const upstream = await startGo("kube-upstream");
const kubernetes = await startGo("kube-proxy-go", "-upstream", `http://${upstream.address}`);
const gatewayScript = fileURLToPath(new URL("peers/gateway.mjs", import.meta.url));
// As `sluice` itself is started; see src/main.ts.
const gateway = fork(gatewayScript, [upstream.address.split(":")[1]], {
  execArgv: ["--no-incremental-marking"],
});
children.push(gateway);
const [port] = await once(gateway, "message");

const contenders = [
  { name: "Kubernetes' translator", url: `http://${kubernetes.address}`, pid: kubernetes.child.pid },
  { name: "Sluice", url: `http://127.0.0.1:${port}/api/v1/namespaces/default/pods/pod`, pid: gateway.pid },
];

const measure = async ({ url, pid }, test, sessions) => {
  const args = ["-url", url, "-via", "ws", "-test", test, "-n", String(sessions), "-token", "bench-token"];
  args.push("-bytes", String(Number(values.mib) * 1024 * 1024), "-proxy-pid", String(pid));
  const load = spawn(path.join(bin, "kube-load"), args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  load.stdout.on("data", (chunk) => {
    text += chunk;
  });
  const [code] = await once(load, "close");
  if (code !== 0) throw new Error(`kube-load ended with ${code}: ${text}`);
  return JSON.parse(text);
};

const results = [];
for (const test of values.tests.split(",")) {
  for (const sessions of values.sessions.split(",").map(Number)) {
    const samples = contenders.map(() => []);
    for (let round = -1; round < Number(values.repeat); round++) {
      for (const [index, contender] of contenders.entries()) {
        const sample = await measure(contender, test, sessions);
        if (round >= 0) samples[index].push(sample);
      }
      process.stderr.write(`\r${test}, ${sessions} sessions: round ${round + 1} of ${values.repeat} `);
    }
    process.stderr.write("\r\x1b[K");
    const rows = contenders.map(({ name }, index) => ({
      name,
      speeds: samples[index].map((sample) => sample.MiB_s),
      cpus: samples[index].map((sample) => sample.proxy_cpu_s_per_GiB),
    }));
    for (const row of rows) results.push({ test, sessions, ...row });
    printRows(test, sessions, rows);
  }
}
if (values.json !== undefined) writeResults(values.json, results);
process.exit();
