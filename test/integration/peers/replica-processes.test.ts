import { afterEach, describe, expect, it, vi } from "vitest";
import type { SessionLists } from "../../../src/admin/admin-server.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { portOf, ReplicaFiles, type ReplicasOptions, readJson, targetAt } from "../../support/replicas.ts";
import { ResumedShell } from "../../support/resumed-shell.ts";
import { openResumable, refusalOf, resumeOnce } from "../../support/resumption-client.ts";
import type { ServedGateway } from "../../support/served-gateway.ts";

/** Several processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 120_000, expect: { poll: { timeout: 30_000 } } });

const EXPIRED = "410 Expired the session is not held here, or not any more";

let files: ReplicaFiles;
let served: ServedGateway[] = [];
let balancer: FaultProxy | undefined;
afterEach(async () => {
  for (const { child } of served) child.kill("SIGCONT");
  await Promise.all(served.splice(0).map((gateway) => gateway.stop()));
  await balancer?.close();
  balancer = undefined;
  await files.stop();
});

async function start(options: ReplicasOptions = {}): Promise<readonly [ServedGateway, ServedGateway]> {
  files = await ReplicaFiles.create(options);
  served = await Promise.all([files.serve(0), files.serve(1)]);
  return served as [ServedGateway, ServedGateway];
}

/** Date of a process, off by so much; its monotonic clock and the one of OpenSSL stay right. */
function clockOff(minutes: number): string[] {
  const code = `const RealDate = Date;
const shift = ${minutes * 60_000};
globalThis.Date = class extends RealDate {
  constructor(...args) { if (args.length === 0) super(RealDate.now() + shift); else super(...args); }
  static now() { return RealDate.now() + shift; }
};`;
  return ["--import", `data:text/javascript,${encodeURIComponent(code)}`];
}

const at = ({ ready }: ServedGateway) => targetAt(ready.apiServerUrl);
const killed = async ({ child, exited }: ServedGateway): Promise<void> => {
  child.kill("SIGKILL");
  await exited;
};

describe("replicas as processes", () => {
  it("go on with a shell through the other one while they change places, and lose nothing", async () => {
    const [one, other] = await start();
    const ports = [one, other].map(({ ready }) => portOf(ready.apiServerUrl)) as [number, number];
    balancer = await startFaultProxy(ports[0], { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 0 });
    const shell = new ResumedShell(`http://127.0.0.1:${balancer.port}`);
    await shell.type("kept=6; echo ready-$((kept * 7))", "ready-42");
    for (let turn = 1; turn <= 6; turn++) {
      balancer.targetPort = ports[turn % 2] as number;
      balancer.cutAll();
      await shell.type(`echo turn-${turn}-$((kept * ${turn}))`, `turn-${turn}-${6 * turn}`);
    }
    await shell.type("exit 5", "exit 5");
    expect((await shell.ended).exitCode).toBe(5);
    expect(shell.notes.filter((note) => note === "session resumed")).toHaveLength(6);
  });

  it("go on with a shell, and list it, while their clocks are 10 minutes apart", async () => {
    files = await ReplicaFiles.create({ count: 3 });
    served = await Promise.all(
      [0, 10, -10].map((minutes, index) => files.serve(index, { nodeArguments: clockOff(minutes) })),
    );
    const ports = served.map(({ ready }) => portOf(ready.apiServerUrl));
    balancer = await startFaultProxy(ports[1] as number, {
      cutAfterBytes: Number.POSITIVE_INFINITY,
      maxCuts: 0,
    });
    const shell = new ResumedShell(`http://127.0.0.1:${balancer.port}`);
    await shell.type("kept=6; echo ready-$((kept * 7))", "ready-42");
    // Owned by the one that is ahead; each of the others relays.
    for (const turn of [2, 0, 1]) {
      balancer.targetPort = ports[turn] as number;
      balancer.cutAll();
      await shell.type(`echo turn-${turn}-$((kept * ${turn}))`, `turn-${turn}-${6 * turn}`);
    }
    const starts: string[] = [];
    for (const { adminUrl } of served) {
      const { sessions, partial } = (await readJson(`${adminUrl}/sessions`)) as SessionLists;
      expect({ sessions: sessions.length, partial }).toEqual({ sessions: 1, partial: [] });
      starts.push(String(sessions[0]?.startedAt));
    }
    // By the clock of its owner, which is off as this test wants it.
    expect(new Set(starts).size).toBe(1);
    expect((Date.parse(starts[0] ?? "") - Date.now()) / 60_000).toBeGreaterThan(8);
    await shell.type("exit 5", "exit 5");
    expect((await shell.ended).exitCode).toBe(5);
    const log = served.map((gateway) => gateway.log()).join("");
    expect(log).not.toMatch(/"level":"(warn|error)"/);
  });

  it("say 410 when the owner was killed, and to a client whose resumption was under way 410 or 503", async () => {
    const [owner, other] = await start({ timeouts: { peerDial: "1s" } });
    const { agreement } = await openResumable(at(owner), ["cat"]);
    (await resumeOnce(at(other), agreement, { attempt: 1 })).socket.destroy();
    // It accepts, and reads nothing any more: the resumption is in its hands when it dies.
    owner.child.kill("SIGSTOP");
    const underWay = refusalOf(resumeOnce(at(other), agreement, { attempt: 2 }));
    await killed(owner);
    expect(await underWay).toMatch(/^(410 Expired|503 ServiceUnavailable)/);
    // Nothing listens where it was.
    await files.replicas[0]?.wire.close();
    expect(await refusalOf(resumeOnce(at(other), agreement, { attempt: 3 }))).toBe(EXPIRED);
    served = [other];
  });

  it("say 503 while the owner stands still, and go on when it moves again", async () => {
    const [owner, other] = await start({ timeouts: { peerDial: "500ms", peerList: "300ms" } });
    const { agreement } = await openResumable(at(owner), ["cat"]);
    owner.child.kill("SIGSTOP");
    expect(await refusalOf(resumeOnce(at(other), agreement, { attempt: 1 }))).toContain("503");
    expect(await readJson(`${other.adminUrl}/sessions`)).toMatchObject({
      sessions: [],
      partial: [{ problem: expect.stringMatching(/^no answer from 127\.0\.0\.1:\d+ within 300 ms$/) }],
    });
    owner.child.kill("SIGCONT");
    await expect
      .poll(() => refusalOf(resumeOnce(at(other), agreement, { attempt: Date.now() })))
      .toBe("resumed");
  });

  it("hand a session to the worker that owns it, whichever worker of whichever replica is asked", async () => {
    const [one, other] = await start({ configuration: { workers: 2 } });
    const held = await Promise.all([1, 2, 3, 4].map(() => openResumable(at(one), ["cat"])));
    for (const [index, { agreement }] of held.entries()) {
      (await resumeOnce(at(other), agreement, { attempt: 1 })).socket.destroy();
      expect(await refusalOf(resumeOnce(at(one), agreement, { attempt: 2 }))).toBe("resumed");
      const { sessions } = (await readJson(`${other.adminUrl}/sessions`)) as { sessions: object[] };
      expect([index, sessions.length]).toEqual([index, 4]);
    }
    const { sessions } = (await readJson(`${one.adminUrl}/sessions`)) as { sessions: { worker: number }[] };
    expect(new Set(sessions.map(({ worker }) => worker))).toEqual(new Set([0, 1]));
  });
});
