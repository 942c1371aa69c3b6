// `node scripts/draw-demo.mjs [--record|--check]` draws docs/demo.cast, a recorded terminal, as the
// animated docs/demo.svg; the same recording gives the same bytes. With --record it first makes a
// new recording: it types the lines below into a shell in its own terminal. Run it after `npm run
// build`.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { drawCast } from "./draw-cast.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const castFile = path.join(root, "docs/demo.cast");
const pictureFile = path.join(root, "docs/demo.svg");
const size = { cols: 62, rows: 20 };

/**
 * The lines to type, each once the prompt has appeared. The demo keeps running without a reader.
 */
const LINES = [
  "head -n 1 <(npx sluice demo --dir $DIR)",
  "export KUBECONFIG=$DIR/kubeconfig",
  "npx sluice exec web -- sh -c 'echo hello; exit 7'",
  "npx sluice exec web-ws -- sleep 600 &",
  "npx sluice sessions list | cut -c1-8,37-",
  "npx sluice sessions end $(npx sluice sessions list -o name)",
];
/** Matches what follows a line's prompt. */
const LATER = { 3: "a session runs", 5: "ended by" };

async function record() {
  const { spawn } = await import("@lydell/node-pty");
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-"));
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    DIR: path.join(folder, "demo"),
    PS1: "$ ",
    npm_config_progress: "false",
  };
  const shell = spawn("bash", ["--norc", "--noprofile"], { name: "xterm", ...size, cwd: root, env });
  const events = [];
  let [seen, atMs] = ["", performance.now()];
  shell.onData((text) => {
    const now = performance.now();
    events.push([Number(((now - atMs) / 1_000).toFixed(3)), "o", text]);
    atMs = now;
    seen += text;
  });
  const shown = async (text) => {
    while (!seen.includes(text)) await delay(20);
  };
  const prompted = async () => {
    while (!seen.replaceAll("\u001b[?2004h", "").endsWith("$ ")) await delay(20);
    await delay(500);
  };
  const ended = new Promise((resolve) => shell.onExit(resolve));
  try {
    for (const [index, line] of LINES.entries()) {
      await prompted();
      for (const key of line) {
        shell.write(key);
        await delay(30);
      }
      seen = "";
      shell.write("\r");
      if (LATER[index] === "a session runs") await sessionRuns(env);
      if (LATER[index] === "ended by") await shown("ended by");
      if (LATER[index] !== undefined) shell.write("\r");
    }
    await prompted();
  } finally {
    endDemo(env.DIR);
    shell.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
  const header = { version: 3, term: size, title: "sluice demo" };
  writeFileSync(castFile, `${[header, ...events].map((line) => JSON.stringify(line)).join("\n")}\n`);
}

/** The program outlives its reader, and uses a folder of its own. */
function endDemo(folder) {
  for (const line of execFileSync("ps", ["-eo", "pid=,args="], { encoding: "utf8" }).split("\n")) {
    if (!line.includes(`--dir ${folder}`)) continue;
    try {
      process.kill(Number.parseInt(line, 10));
    } catch (error) {
      if (error.code !== "ESRCH") throw error;
    }
  }
}

async function sessionRuns({ PATH, HOME, DIR }) {
  const env = { PATH, HOME, KUBECONFIG: path.join(DIR, "kubeconfig") };
  const list = ["sluice", "sessions", "list", "-o", "name"];
  while (execFileSync("npx", list, { cwd: root, env, stdio: ["ignore", "pipe", "ignore"] }).length === 0)
    await delay(100);
}

if (process.argv.includes("--record")) await record();
const drawn = drawCast(readFileSync(castFile, "utf8"));
if (process.argv.includes("--check")) {
  if (readFileSync(pictureFile, "utf8") !== drawn)
    throw new Error("docs/demo.svg is not what docs/demo.cast draws");
} else writeFileSync(pictureFile, drawn);
