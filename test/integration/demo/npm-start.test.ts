import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, it } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { collect } from "../../support/kubectl.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const temporary = mkdtempSync(path.join(tmpdir(), "sluice it's "));
afterAll(() => rmSync(temporary, { recursive: true, force: true }));

it("npm start prints commands that work anywhere, and SIGTERM to npm ends the demo", async () => {
  const npm = spawn("npm", ["start"], {
    cwd: root,
    env: { ...process.env, TMPDIR: temporary },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = collect(npm.stdout);
  const closed = once(npm, "close");
  try {
    await eventually("the demo has checked itself", () => output().includes("Stop with Ctrl-C"), {
      timeoutMs: 60_000,
    });
    const [exported = ""] = /^ {2}export KUBECONFIG=.*$/m.exec(output()) ?? [];
    const [, exec = ""] = /^ {2}(.*\.cjs exec) -it web -- sh$/m.exec(output()) ?? [];
    const script = `${exported}\n${exec} web -- echo it works`;
    expect(execFileSync("sh", ["-c", script], { cwd: "/", encoding: "utf8" })).toBe("it works\n");
    const [, kubeconfig = ""] = /^ready (.*)$/m.exec(output()) ?? [];
    expect(existsSync(kubeconfig)).toBe(true);

    npm.kill("SIGTERM");
    // Closed is its output when the demo has ended, too.
    await closed;
    expect(existsSync(kubeconfig)).toBe(false);
  } finally {
    npm.kill("SIGTERM");
  }
}, 120_000);
