import { connect } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { FakeNode } from "../../../../packages/lab/src/fake-node/fake-node.ts";
import { eventually } from "../../../support/eventually.ts";
import { runWebNode } from "../../../support/fake-nodes.ts";
import { type FaultProxy, startFaultProxy } from "../../../support/fault-proxy.ts";
import { GatewayFiles, TESTER_TOKEN } from "../../../support/gateway-files.ts";
import { ResumedShell } from "../../../support/resumed-shell.ts";
import { type LogLine, type ServedGateway, serveGateway } from "../../../support/served-gateway.ts";

/** Several programs start one after the other, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 180_000, expect: { poll: { timeout: 60_000 } } });

const READY = "the gateway is ready";
const FAILED = "the program could not be replaced, and serves on";

let node: FakeNode;
let files: GatewayFiles;
let first: ServedGateway;
let wire: FaultProxy | undefined;
afterEach(async () => {
  for (const pid of pids()) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  await first.exited;
  await wire?.close();
  wire = undefined;
  await node.close();
  files.remove();
});

async function start(configuration: object = {}): Promise<void> {
  node = await runWebNode();
  files = new GatewayFiles({
    nodes: [{ name: node.name, port: node.port }],
    pods: [{ name: "web", nodeName: node.name, container: "main", uid: "web" }],
    timeouts: { shutdownGracePeriod: "60s" },
    configuration,
  });
  first = await serveGateway(files.configurationFile);
}

const logged = (message: string): readonly LogLine[] => first.logLines().filter(({ msg }) => msg === message);
/** Of all programs that have served; they have one standard error. */
const pids = (): number[] => logged(READY).map(({ pid }) => pid as number);

/** Resolves when so many programs have served. */
async function replaceTo(count: number): Promise<void> {
  process.kill(pids().at(-1) as number, "SIGUSR2");
  await eventually(
    () => `${count} programs served: ${first.log().slice(-2_000)}`,
    () => pids().length === count,
    {
      timeoutMs: 60_000,
    },
  );
}

/** New connections with a request each, one after the other, until it is stopped. */
function hammer(url: string) {
  const failures: string[] = [];
  let count = 0;
  let isOver = false;
  const ask = async (): Promise<void> => {
    while (!isOver) {
      count += 1;
      const headers = { Authorization: `Bearer ${TESTER_TOKEN}`, Connection: "close" };
      await fetch(`${url}/version`, { headers }).then(
        async (answer) => {
          await answer.text();
          if (answer.status !== 200) failures.push(String(answer.status));
        },
        (error: Error) => void failures.push(`${error.message}: ${error.cause}`),
      );
    }
  };
  const loops = [ask(), ask()];
  return async () => {
    isOver = true;
    await Promise.all(loops);
    return { failures, count };
  };
}

describe.each([
  ["one process", {}],
  ["two workers", { workers: 2 }],
])("SIGUSR2 to %s", (_name, configuration) => {
  it("starts the program again: no connection is refused, and sessions go on in the old one", async () => {
    await start(configuration);
    const { apiServerUrl } = first.ready;
    const stop = hammer(apiServerUrl);
    wire = await startFaultProxy(Number(new URL(apiServerUrl).port), { cutAfterBytes: 1e12, maxCuts: 0 });
    const shell = new ResumedShell(`http://127.0.0.1:${wire.port}`);
    await shell.type("kept=6; echo ready-$((kept * 7))", "ready-42");
    await replaceTo(2);
    const [old, next] = logged(READY);
    expect(next).toMatchObject({ apiServerUrl: old?.apiServerUrl, adminUrl: old?.adminUrl });
    await shell.type("echo still-$((kept * 9))", "still-54");
    // Its next connection reaches the new program, which knows where the session is.
    wire.cutAll();
    await shell.type("echo again-$((kept * 11))", "again-66");
    expect(shell.notes).toContain("session resumed");
    // It is no more than a session of the old program, which waits for it.
    await expect.poll(() => logged("draining sessions")).not.toEqual([]);
    expect(first.child.exitCode).toBeNull();
    await shell.type("exit 5", "exit 5");
    expect((await shell.ended).exitCode).toBe(5);
    expect(await first.exited).toEqual([0, null]);
    const { failures, count } = await stop();
    expect(failures).toEqual([]);
    expect(count).toBeGreaterThan(20);
  });
});

describe("SIGUSR2", () => {
  it("changes nothing where the new program does not start, and works the next time", async () => {
    await start();
    const text = files.read("gateway.json");
    files.write("gateway.json", "{ wrong");
    first.child.kill("SIGUSR2");
    await expect.poll(() => logged(FAILED)).toMatchObject([{ problem: "it ended with 2" }]);
    const { apiServerUrl } = first.ready;
    expect((await fetch(`${apiServerUrl}/livez`)).status).toBe(200);
    files.write("gateway.json", text);
    await replaceTo(2);
    expect(await first.exited).toEqual([0, null]);
    expect((await fetch(`${apiServerUrl}/livez`)).status).toBe(200);
  });

  it("takes what the configuration says now, and closes the socket of a listener that has moved", async () => {
    await start();
    const { apiServerUrl, adminUrl } = first.ready;
    const configuration = JSON.parse(files.read("gateway.json"));
    configuration.listeners.apiServer.address = "127.0.0.2";
    files.write("gateway.json", JSON.stringify(configuration));
    await replaceTo(2);
    const [, next] = logged(READY);
    expect(next).toMatchObject({ adminUrl });
    expect((await fetch(`${next?.apiServerUrl}/livez`)).status).toBe(200);
    await expect.poll(() => isRefused(Number(new URL(apiServerUrl).port))).toBe(true);
  });

  it("reaches the program that replaced another one, whose end a SIGTERM waits for", async () => {
    await start();
    const shell = new ResumedShell(first.ready.apiServerUrl);
    await shell.type("echo ready-$((6 * 7))", "ready-42");
    await replaceTo(2);
    await replaceTo(3);
    const last = pids().at(-1) as number;
    await expect.poll(() => logged("the gateway has stopped")).toHaveLength(1);
    process.kill(last, "SIGTERM");
    await shell.type("echo still-$((6 * 9))", "still-54");
    expect(isAlive(last)).toBe(true);
    await shell.type("exit 5", "exit 5");
    expect((await shell.ended).exitCode).toBe(5);
    expect(await first.exited).toEqual([0, null]);
    await expect.poll(() => isAlive(last)).toBe(false);
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function isRefused(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", () => resolve(true));
  });
}
