import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type IPty, spawn } from "@lydell/node-pty";
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
    return await endOf(startOn(sluiceCommand(...args), environment), interruptAt);
  }

  function startOn(
    [file, args]: readonly [string, string[]],
    environment: Record<string, string> = {},
  ): IPty {
    return spawn(file, args, {
      name: environment.TERM ?? "xterm",
      cols: 200,
      env: { PATH: process.env.PATH, KUBECONFIG: demo.kubeconfig, ...environment },
    });
  }

  async function endOf(child: IPty, interruptAt?: string): Promise<[exitCode: number, shown: string]> {
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

  describe("replay", () => {
    const RESET = "\u001b[?1049l";

    function recordingOf(...events: readonly unknown[]): string {
      const file = path.join(folder, "replayed.cast");
      const header = { version: 3, term: { cols: 80, rows: 24 } };
      writeFileSync(file, [header, ...events].map((line) => `${JSON.stringify(line)}\n`).join(""));
      return file;
    }
    const editor = [0, "o", "\u001b[?1049hvi"];

    it("gives the terminal back after Ctrl-C", async () => {
      const file = recordingOf(editor, [9999, "o", "late"]);
      expect(await endOn(["replay", file], {}, "vi")).toEqual([130, expect.stringContaining(RESET)]);
    }, 60_000);

    it("gives the terminal back after SIGTERM", async () => {
      const file = recordingOf(editor, [9999, "o", "late"]);
      const child = startOn(sluiceCommand("replay", file));
      const shows = child.onData((data) => {
        if (!data.includes("vi")) return;
        shows.dispose();
        process.kill(child.pid, "SIGTERM");
      });
      expect(await endOf(child)).toEqual([expect.any(Number), expect.stringContaining(RESET)]);
    }, 60_000);

    it("gives the terminal back after a line that cannot be read", async () => {
      const file = recordingOf(editor, [0, "o", "x".repeat(17 * 1024 * 1024)]);
      const [exitCode, text] = await endOn(["replay", file]);
      expect([exitCode, text]).toEqual([1, expect.stringContaining("has a line that is too long")]);
      expect(text).toContain(RESET);
    }, 60_000);

    it("gives the terminal back while Ctrl-Z stops it, and goes on after fg", async () => {
      const file = recordingOf(editor, [1, "o", "later"]);
      const command = sluiceCommand("replay", file).flat();
      const child = startOn(["sh", ["-mc", '"$@"; echo stopped; fg; echo ended', "sh", ...command]]);
      const shows = child.onData((data) => {
        if (!data.includes("vi")) return;
        shows.dispose();
        child.write("\u001a");
      });
      const [exitCode, text] = await endOf(child);
      const places = [RESET, "stopped", "later", "ended"].map((part) => text.indexOf(part));
      expect(places, text).toEqual(places.toSorted((one, other) => one - other));
      expect([exitCode, places.includes(-1)]).toEqual([0, false]);
    }, 60_000);

    it("shows no keys, and leaves none to the shell after it; Space pauses it and goes on", async () => {
      const file = recordingOf([0, "o", "one"], [2, "o", "two"]);
      const command = sluiceCommand("replay", file).flat();
      const child = startOn([
        "sh",
        ["-c", '"$@"; stty -a; read -r typed; echo "got $typed"', "sh", ...command],
      ]);
      let begun = 0;
      let waited = 0;
      const steps: Record<string, () => void> = {
        one: () => {
          begun = performance.now();
          child.write("rm\r ");
          setTimeout(() => child.write(" "), 2_500);
        },
        two: () => {
          waited = performance.now() - begun;
        },
        icanon: () => child.write("later\r"),
      };
      let seen = "";
      child.onData((data) => {
        seen += data;
        for (const [word, step] of Object.entries(steps)) {
          if (!seen.includes(word)) continue;
          delete steps[word];
          step();
        }
      });
      const [exitCode, text] = await endOf(child);
      expect([exitCode, text]).toEqual([0, expect.stringContaining("got later")]);
      expect(text).toMatch(/^onetwo\W[\s\S]* icanon [\s\S]* echo /);
      expect(waited).toBeGreaterThan(4_000);
    }, 60_000);

    it("says that a file is no recording, and nothing else", async () => {
      const file = path.join(folder, "none.cast");
      writeFileSync(file, "none\n");
      expect(await endOn(["replay", file])).toEqual([1, `sluice replay: ${file} is not a recording\r\n`]);
    }, 60_000);

    it("begins a line at its end on a terminal without escape sequences", async () => {
      const file = recordingOf([0, "o", "hi"]);
      expect(await endOn(["replay", file], { TERM: "dumb" })).toEqual([0, "hi\r\n"]);
    }, 60_000);
  });

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
