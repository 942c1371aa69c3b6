import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { sluiceCommand } from "./built-program.ts";
import { eventually } from "./eventually.ts";
import { collect } from "./kubectl.ts";

export interface RunningDemo {
  kubeconfig: string;
  /** Base URL of the admin listener. */
  adminUrl: string;
  stop(): Promise<void>;
}

/**
 * Starts `sluice demo` as its users do, in a folder of its own, and waits until it is ready and has
 * checked itself. `searchPath`: the PATH of its containers. `commandOf`: replaces the program under
 * test.
 */
export async function startDemo(
  searchPath: string | undefined = process.env.PATH,
  commandOf = sluiceCommand,
): Promise<RunningDemo> {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-demo-"));
  const demo = spawn(...commandOf("demo", "--dir", folder), {
    env: { ...process.env, PATH: searchPath },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const stdout = collect(demo.stdout);
  const stderr = collect(demo.stderr);
  const closed = once(demo, "close");
  const stop = async () => {
    const hasEndedEarly = demo.exitCode !== null || demo.signalCode !== null;
    demo.kill("SIGTERM");
    const timer = setTimeout(() => demo.kill("SIGKILL"), 15_000);
    const [exitCode] = await closed;
    clearTimeout(timer);
    rmSync(folder, { recursive: true, force: true });
    if (hasEndedEarly || exitCode !== 0) {
      const when = hasEndedEarly ? "before it was stopped" : "after SIGTERM";
      throw new Error(
        `the demo ended with ${exitCode ?? demo.signalCode} ${when}: ${stdout().slice(-500)}${stderr().slice(-2_000)}`,
      );
    }
  };
  try {
    // After "ready" it checks itself; its counters stand still only after that.
    const checked = () => demo.exitCode !== null || stdout().includes("Stop with Ctrl-C");
    await eventually("the demo has checked itself", checked, { timeoutMs: 50_000 });
    const kubeconfig = /^ready (.+)$/m.exec(stdout())?.[1];
    if (kubeconfig === undefined || demo.exitCode !== null)
      throw new Error(`the demo ended with ${demo.exitCode}`);
    return { kubeconfig, adminUrl: readFileSync(path.join(folder, "admin-url"), "utf8").trim(), stop };
  } catch (error) {
    demo.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
    throw new Error(`the demo did not start; stdout: ${stdout()}; stderr: ${stderr().slice(-2_000)}`, {
      cause: error,
    });
  }
}
