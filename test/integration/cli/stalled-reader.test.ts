import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { sluiceCommand } from "../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";
import { eventually } from "../../support/eventually.ts";
import { collect } from "../../support/kubectl.ts";
import { Sluice } from "../../support/sluice.ts";
import { untilStill } from "../../support/still.ts";

/** Prints 16 MiB after a line of input, slowly enough for a viewer that reads everything. */
const FLOOD =
  "read -r _; for i in $(seq 160); do head -c 100000 /dev/zero | tr '\\0' z; sleep 0.01; done; exec cat";
/** How much a view may grow the client: chunks that were read, and uncollected garbage. */
const MAX_GROWTH_KIB = 48 * 1024;

let demo: RunningDemo;
let sluice: Sluice;
let file = "";
beforeAll(async () => {
  demo = await startDemo();
  sluice = new Sluice({ KUBECONFIG: demo.kubeconfig });
  file = path.join(path.dirname(demo.kubeconfig), "long.cast");
  const event = `[0,"o","${"x".repeat(1_000)}"]\n`;
  writeFileSync(file, `{"version":3,"term":{"cols":80,"rows":24}}\n${event.repeat(2_000)}`);
}, 60_000);
afterAll(async () => {
  rmSync(file, { force: true });
  await demo?.stop();
});

const residentKib = (pid: number | undefined): number =>
  Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);

it("of a view costs little memory, and does not hold up Ctrl-C", { timeout: 60_000 }, async () => {
  const owner = sluice.start(["exec", "-i", "web", "--", "sh", "-c", FLOOD]);
  let sent = 0;
  owner.stdout.on("data", (chunk: Buffer) => {
    sent += chunk.byteLength;
  });
  let name = "";
  await eventually("the session is listed", async () => {
    name = (await sluice.run(["sessions", "list", "-o", "name"])).stdout.trim();
    return name !== "";
  });
  const viewer = sluice.start(["sessions", "watch", name]);
  await eventually("the viewer views", async () => {
    const metrics = await (await fetch(`${demo.adminUrl}/metrics`)).text();
    return /^sluice_session_viewers 1$/m.test(metrics);
  });
  const before = residentKib(viewer.pid);
  owner.stdin.write("go\n");
  await untilStill("the flood", () => sent, 15_000_000);
  expect(residentKib(viewer.pid) - before).toBeLessThan(MAX_GROWTH_KIB);
  viewer.kill("SIGINT");
  expect(await once(viewer, "exit")).toEqual([130, null]);
  owner.kill("SIGKILL");
  await once(owner, "close");
});

it("of a replay does not hold up Ctrl-C", async () => {
  const player = sluice.start(["replay", file]);
  await once(player.stdout, "readable");
  await untilStill("what is played", () =>
    Number(/^rchar: (\d+)/m.exec(readFileSync(`/proc/${player.pid}/io`, "utf8"))?.[1]),
  );
  player.kill("SIGINT");
  expect(await once(player, "exit")).toEqual([130, null]);
});

it.each([
  ["recordings export FILE"],
  ["replay FILE"],
  ["sessions list -A"],
])("on a full disk: %s is one line and exit code 1", async (line) => {
  const args = line.split(" ").map((word) => (word === "FILE" ? file : word));
  const full = openSync("/dev/full", "w");
  const child = spawn(...sluiceCommand(...args), {
    env: { ...process.env, KUBECONFIG: demo.kubeconfig },
    stdio: ["ignore", full, "pipe"],
  });
  closeSync(full);
  const stderr = collect(child.stderr as NonNullable<typeof child.stderr>);
  const [exitCode] = await once(child, "close");
  const [command] = args;
  expect([exitCode, stderr()]).toEqual([
    1,
    `sluice ${command}: the output could not be written: write: no space left on device\n`,
  ]);
});
