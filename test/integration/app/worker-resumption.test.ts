import { randomBytes } from "node:crypto";
import { afterEach, describe, expect, it, vi } from "vitest";
import {
  execPath,
  type SessionError,
  Target,
  WebSocketExecutor,
} from "../../../packages/client/src/index.ts";
import { proofOf } from "../../../packages/client/src/sessions/resuming-client.ts";
import { openCat, throughCat } from "../../support/cat-session.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "../../support/fault-proxy.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { openResumable, refusalOf, resumeOnce } from "../../support/resumption-client.ts";
import { CAT } from "../../support/scripted-kubelet.ts";
import { issueCertificate } from "../../support/test-certificates.ts";
import { WorkerGateway } from "../../support/worker-gateway.ts";

const OTHER_TOKEN = "other-token";
const COMMAND = execPath({ namespace: "default", pod: "web", container: "main" }, ["cat"]);
const TOKENS = `${TESTER_TOKEN},tester,uid-1,"dev"\n${OTHER_TOKEN},other,uid-2,"dev"\n`;

let gateway: WorkerGateway;
const proxies: FaultProxy[] = [];
/** Three processes start for each test, on machines that are busy with other tests. */
vi.setConfig({ testTimeout: 90_000, expect: { poll: { timeout: 30_000 } } });
afterEach(async () => {
  await gateway.stop();
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

async function start(more: object = {}, files: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await WorkerGateway.start({
    script: CAT,
    files: { "users.csv": TOKENS, ...files },
    more: { authentication: { tokenAuthFile: "users.csv" }, ...more },
  });
}

async function proxied(options: Partial<FaultProxyOptions> = {}): Promise<FaultProxy> {
  const port = Number(gateway.authority.split(":")[1]);
  const proxy = await startFaultProxy(port, {
    cutAfterBytes: Number.POSITIVE_INFINITY,
    maxCuts: Number.POSITIVE_INFINITY,
    ...options,
  });
  proxies.push(proxy);
  return proxy;
}

function target(authority = gateway.authority, token = TESTER_TOKEN, scheme = "http"): Target {
  return new Target({
    url: `${scheme}://${authority}`,
    proxy: "none",
    tls: { insecureSkipVerify: true },
    headers: () => [["Authorization", `Bearer ${token}`]],
  });
}

/** Sends the input through `cat` and resolves with whether it came back whole, and with what exit code. */
async function echoed(
  to: Target,
  input: Buffer,
): Promise<{ isWhole: boolean; exitCode: number | undefined }> {
  return throughCat(new WebSocketExecutor(to, COMMAND, { resume: true }), input);
}

/** The worker that carries the only session. */
async function holder(): Promise<number> {
  const [session] = await gateway.listed(1);
  return session?.worker ?? -1;
}

const resumptions = (result: string) =>
  gateway.metric(`sluice_session_resumptions_total{result="${result}"}`);

describe("a resumable session of one of two workers", () => {
  it.each([
    "reset",
    "fin",
  ] as const)("goes on through whichever worker gets it: 50 cuts by %s", async (cutBy) => {
    await start();
    const proxy = await proxied({ cutAfterBytes: 300_000, maxCuts: 50, cutBy });
    const input = randomBytes(10 * 1024 * 1024);
    expect(await echoed(target(`127.0.0.1:${proxy.port}`), input)).toEqual({ isWhole: true, exitCode: 0 });
    expect(proxy.cuts).toBe(50);
    expect(await resumptions("resumed")).toBeGreaterThanOrEqual(50);
    // What passed a connection on holds none of them any more.
    await expect.poll(() => gateway.sessions()).toEqual([]);
  });

  it("goes on over TLS, which no process can hand to another", async () => {
    const { cert, key } = await issueCertificate({ commonName: "gateway" });
    const tls = { certFile: "tls.crt", keyFile: "tls.key" };
    const listeners = { apiServer: { port: 0, tls }, admin: { port: 0 } };
    await start({ listeners }, { "tls.crt": cert, "tls.key": key });
    const proxy = await proxied({ cutAfterBytes: 300_000, maxCuts: 10 });
    const to = target(`127.0.0.1:${proxy.port}`, TESTER_TOKEN, "https");
    expect(await echoed(to, randomBytes(3 * 1024 * 1024))).toEqual({ isWhole: true, exitCode: 0 });
    expect(proxy.cuts).toBe(10);
  });

  it("goes on when the worker that passes its connection on is killed", async () => {
    await start();
    const proxy = await proxied();
    const { stdin, shown, ended } = interactive(target(`127.0.0.1:${proxy.port}`));
    stdin.write("one ");
    await expect.poll(shown).toBe("one ");
    const held = await holder();
    // A connection that stays makes its holder the busier one, so the next one goes to the other worker.
    proxy.cutAll();
    await expect.poll(() => resumptions("resumed")).toBe(1);
    stdin.write("two ");
    await expect.poll(shown).toBe("one two ");
    process.kill(gateway.pidOf(1 - held), "SIGKILL");
    stdin.end("three");
    expect((await ended).exitCode).toBe(0);
    expect(shown()).toBe("one two three");
    expect(await resumptions("resumed")).toBe(2);
  });

  it("ends with an honest error when its holder is killed", async () => {
    await start();
    const { stdin, shown, ended } = interactive(target());
    stdin.write("before");
    await expect.poll(shown).toBe("before");
    const killed = ended.catch((error: SessionError) => error);
    process.kill(gateway.pidOf(await holder()), "SIGKILL");
    const error = (await killed) as SessionError;
    expect([error.name, error.code]).toEqual(["SessionError", "connection-lost"]);
    expect(error.message).toContain("could not be resumed");
    expect(await resumptions("unknown")).toBe(1);
    stdin.destroy();
  });

  it("is given to its own user alone, for a fresh proof, whoever is asked", async () => {
    await start();
    const { agreement, connection } = await openResumable(target(), ["cat"]);
    const sentence = "forbidden: the session cannot be resumed:";
    // While its connection stands the others go to the other worker.
    const ask = (attempt: number, { token = TESTER_TOKEN, proof = "" } = {}) =>
      refusalOf(
        resumeOnce(target(gateway.authority, token), agreement, { attempt, ...(proof && { proof }) }),
      );
    expect(await ask(1, { token: OTHER_TOKEN })).toBe(`403 Forbidden ${sentence} it is another user's`);
    expect(await ask(1, { token: "nobody" })).toContain("401");
    const stolen = proofOf(agreement.key, { session: agreement.session, attempt: 1, received: 0 });
    const wrong = `403 Forbidden ${sentence} the proof is wrong, or was used before`;
    expect(await ask(2, { proof: stolen })).toBe(wrong);
    // The same session, as if another worker held it that never was.
    const renamed = { ...agreement, session: `AAAAAAAA${agreement.session.slice(8)}` };
    expect(await refusalOf(resumeOnce(target(), renamed, { attempt: 3 }))).toBe(
      "410 Expired the session is not held here, or not any more",
    );
    const resumed = await resumeOnce(target(), agreement, { attempt: 4 });
    expect(await ask(4)).toBe(wrong);
    expect(await resumptions("proof")).toBe(2);
    expect(gateway.log()).not.toContain(agreement.key);
    resumed.socket.destroy();
    connection.socket.destroy();
  });

  it("counts with those of the other: together they are no more than one process may have", async () => {
    await start({ resumption: { maxSessions: 2 } });
    const held = [await openResumable(target(), ["cat"]), await openResumable(target(), ["cat"])];
    await expect(openResumable(target(), ["cat"])).rejects.toThrow("no agreement");
    expect(await gateway.metric('sluice_resumable_offers_total{answer="no-room"}')).toBe(1);
    for (const { connection } of held) connection.socket.destroy();
  });

  it("does not keep a process alive that passes it on", async () => {
    await start();
    const proxy = await proxied();
    const { stdin, shown, ended } = interactive(target(`127.0.0.1:${proxy.port}`));
    stdin.write("one");
    await expect.poll(shown).toBe("one");
    proxy.cutAll();
    await expect.poll(() => resumptions("resumed")).toBe(1);
    gateway.signal("SIGTERM");
    expect(await gateway.exited).toEqual([0, null]);
    await expect(ended).rejects.toThrow();
    stdin.destroy();
  });
});

function interactive(to: Target) {
  return openCat(new WebSocketExecutor(to, COMMAND, { resume: true }));
}
