import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { sluiceCommand } from "../../support/built-program.ts";
import { eventually } from "../../support/eventually.ts";
import { collect } from "../../support/kubectl.ts";
import { endExec, type KubeletScript, SUCCESS } from "../../support/scripted-kubelet.ts";
import { WorkerGateway } from "../../support/worker-gateway.ts";

/** Several processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 120_000 });

/** Copies stdin to stdout and succeeds at its end. */
const echo: KubeletScript = {
  onData: (name, part, fin, session) => {
    if (name !== "stdin") return;
    session.streams.get("stdout")?.write(part);
    if (fin) endExec(session, SUCCESS);
  },
};

const DENY = { rules: [{ name: "nobody", match: {}, action: "deny", message: "not today" }] };

describe.each([1, 2])("SIGHUP with %s processes that serve", (workers) => {
  let gateway: WorkerGateway;
  afterEach(() => gateway.stop());

  const start = async (): Promise<void> => {
    gateway = await WorkerGateway.start({ script: echo, workers });
  };
  const configuration = (): Record<string, unknown> =>
    JSON.parse(readFileSync(gateway.configurationFile, "utf8"));
  /** Writes the file and resolves with the line that says what became of it. */
  const reload = async (text: string): Promise<string> => {
    const before = gateway.log().length;
    gateway.write("gateway.json", text);
    gateway.signal("SIGHUP");
    return await eventually(
      "the configuration was read",
      () =>
        gateway
          .log()
          .slice(before)
          .split("\n")
          .find((line) => line.includes("the configuration ")),
      { timeoutMs: 60_000 },
    );
  };
  const refusal = async (): Promise<string> => {
    const client = gateway.exec();
    return await client.opened.then(
      () => {
        client.socket.terminate();
        return "none";
      },
      (error: Error) => error.message,
    );
  };

  it("policy, limits and log level change, sessions go on, and nothing else changes", async () => {
    await start();
    const running = gateway.exec();
    await running.opened;
    const original = configuration();
    const changed = {
      ...original,
      policy: DENY,
      logging: { level: "debug" },
      timeouts: { shutdownGracePeriod: "0s", dial: "3s" },
    };
    expect(await reload(JSON.stringify(changed))).toContain('"reloaded":["policy.rules","logging.level"]');
    await eventually("the rest is named", () => gateway.log().includes('"needRestart":["timeouts.dial"]'));
    for (let index = 0; index < 2 * workers; index++) expect(await refusal()).toContain("403");

    await reload(JSON.stringify({ ...original, policy: { limits: { maxSessionsPerUser: 1 } } }));
    expect(await refusal()).toContain("429");
    await reload(JSON.stringify(original));
    expect(await refusal()).toBe("none");

    running.send(0, "still here");
    running.closeStdin();
    expect((await running.done).stdout.toString()).toBe("still here");
  });

  it("a wrong file changes nothing, and says why", async () => {
    await start();
    const original = configuration();
    expect(await gateway.metric("sluice_config_last_reload_successful")).toBe(1);
    const readAt = await gateway.metric("sluice_config_last_reload_success_timestamp_seconds");
    expect(await reload("{ kind: Nonsense }")).toContain("could not be read again");
    expect(await gateway.metric("sluice_config_last_reload_successful")).toBe(0);
    expect(await gateway.metric("sluice_config_last_reload_success_timestamp_seconds")).toBe(readAt);
    expect(await refusal()).toBe("none");
    expect(await reload(JSON.stringify({ ...original, policy: DENY, apiVersion: "wrong" }))).toContain(
      "could not",
    );
    await reload(JSON.stringify(original));
    expect(await gateway.metric("sluice_config_last_reload_successful")).toBe(1);
  });

  it("manifests are read again", async () => {
    await start();
    const cluster = JSON.parse(
      readFileSync(path.join(path.dirname(gateway.configurationFile), "cluster.json"), "utf8"),
    );
    gateway.write("cluster.json", JSON.stringify({ ...cluster, items: [] }));
    await reload(JSON.stringify(configuration()));
    expect(await refusal()).toContain("404");
  });
});

describe("SIGHUP to workers", () => {
  it("a worker that is replaced has what was read last", async () => {
    const gateway = await WorkerGateway.start({ script: echo, workers: 2 });
    try {
      const text = JSON.parse(readFileSync(gateway.configurationFile, "utf8")) as object;
      gateway.write("gateway.json", JSON.stringify({ ...text, policy: DENY }));
      gateway.signal("SIGHUP");
      await eventually("it was read", () => gateway.log().includes("was read again"));
      const old = gateway.pidOf(0);
      process.kill(old, "SIGHUP");
      process.kill(old, "SIGKILL");
      await eventually("another one serves", () => gateway.pidOf(0) !== old, { timeoutMs: 60_000 });
      for (let index = 0; index < 4; index++) {
        await expect(gateway.exec().opened).rejects.toThrow("403");
      }
    } finally {
      await gateway.stop();
    }
  });
});

describe("the demo", () => {
  it("that is told to end while it checks its paths prints no commands for what is gone", async () => {
    const demo = spawn(...sluiceCommand("demo"), { stdio: ["ignore", "pipe", "pipe"] });
    try {
      const stdout = collect(demo.stdout);
      collect(demo.stderr);
      await eventually("its gateway serves", () => stdout().includes("ready "), { timeoutMs: 60_000 });
      demo.kill("SIGINT");
      expect(await once(demo, "exit")).toEqual([0, null]);
      expect(stdout()).toMatch(/^ready .*\n$/);
    } finally {
      demo.kill("SIGKILL");
    }
  });

  it.each<NodeJS.Signals[]>([
    ["SIGHUP"],
    ["SIGINT", "SIGINT"],
    ["SIGTERM", "SIGHUP"],
  ])("ends at %s as at SIGTERM, told twice or not, and leaves nothing behind", async (...signals) => {
    const parent = mkdtempSync(path.join(tmpdir(), "sluice-hangup-"));
    const folder = path.join(parent, "demo");
    const demo = spawn(...sluiceCommand("demo", "--dir", folder), {
      stdio: ["ignore", "pipe", "pipe"],
    });
    try {
      const stdout = collect(demo.stdout);
      collect(demo.stderr);
      await eventually("it is ready", () => stdout().includes("Stop with Ctrl-C"), { timeoutMs: 60_000 });
      expect(existsSync(folder)).toBe(true);
      const exited = once(demo, "exit");
      // Whoever reads may be gone first.
      demo.stdout.destroy();
      for (const signal of signals) demo.kill(signal);
      expect(await exited).toEqual([0, null]);
      expect(existsSync(folder)).toBe(false);
    } finally {
      demo.kill("SIGKILL");
      rmSync(parent, { recursive: true, force: true });
    }
  });
});
