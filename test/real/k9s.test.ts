import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { type IPty, spawn } from "@lydell/node-pty";
import { Terminal } from "@xterm/headless";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type RunningDemo, startDemo } from "../support/demo.ts";
import { eventually } from "../support/eventually.ts";
import { freePorts } from "../support/http/loopback.ts";

const { SLUICE_PARTS_DIR: parts = path.join(homedir(), ".cache/sluice/real-parts") } = process.env;
const k9s = path.join(parts, "go/k9s");
const isMissing = spawnSync(k9s, ["version", "--short"]).status !== 0;
const SIZE = { cols: 120, rows: 30 };
const CTRL_U = "\u0015";
/** The keys that select a pod of the demo, on nodes of both kinds. */
const PODS = { web: "", "web-ws": "j" } as const;

/** On a terminal, as its users see it. Its shells are kubectl's. */
describe.skipIf(isMissing)("k9s (needs go install github.com/derailed/k9s@v0.50.16)", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-k9s-"));
  let demo: RunningDemo;
  let terminal: Terminal;
  let child: IPty;
  let ended: Promise<unknown>;

  beforeAll(async () => {
    // It asks a stranger's server for its newest version otherwise.
    const settings = path.join(folder, "k9s");
    mkdirSync(settings);
    writeFileSync(path.join(settings, "config.yaml"), '{"k9s": {"skipLatestRevCheck": true}}');
    demo = await startDemo();
  }, 60_000);
  afterAll(async () => {
    await demo?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    child.kill("SIGKILL");
    await ended;
  });

  /** Starts k9s with the list of pods, and selects one as a user does. */
  async function open(pod: keyof typeof PODS): Promise<void> {
    terminal = new Terminal({ ...SIZE, allowProposedApi: true });
    const args = ["--kubeconfig", demo.kubeconfig, "-n", "default", "-c", "pods", "--headless"];
    child = spawn(k9s, args, {
      ...SIZE,
      name: "xterm-256color",
      env: { PATH: process.env.PATH, HOME: folder, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder },
    });
    ended = new Promise((resolve) => child.onExit(resolve));
    child.onData((data) => terminal.write(data));
    // It asks for the terminal's colours, and waits for the answers.
    terminal.onData((data) => child.write(data));
    await shows("web-ws");
    child.write(PODS[pod]);
  }

  async function shows(words: string): Promise<void> {
    await eventually(`k9s shows ${words}`, () => screen().includes(words), { timeoutMs: 30_000 });
  }

  function screen(): string {
    const { active } = terminal.buffer;
    const rows = Array.from({ length: SIZE.rows }, (_, row) => active.getLine(active.viewportY + row));
    return rows.map((row) => row?.translateToString(true) ?? "").join("\n");
  }

  it.each([
    "web",
    "web-ws",
  ] as const)("lists %s, shows its log, opens a shell in it and comes back", async (pod) => {
    await open(pod);
    child.write("l");
    await shows(`Logs(default/${pod}:main)`);
    await shows("container main is running");
    child.write("\u001b");
    await shows("Running");
    child.write("s");
    await shows(`<<K9s-Shell>> Pod: default/${pod} `);
    child.write("echo from-$((40 + 2))\r");
    await shows("from-42");
    child.write("exit\r");
    await shows("Running");
  }, 120_000);

  it.each(["web", "web-ws"] as const)("forwards a port of %s", async (pod) => {
    const [port] = await freePorts(1);
    await open(pod);
    child.write("F");
    await shows("<PortForward>");
    await shows(`default/${pod} `);
    for (const value of ["main::7", String(port), "127.0.0.1"]) {
      child.write(CTRL_U);
      child.write(value);
      await shows(value);
      child.write("\t");
    }
    child.write("\r");
    await shows(`PortForward activated ${port}`);
    // It says so before it listens.
    const echo = await eventually("the forwarded port answers", () => echoed(port ?? 0));
    expect(echo).toBe("hello");
  }, 120_000);
});

async function echoed(port: number): Promise<string> {
  const socket = net.connect(port, "127.0.0.1", () => socket.end("hello"));
  return text(socket);
}
