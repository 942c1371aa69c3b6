import { once } from "node:events";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Target } from "../../../packages/client/src/index.ts";
import { SessionClock } from "../../../packages/client/src/net/session-clock.ts";
import { ResumableSocket } from "../../../packages/client/src/sessions/resumable-socket.ts";
import { RESUME_HEARTBEAT } from "../../../packages/client/src/sessions/resuming-client.ts";
import {
  MAX_FRAME_HEADER_BYTES,
  OPCODE,
  writeMaskedFrameHeader,
} from "../../../protocols/websocket/index.ts";
import { eventually } from "../../support/eventually.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { portOf, ReplicaFiles, targetAt } from "../../support/replicas.ts";
import { ResumedShell } from "../../support/resumed-shell.ts";
import { openResumable, resumeOnce } from "../../support/resumption-client.ts";
import type { ServedGateway } from "../../support/served-gateway.ts";
import { readMetricsOf } from "../../support/taken-path.ts";

/** Several processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 120_000, expect: { poll: { timeout: 30_000 } } });

/** Far longer than a process takes to end whose sessions are over. */
const GRACE_PERIOD = "100s";
const PROMPT_MS = 15_000;
/** Less than what a client is waited for that has not acknowledged everything (COMPLETED_WINDOW_MS). */
const HELD_MS = 8_000;

let files: ReplicaFiles;
let served: ServedGateway[] = [];
let balancer: FaultProxy | undefined;
afterEach(async () => {
  await Promise.all(served.splice(0).map((gateway) => gateway.stop()));
  await balancer?.close();
  balancer = undefined;
  await files.stop();
});

async function start(configuration: object): Promise<void> {
  files = await ReplicaFiles.create({ configuration, timeouts: { shutdownGracePeriod: GRACE_PERIOD } });
  served = await Promise.all([files.serve(0), files.serve(1)]);
}

async function sessionsOf({ adminUrl }: ServedGateway): Promise<string[]> {
  return [...(await readMetricsOf(adminUrl))]
    .filter(([name, value]) => /^sluice_resumable_sessions\{|active_sessions/.test(name) && value > 0)
    .map(([name, value]) => `${name} ${value}`);
}

/** No gauge counts the session, and each process ends on SIGTERM long before its grace period. */
async function expectAllOver(): Promise<void> {
  for (const gateway of served) {
    const isEmpty = async (): Promise<true> => {
      expect(await sessionsOf(gateway)).toEqual([]);
      return true;
    };
    await eventually("the replica holds no session", isEmpty, { timeoutMs: HELD_MS });
  }
  for (const gateway of served) {
    const startedMs = performance.now();
    gateway.child.kill("SIGTERM");
    expect(await gateway.exited).toEqual([0, null]);
    expect(performance.now() - startedMs).toBeLessThan(PROMPT_MS);
  }
}

describe.each([
  ["one process each", {}],
  ["two workers each", { workers: 2 }],
] as const)("replicas of %s, after a session that was resumed at the other one", (_name, configuration) => {
  it("hold nothing of it, and end at once", async () => {
    await start(configuration);
    const ports = served.map(({ ready }) => portOf(ready.apiServerUrl));
    const endless = { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 };
    balancer = await startFaultProxy(ports[0] as number, endless);
    const shell = new ResumedShell(`http://127.0.0.1:${balancer.port}`);
    await shell.type("kept=6; echo ready-$((kept * 7))", "ready-42");
    balancer.targetPort = ports[1] as number;
    balancer.cutAll();
    await shell.type("echo moved-$((kept * 8))", "moved-48");
    await shell.type("exit 5", "exit 5");
    expect((await shell.ended).exitCode).toBe(5);
    await expectAllOver();
  });

  it("hold nothing for a client that has everything and vanishes", async () => {
    await start(configuration);
    const [owner, other] = served.map(({ ready }) => targetAt(ready.apiServerUrl)) as [Target, Target];
    const { connection, agreement } = await openResumable(owner, ["sh", "-c", "read line; echo $line"]);
    const client = new ResumableSocket({
      role: "client",
      clock: new SessionClock(),
      lingerTimes: { lingerIdleMs: 1_000, lingerMaxMs: 2_000 },
      ...RESUME_HEARTBEAT,
      windowBytes: 1024 * 1024,
      windowMs: 60_000,
    });
    client.attach(connection, 0);
    client.detach();
    const leg = await resumeOnce(other, agreement, { attempt: 1, received: client.received });
    client.attach(leg, 0);
    const channel = Buffer.from("\0go\n");
    const frame = Buffer.alloc(MAX_FRAME_HEADER_BYTES + channel.byteLength);
    const at = writeMaskedFrameHeader(frame, 0, OPCODE.BINARY, channel.byteLength, true, 0);
    client.write(frame.fill(channel, at, at + channel.byteLength).subarray(0, at + channel.byteLength));
    const ended = once(client, "end");
    client.resume();
    await ended;
    // The acknowledgement of the end is on its way; the client's own end never comes.
    await new Promise((resolve) => leg.socket.write("", resolve));
    leg.socket.destroy();
    await expectAllOver();
  });
});
