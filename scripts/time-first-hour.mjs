// Runs what a newcomer types, in a fresh clone with an empty HOME: the first commands, then how-to
// pages, one after the other in one shell. Writes two sections of docs/evidence/first-hour.md.
//
//   node scripts/time-first-hour.mjs NODE NPM     such as 22 10: both come from npm's registry
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const [node, npm] = process.argv.slice(2);
if (!/^\d+$/.test(node ?? "") || !/^\d+$/.test(npm ?? "")) {
  console.error("usage: node scripts/time-first-hour.mjs NODE NPM");
  process.exit(2);
}
const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const folder = mkdtempSync(path.join(tmpdir(), "sluice-first-hour-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const clone = path.join(folder, "sluice");
const tools = path.join(folder, "tools");
for (const each of ["home", "tools"]) mkdirSync(path.join(folder, each));
execFileSync(
  "npm",
  ["install", "--silent", "--no-audit", "--no-fund", "--prefix", tools, `node@${node}`, `npm@${npm}`],
  {
    stdio: ["ignore", "ignore", "inherit"],
  },
);
const env = {
  PATH: `${path.join(tools, "node_modules/.bin")}:${process.env.PATH}`,
  HOME: path.join(folder, "home"),
  TERM: "dumb",
  // The user's own registry and certificates, which an empty HOME would hide.
  npm_config_registry: execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim(),
  NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS ?? "",
};
const versions = execFileSync("sh", ["-c", "node --version; npm --version"], { env, encoding: "utf8" })
  .trim()
  .split("\n");

const rows = [];
/**
 * Runs a shell line and interrupts it, as by Ctrl-C, after this many milliseconds. If `ready` is
 * printed, ends it with SIGTERM.
 */
async function step(line, { cwd = clone, interruptMs, ready } = {}) {
  const startedMs = performance.now();
  const child = spawn("sh", ["-c", line], { cwd, env, detached: true });
  let printed = "";
  let isReady = false;
  const read = (part) => {
    printed += part;
    if (ready === undefined || isReady || !printed.includes(ready)) return;
    isReady = true;
    process.kill(-child.pid, "SIGTERM");
  };
  child.stdout.on("data", read);
  child.stderr.on("data", read);
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve(signal ?? code)));
  if (interruptMs !== undefined) {
    await Promise.race([ended, pause(interruptMs)]);
    if (child.exitCode === null) process.kill(-child.pid, "SIGINT");
  }
  const outcome = await ended;
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  const where = path.relative(folder, cwd) || ".";
  const how = isReady
    ? ", SIGTERM when ready"
    : interruptMs === undefined
      ? ""
      : `, Ctrl-C after ${interruptMs / 1000} s`;
  rows.push(`| \`${line.replace(project, "URL")}\`${how} | ${where} | ${seconds} | ${outcome} |`);
  console.log(rows.at(-1));
}

await step(`git clone --quiet ${project} sluice`, { cwd: folder });
await step("npm ci --no-audit --no-fund");
await step("npm start", { ready: "kubectl exec" });
await step("npx sluice --version");
await step("npx sluice --version");
await step("npx sluice --version", { cwd: path.join(clone, "docs") });
await step("npx sluice --version", { interruptMs: 300 });
await step("npx sluice --version & npx sluice --version; wait $!");
await step("npx sluice exec");

/** Pages in the order of somebody who puts exec behind nginx, denies it to a group and looks. */
const PAGES = [
  ["README.md", ["How-to"], "the set-up"],
  ["behind-a-proxy.md", ["Something to try it on", "nginx"], "exec through nginx, with the demo as cluster"],
  [
    "refused.md",
    ["A gateway that refuses", "Be refused", "Ask", "Find it in log and metrics"],
    "deny a group",
  ],
  [
    "read-metrics.md",
    ["Something to look at", "Do sessions succeed?", "Which requests are refused?"],
    "see it",
  ],
];

/** Types the blocks of the pages as they stand, in one shell, and times each page. */
function typePages() {
  const script = ["trap 'kill $(jobs -p); wait' EXIT"];
  const pages = PAGES.map(([page, titles, aim]) => {
    const sections = readFileSync(path.join(clone, "docs", page), "utf8").split(/^## /m);
    const blocks = titles.flatMap((title) => {
      const section = sections.find((text) => text.startsWith(`${title}\n`));
      const found = [...(section ?? "").matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block);
      if (found.length === 0) throw new Error(`docs/${page} has no commands in "${title}"`);
      return found;
    });
    script.push(...blocks, 'echo "=== $(date +%s.%N)"');
    return { page, aim, commands: commandsIn(blocks.join("")) };
  });
  const startedMs = Date.now();
  const printed = execFileSync("bash", ["-e", "-c", script.join("\n")], {
    cwd: clone,
    env,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    timeout: 600_000,
  });
  let before = startedMs / 1_000;
  const ends = [...printed.matchAll(/^=== ([\d.]+)$/gm)].map(([, at]) => Number(at));
  return pages.map(({ page, aim, commands }, index) => {
    const seconds = (ends[index] - before).toFixed(1);
    before = ends[index];
    return `| [docs/${page}](../${page}) | ${aim} | ${commands} | ${seconds} |`;
  });
}

/** Lines of a shell that begin a command: neither here-documents nor the rest of a long line. */
function commandsIn(block) {
  const bare = block.replace(/<<-?'?(\w+)'?(.*)\n[\s\S]*?^\1$/gm, "$2").replaceAll("\\\n", "");
  return bare.split("\n").filter((line) => line.trim() !== "").length;
}

const typed = typePages();
console.log(typed.join("\n"));

const file = path.join(project, "docs/evidence/first-hour.md");
const [title, ...sections] = readFileSync(file, "utf8").split(/^(?=## )/m);
const heading = `## Node ${versions[0]}, npm ${versions[1]}`;
const table = `| typed | in | seconds | exit code |\n|---|---|---|---|\n${rows.join("\n")}\n`;
const FOLLOWED = "## Following the pages";
const others = sections.filter(
  (text) =>
    !text.startsWith(FOLLOWED) &&
    (!text.startsWith(`${heading.split(".")[0]}.`) || !text.includes(`npm ${npm}.`)),
);
const load = readFileSync("/proc/loadavg", "utf8").split(" ")[1];
others.push(
  `${heading}\n\nLoad of the last five minutes on ${availableParallelism()} cores: ${load}.\n\n${table}`,
);
others.push(`${FOLLOWED}

On ${new Date().toISOString().slice(0, 10)}, with Node ${versions[0]}: the blocks of these pages as they stand, typed by a program into
one shell, after the commands above. A reader's own time comes on top.

| page | to | commands | seconds |
|---|---|---|---|
${typed.join("\n")}
`);
writeFileSync(file, `${[title, ...others].map((part) => part.trimEnd()).join("\n\n")}\n`);
