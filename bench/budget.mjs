// `node bench/budget.mjs [--runs 1] [--mib 128] [--rounds 4]`: compares Sluice's CPU per GiB with
// the plain pipe's in the same run. Only a large regression exceeds the budgets. Exits with 1 if a
// ratio exceeds its budget in every attempt. `--runs 20` shows how often a single run would raise a
// false alarm. Needs no Go; see README.md.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createSelfSignedCertificate } from "@sluice/client/internal/net/self-signed";
import { contenders } from "./contenders.mjs";
import { readFlags } from "./flags.mjs";
import { cpuSeconds } from "./processes.mjs";

const ATTEMPTS = 3;
/**
 * Limits for Sluice's CPU per GiB divided by the pipe's: 1.5 to 2 times the ratio on a quiet
 * machine.
 */
const PLANS = [
  { name: "translate download", via: "ws", test: "download", most: 1.5 },
  { name: "translate upload", via: "ws", test: "upload", most: 2.3 },
  { name: "pass-through download", via: "spdy", test: "download", most: 1.5 },
  { name: "pass-through upload", via: "spdy", test: "upload", most: 1.5 },
];
/** With TLS, both spend most of their time in OpenSSL and the kernel. */
const MOST_WITH_TLS = 1.4;
const BUDGETS = [
  ...PLANS,
  ...PLANS.map((plan) => ({ ...plan, name: `${plan.name}, TLS`, isTls: true, most: MOST_WITH_TLS })),
  // Growth: the ratio at 64 sessions divided by the ratio at one. The pipe's cost grows, too; `npm
  // run bench -- growth` shows the curves.
  {
    name: "growth, TLS",
    of: "at 64 sessions over 1",
    via: "spdy",
    test: "download",
    isTls: true,
    grows: 64,
    most: 2,
  },
];

const { values } = readFlags({
  options: {
    runs: { type: "string", default: "1" },
    mib: { type: "string", default: "128" },
    rounds: { type: "string", default: "4" },
  },
});
const bytes = Number(values.mib) * 1024 * 1024;
const rounds = Number(values.rounds);
const SESSIONS = 4;

const folder = mkdtempSync(path.join(tmpdir(), "sluice-budget-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const forked = (file, args = []) => {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  child.once("exit", (code) => process.exit(code || 1));
  return child;
};
const tls = await createSelfSignedCertificate(["127.0.0.1"], "sluice-budget");
tls.certFile = path.join(folder, "cert.pem");
tls.keyFile = path.join(folder, "key.pem");
writeFileSync(tls.certFile, tls.certPem);
writeFileSync(tls.keyFile, tls.keyPem);
const plain = await contestants();
const encrypted = await contestants(tls);
const client = forked("client.mjs");

const startedAt = Date.now();
const ratios = BUDGETS.map(() => []);
let alarms = 0;
for (let run = 0; run < Number(values.runs); run++) {
  if (!(await isWithinBudgets())) alarms += 1;
}
const seconds = Math.round((Date.now() - startedAt) / 1000);
for (const [index, { name, most, of = "of the pipe's CPU per GiB" }] of BUDGETS.entries()) {
  const [least, greatest] = [Math.min(...ratios[index]), Math.max(...ratios[index])];
  const margin = `the nearest attempt was ${((1 - greatest / most) * 100).toFixed(0)} % below the budget`;
  console.log(
    `${name.padEnd(28)}${least.toFixed(2)}x to ${greatest.toFixed(2)}x ${of}, budget ${most}x; ${margin}`,
  );
}
console.log(`${alarms} of ${values.runs} runs above a budget in ${ATTEMPTS} attempts; ${seconds} s`);
process.exit(alarms === 0 ? 0 : 1);

/** Starts a pipe and a gateway in front of one node, all of them with TLS or all without. */
async function contestants(encryption) {
  const args = encryption === undefined ? [] : ["-tls", `${tls.certFile},${tls.keyFile}`];
  const upstream = forked("peers/upstream.mjs", args);
  const [upstreamPort] = await once(upstream, "message");
  const own = mkdtempSync(path.join(folder, "gateway-"));
  const options = { node: process.execPath, folder: own, upstreamPort, tls: encryption };
  return { pipe: await contenders.pipe.start(options), sluice: await contenders.sluice.start(options) };
}

/**
 * Repeats a measurement above its budget: a hiccup of the machine disappears, a regression does
 * not.
 */
async function isWithinBudgets() {
  let isWithin = true;
  for (const [index, budget] of BUDGETS.entries()) {
    let isMet = false;
    for (let attempt = 1; attempt <= ATTEMPTS && !isMet; attempt++) {
      const ratio =
        budget.grows === undefined
          ? await measuredRatio(budget, SESSIONS)
          : (await measuredRatio(budget, budget.grows)) / (await measuredRatio(budget, 1));
      ratios[index].push(ratio);
      isMet = ratio <= budget.most;
      if (!isMet)
        console.log(`${budget.name}: ${ratio.toFixed(2)}x in attempt ${attempt}, budget ${budget.most}x`);
    }
    if (!isMet) isWithin = false;
  }
  return isWithin;
}

/**
 * The two take turns. CPU is summed over the rounds, because the kernel counts in hundredths of a
 * second.
 */
async function measuredRatio({ via, test, isTls = false }, sessions) {
  const { pipe, sluice } = isTls ? encrypted : plain;
  const spent = { pipe: 0, sluice: 0 };
  for (let round = 0; round <= rounds; round++) {
    const ofPipe = await carry(pipe, { via: "spdy", test, isTls, sessions });
    const ofSluice = await carry(sluice, { via, test, isTls, sessions });
    // The first round warms caches and the compiler.
    if (round === 0) continue;
    spent.pipe += ofPipe;
    spent.sluice += ofSluice;
  }
  return spent.sluice / spent.pipe;
}

async function carry({ child, port }, what) {
  const before = cpuSeconds(child.pid);
  client.send({ ...what, port, bytes });
  await once(client, "message");
  return cpuSeconds(child.pid) - before;
}
