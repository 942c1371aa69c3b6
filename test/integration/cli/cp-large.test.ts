import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WRITE_AND_HASH } from "../../../packages/client/src/copy/upload-scripts.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";
import { eventually } from "../../support/eventually.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { pathWithout } from "../../support/path-without.ts";
import { Sluice } from "../../support/sluice.ts";

/** Above HASHED_MEANWHILE_BYTES of `packages/client/src/copy/upload-file.ts`. */
const LARGE_BYTES = 72 * 1024 * 1024;

let demo: RunningDemo;
let sluice: Sluice;
let folder: string;
let remote: string;
let source: string;

let programs: string;

beforeAll(async () => {
  programs = mkdtempSync(path.join(tmpdir(), "sluice-cp-programs-"));
  demo = await startDemo(pathWithout("openssl", programs));
  sluice = new Sluice({ KUBECONFIG: demo.kubeconfig });
});
afterAll(async () => {
  await demo?.stop();
  rmSync(programs, { recursive: true, force: true });
});
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-cp-large-"));
  [remote, source] = [path.join(folder, "remote"), path.join(folder, "source")];
  mkdirSync(remote);
  writeFileSync(source, randomBytes(LARGE_BYTES));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const digest = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

/** The processes that have the file open. */
function openIn(file: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => openFiles(pid).includes(file));
}

function openFiles(pid: number): string[] {
  try {
    const folder = `/proc/${pid}/fd`;
    return readdirSync(folder).map((descriptor) => readlinkSync(path.join(folder, descriptor)));
  } catch {
    // It has ended, or closed one, meanwhile.
    return [];
  }
}

describe("sluice cp of a file that is hashed while it grows", () => {
  it("arrives whole, and nothing else is left", async () => {
    const result = await sluice.run(["cp", source, `web:${remote}/there`]);
    expect(result).toMatchObject({ exitCode: 0, stdout: "" });
    expect(digest(path.join(remote, "there"))).toBe(digest(source));
    expect(readdirSync(remote)).toEqual(["there"]);
  });

  it("goes on after lost connections, the first of them in its middle", async () => {
    const text = readFileSync(demo.kubeconfig, "utf8");
    const port = Number(/127\.0\.0\.1:(\d+)/.exec(text)?.[1]);
    const proxy = await startFaultProxy(port, { cutAfterBytes: 30 * 1024 * 1024, maxCuts: 2 });
    const kubeconfig = path.join(folder, "kubeconfig");
    writeFileSync(kubeconfig, text.replace(`127.0.0.1:${port}`, `127.0.0.1:${proxy.port}`));
    try {
      const result = await new Sluice({ KUBECONFIG: kubeconfig }).run(["cp", source, `web:${remote}/there`]);
      expect(result).toMatchObject({ exitCode: 0, stdout: "" });
      expect(proxy.cuts).toBe(2);
    } finally {
      await proxy.close();
    }
    expect(digest(path.join(remote, "there"))).toBe(digest(source));
    expect(readdirSync(remote)).toEqual(["there"]);
  });

  it("what reads along does not outlive its shell", async () => {
    const growing = path.join(remote, "growing");
    const shell = spawn("sh", ["-c", WRITE_AND_HASH, "sh", growing], { stdio: ["pipe", "ignore", "ignore"] });
    const ended = once(shell, "exit");
    await eventually("it is read along", () => openIn(growing).length >= 2);
    const writer = Number(readFileSync(`${growing}.pid`, "utf8"));
    // A writer that has ended, and that nobody waits for, is still there: so is one that is stopped.
    process.kill(writer, "SIGSTOP");
    try {
      shell.kill("SIGKILL");
      await ended;
      await eventually("the writer alone has it open", () => openIn(growing).join() === String(writer));
    } finally {
      process.kill(writer, "SIGKILL");
      shell.stdin.destroy();
    }
  });

  it("what is left of another upload is read whole at the end, and not taken for this one", async () => {
    // What is left of an upload of before is not trusted: it is read whole at the end.
    writeFileSync(path.join(remote, ".there.sluice-partial"), randomBytes(1024));
    const result = await sluice.run(["cp", source, `web:${remote}/there`]);
    expect(result).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("the SHA-256 differs on both ends"),
    });
    expect(readdirSync(remote)).toEqual([]);
  });
});
