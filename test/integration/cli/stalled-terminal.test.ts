import { existsSync, readFileSync } from "node:fs";
import { type IPty, spawn } from "@lydell/node-pty";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sluiceCommand } from "../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";
import { eventually } from "../../support/eventually.ts";
import { untilStill } from "../../support/still.ts";

/** More than all the buffers between a command and a terminal. */
const OUTPUT_BYTES = 24 * 1024 * 1024;
/** Waits for a key at its end: the kernel drops what a terminal has not read when the program that leads it ends. */
const FLOOD = `echo begins; head -c ${OUTPUT_BYTES} /dev/zero | tr '\\0' z; read -r _; exit 5`;
/** What a session may add to a client that has started: read chunks, and what the collector has not taken yet. */
const MAX_GROWTH_KIB = 64 * 1024;

let demo: RunningDemo;
let child: IPty;
let ended: Promise<number>;

beforeAll(async () => {
  demo = await startDemo();
});
afterAll(() => demo.stop());
afterEach(() => {
  if (isRunning()) child.kill("SIGKILL");
});

const isRunning = (): boolean => existsSync(`/proc/${child.pid}/exe`);
const figure = (file: string, name: string): number =>
  Number(
    new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(readFileSync(`/proc/${child.pid}/${file}`, "utf8"))?.[1],
  );

/** Starts a command that says much, and a terminal that stops reading at its first word. Resolves when nothing moves any more. */
async function stall(pod: string): Promise<{ readonly seen: () => number; readonly startKib: number }> {
  child = spawn(...sluiceCommand("exec", "-it", pod, "--", "sh", "-c", FLOOD), {
    env: { ...process.env, KUBECONFIG: demo.kubeconfig },
  });
  ended = new Promise((resolve) => child.onExit(({ exitCode }) => resolve(exitCode)));
  let seen = 0;
  let text = "";
  const begun = new Promise<void>((resolve) => {
    child.onData((data) => {
      seen += data.split("z").length - 1;
      if (text.includes("begins")) return;
      text += data;
      if (!text.includes("begins")) return;
      child.pause();
      resolve();
    });
  });
  await begun;
  const startKib = figure("status", "VmRSS");
  await untilStill("what the client reads", () => figure("io", "rchar"));
  expect(seen).toBeLessThan(OUTPUT_BYTES / 2);
  return { seen: () => seen, startKib };
}

describe("a terminal that stops reading", { timeout: 120_000 }, () => {
  it.each([
    "web",
    "web-ws",
  ])("holds %s up within bounds, and gets every byte and the exit code later", async (pod) => {
    const { seen, startKib } = await stall(pod);
    expect(figure("io", "rchar")).toBeLessThan(OUTPUT_BYTES / 2);
    expect(figure("status", "VmRSS") - startKib).toBeLessThan(MAX_GROWTH_KIB);
    child.resume();
    await eventually("all of it", () => seen() >= OUTPUT_BYTES, { timeoutMs: 90_000 });
    child.write("\r");
    expect(await ended).toBe(5);
    expect(seen()).toBe(OUTPUT_BYTES);
  });

  it("can still be left by ~.", async () => {
    await stall("web");
    child.write("\r~.");
    await eventually("the client has ended", () => !isRunning());
    child.resume();
    expect(await ended).toBe(1);
  });

  it("can still be ended by SIGTERM", async () => {
    await stall("web");
    process.kill(child.pid, "SIGTERM");
    await eventually("the client has ended", () => !isRunning());
    child.resume();
    await ended;
  });
});
