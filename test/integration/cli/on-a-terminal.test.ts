import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { spawn } from "@lydell/node-pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sluiceCommand } from "../../support/built-program.ts";
import { type RunningDemo, startDemo } from "../../support/demo.ts";
import { Sluice } from "../../support/sluice.ts";

describe("on a terminal", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-terminal-"));
  let demo: RunningDemo;
  beforeAll(async () => {
    demo = await startDemo();
  });
  afterAll(async () => {
    rmSync(folder, { recursive: true, force: true });
    await demo.stop();
  });

  /** `interruptAt`: Ctrl-C is pressed once this is shown. */
  async function endOn(
    args: readonly string[],
    environment: Record<string, string> = {},
    interruptAt?: string,
  ): Promise<[exitCode: number, shown: string]> {
    const child = spawn(...sluiceCommand(...args), {
      name: "xterm",
      cols: 200,
      env: { PATH: process.env.PATH, KUBECONFIG: demo.kubeconfig, ...environment },
    });
    let text = "";
    let key = interruptAt === undefined ? "" : "\u0003";
    child.onData((data) => {
      text += data;
      if (key === "" || !text.includes(interruptAt ?? "")) return;
      child.write(key);
      key = "";
    });
    const exitCode = await new Promise<number>((resolve) => child.onExit((end) => resolve(end.exitCode)));
    return [exitCode, text];
  }

  async function shown(args: readonly string[], environment: Record<string, string> = {}): Promise<string> {
    const [exitCode, text] = await endOn(args, environment);
    expect([exitCode, text]).toEqual([0, expect.any(String)]);
    return text;
  }

  it("explain colours its verdict, but not with NO_COLOR, and not into a pipe", async () => {
    const configuration = path.join(path.dirname(demo.kubeconfig), "gateway.yaml");
    const args = ["explain", "--config", configuration, "exec", "web"];
    expect(await shown(args)).toContain("\u001b[32mallowed\u001b[0m: no policy rule matches");
    expect(await shown(args, { NO_COLOR: "1" })).toMatch(/^allowed: no policy rule matches/);
    const piped = await new Sluice({ KUBECONFIG: demo.kubeconfig, TERM: "xterm" }).run(args);
    expect(piped.stdout).toMatch(/^allowed: no policy rule matches/);
  }, 60_000);

  it("exec -t shows a program's bytes as they are: editors move down a column by a line feed alone", async () => {
    const script = "stty -onlcr; printf 'ab\\ncd'";
    expect(await shown(["exec", "-it", "web", "--", "sh", "-c", script])).toBe("ab\ncd");
  }, 60_000);

  it("a replay that Ctrl-C ends gives the terminal back", async () => {
    const file = path.join(folder, "slow.cast");
    const header = { version: 3, term: { cols: 80, rows: 24 } };
    const events = [
      [0, "o", "\u001b[?1049hvi"],
      [9999, "o", "late"],
    ];
    writeFileSync(file, [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join(""));
    const end = await endOn(["replay", file], {}, "vi");
    expect(end).toEqual([130, expect.stringContaining("\u001b[?1049l")]);
  }, 60_000);

  it("conformance colours the sum of its report, but not with NO_COLOR", async () => {
    const args = ["conformance", "--pod", "default/web", "--only", "exec/stdout/spdy"];
    expect(await shown(args)).toContain(": \u001b[32m1 passed\u001b[0m, 0 failed, 0 skipped in ");
    expect(await shown(args, { NO_COLOR: "1" })).toContain(": 1 passed, 0 failed, 0 skipped in ");
  }, 60_000);

  it("cp shows what it has copied, and how fast", async () => {
    const [from, to] = [path.join(folder, "from"), path.join(folder, "to")];
    writeFileSync(from, Buffer.alloc(8 * 1024 * 1024));
    expect(await shown(["cp", from, `web:${to}`])).toMatch(/100% 8\.0 MiB [1-9][\d.]* MiB\/s/);
  }, 60_000);
});
