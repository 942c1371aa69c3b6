// Measures how soon kubectl exits after `sluice sessions end`, on each plan, against `sluice demo`.
// For bench/session-lists.mjs.
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const MAIN = fileURLToPath(new URL("../dist/src/main.js", import.meta.url));
const WAIT_MS = 30_000;
/** The demo's two nodes, and both protocols of kubectl, make up every plan. */
const WAYS = ["web", "web-ws"].flatMap((pod) =>
  ["true", "false"].map((websockets) => ({ pod, env: { KUBECTL_REMOTE_COMMAND_WEBSOCKETS: websockets } })),
);

/** Milliseconds and exit codes by kubectl's protocol and plan. Rejects if kubectl is not installed. */
export async function measureEnds(rounds) {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-session-ends-"));
  const demo = spawn(process.execPath, [MAIN, "demo", "--dir", folder], { stdio: "ignore" });
  const kubeconfig = path.join(folder, "kubeconfig");
  try {
    await until("the demo", async () => existsSync(kubeconfig) && (await listed(kubeconfig)) !== undefined);
    const found = new Map();
    for (let round = 0; round < rounds; round++)
      for (const way of WAYS) {
        const { title, ms, code } = await measureOne(kubeconfig, way);
        const before = found.get(title) ?? { ms: [], codes: new Set() };
        before.ms.push(ms);
        before.codes.add(code);
        found.set(title, before);
      }
    return found;
  } finally {
    const isOver = demo.exitCode !== null || once(demo, "exit");
    demo.kill("SIGTERM");
    await isOver;
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureOne(kubeconfig, { pod, env }) {
  const args = ["--kubeconfig", kubeconfig, "exec", "-i", pod, "--", "cat"];
  const kubectl = spawn("kubectl", args, {
    env: { ...process.env, ...env },
    stdio: ["pipe", "ignore", "ignore"],
  });
  try {
    const exited = once(kubectl, "exit");
    let session;
    await until("the session", async () => {
      [session] = (await listed(kubeconfig)) ?? [];
      return session !== undefined;
    });
    const startedMs = performance.now();
    const end = run(process.execPath, [
      MAIN,
      "sessions",
      "end",
      session.metadata.name,
      "--kubeconfig",
      kubeconfig,
    ]);
    const [code] = await exited;
    const ms = performance.now() - startedMs;
    await end;
    await until("the end", async () => (await listed(kubeconfig))?.length === 0);
    return { title: `${session.spec.protocol}, ${session.spec.plan}`, ms, code };
  } finally {
    kubectl.kill();
  }
}

/** Undefined while the gateway does not answer. */
async function listed(kubeconfig) {
  const args = [MAIN, "sessions", "list", "-o", "json", "--kubeconfig", kubeconfig];
  const { stdout } = await run(process.execPath, args).catch(() => ({ stdout: "{}" }));
  return JSON.parse(stdout).items;
}

async function until(what, isTrue) {
  for (const startedMs = performance.now(); !(await isTrue()); await delay(50))
    if (performance.now() - startedMs > WAIT_MS) throw new Error(`${what} did not come`);
}
