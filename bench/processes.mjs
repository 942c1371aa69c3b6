// Starts and ends the programs of a bench, and reads their figures from /proc.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const START_TIMEOUT_MS = 20_000;
const CLOCK_TICKS_A_SECOND = 100;
const running = new Set();
let folder;
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

/** Writes a file that is removed when this process exits; returns its path. */
export function temporaryFile(name, content) {
  folder ??= mkdtempSync(path.join(tmpdir(), "sluice-bench-"));
  const whole = path.join(folder, name);
  writeFileSync(whole, content);
  return whole;
}

/** Starts a program. Shows its stderr only if it ends by itself with a failure. */
export function startProgram(command, args, { env = process.env } = {}) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env });
  running.add(child);
  let said = "";
  child.stderr.on("data", (chunk) => {
    said = `${said}${chunk}`.slice(-4000);
  });
  child.once("exit", (code, signal) => {
    running.delete(child);
    if (code && signal === null && !child.killed)
      process.stderr.write(`\n${command} ended with ${code}: ${said}\n`);
  });
  return child;
}

/** Starts nginx as one process in the foreground; `folder` contains what it writes. */
export function startNginx(file, folder) {
  const settings = "daemon off; master_process off;";
  return startProgram("nginx", ["-c", file, "-p", folder, "-e", "stderr", "-g", settings]);
}

/** Resolves with the first group of the pattern's first match in the program's output. */
export function lineOf(child, pattern, output = child.stdout) {
  return new Promise((resolve, reject) => {
    let text = "";
    output.on("data", function search(chunk) {
      text += chunk;
      const match = pattern.exec(text);
      if (match === null) return;
      output.off("data", search);
      resolve(match[1]);
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new Error(`${child.spawnfile} ended with ${code} before it was ready`)),
    );
  });
}

/**
 * Starts a gateway on ports that the system chooses; `prefix` is a command that runs the gateway.
 */
export async function startGateway(configuration, { program, flags = [], prefix = [] }) {
  const serve = [process.execPath, ...flags, program, "serve", "--config", configuration];
  const [command, ...args] = [...prefix, ...serve];
  const child = startProgram(command, args);
  return { child, url: await lineOf(child, /"apiServerUrl":"([^"]+)"/, child.stderr) };
}

export async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

export async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), "close")));
  return ports;
}

/** Resolves when the port accepts connections. */
export async function accepting(port, child) {
  for (const until = Date.now() + START_TIMEOUT_MS; Date.now() < until; await delay(20)) {
    if (child.exitCode !== null) break;
    const socket = connect(port, "127.0.0.1");
    const isOpen = await new Promise((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (isOpen) return;
  }
  throw new Error(`${child.spawnargs.join(" ")} does not listen on ${port}`);
}

/** A process and all its descendants. A contender's cost is their sum. */
export function processTree(pid) {
  const tree = [pid];
  for (const parent of tree) {
    for (const task of readdirSync(`/proc/${parent}/task`)) {
      const children = readFileSync(`/proc/${parent}/task/${task}/children`, "utf8").trim();
      if (children !== "") tree.push(...children.split(" ").map(Number));
    }
  }
  return tree;
}

/** The maximum number of files that a process may open here. */
export function openFilesLimit() {
  const line = readFileSync("/proc/self/limits", "utf8").match(/^Max open files +(\d+) +(\d+)/m);
  return Number(line?.[2] ?? 1024);
}

/** User and system time of a process and its children, in seconds. */
export const cpuSeconds = (pid) =>
  processTree(pid).reduce((sum, each) => {
    const stat = readFileSync(`/proc/${each}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return sum + (Number(fields[11]) + Number(fields[12])) / CLOCK_TICKS_A_SECOND;
  }, 0);

/**
 * CPU of a process's threads so far, in seconds. The event loop is the thread whose id is the process
 * id.
 */
export function threadSeconds(pid) {
  const used = readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [nanoseconds] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    return [Number(thread), Number(nanoseconds) / 1e9];
  });
  const loop = used.find(([thread]) => thread === pid)?.[1] ?? 0;
  return { loop, others: used.reduce((sum, [, seconds]) => sum + seconds, 0) - loop };
}
