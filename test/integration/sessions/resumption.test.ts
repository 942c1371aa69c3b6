import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough, Readable, Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  dial,
  dialResumable,
  type ExecutorOptions,
  execPath,
  type SessionError,
  WebSocketExecutor,
} from "../../../packages/client/src/index.ts";
import { proofOf } from "../../../packages/client/src/sessions/resuming-client.ts";
import {
  type Agreement,
  encodeOffer,
  RESUME_HEADER,
  RESUME_PROTOCOL,
} from "../../../protocols/resume/index.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "../../support/fault-proxy.ts";
import { TESTER_TOKEN } from "../../support/gateway-files.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { OTHER_TOKEN, ResumableGateway } from "../../support/resumable-gateway.ts";
import {
  type Claim,
  EXEC_PATH,
  openResumable,
  refusalOf,
  resumeOnce,
} from "../../support/resumption-client.ts";

// The bound under test.
const BROKEN_OFF_MS = 10_000;

const POD = { namespace: "default", pod: "web", container: "main" };
const MIB = 1024 * 1024;
const QUICK = { pingIntervalMs: 100, silenceMs: 2_500 };

describe.each([
  ["translated", false],
  ["passed through", true],
])("a resumable session that is %s", (_plan, declaresWebSockets) => {
  let gateway: ResumableGateway;
  let proxies: FaultProxy[];
  beforeEach(async () => {
    proxies = [];
    gateway = await ResumableGateway.start({ declaresWebSockets });
  });
  afterEach(async () => {
    await gateway.stop();
    await Promise.all(proxies.map((proxy) => proxy.close()));
  });

  async function proxied(options: Partial<FaultProxyOptions>): Promise<FaultProxy> {
    const proxy = await startFaultProxy(gateway.port, {
      cutAfterBytes: Number.POSITIVE_INFINITY,
      maxCuts: Number.POSITIVE_INFINITY,
      ...options,
    });
    proxies.push(proxy);
    return proxy;
  }

  function executor(proxy: FaultProxy, command: readonly string[], options: ExecutorOptions = {}) {
    const path = execPath(POD, command);
    return new WebSocketExecutor(gateway.target(proxy.port), path, {
      resume: { heartbeat: QUICK },
      ...options,
    });
  }

  it.each(["reset", "fin"] as const)("downloads whole through 50 cuts by %s", async (cutBy) => {
    const proxy = await proxied({ cutAfterBytes: 300_000, maxCuts: 50, cutBy });
    const hash = createHash("sha256");
    const stdout = new Writable({
      write(chunk: Buffer, _encoding, done) {
        hash.update(chunk);
        done();
      },
    });
    const script =
      "i=0; while [ $i -lt 20 ]; do head -c 1048576 /dev/zero | tr '\\0' $(($i % 10)); i=$((i+1)); done; exit 7";
    const end = await executor(proxy, ["sh", "-c", script]).stream({ stdout });
    expect(end.exitCode).toBe(7);
    const expected = createHash("sha256");
    for (let i = 0; i < 20; i++) expected.update(Buffer.alloc(MIB, String(i % 10)));
    expect(hash.digest("hex")).toBe(expected.digest("hex"));
    expect(proxy.cuts).toBe(50);
    const metrics = await gateway.metrics();
    expect(metrics.get('sluice_session_resumptions_total{result="resumed"}')).toBeGreaterThanOrEqual(50);
  });

  it("uploads whole through 50 cuts", async () => {
    const proxy = await proxied({ cutAfterBytes: 300_000, maxCuts: 50 });
    const input = randomBytes(20 * MIB);
    const output: Buffer[] = [];
    const end = await executor(proxy, ["sha256sum"]).stream({
      stdin: Readable.from(chunksOf(input, 50_000)),
      stdout: collecting(output),
    });
    expect(end.exitCode).toBe(0);
    expect(Buffer.concat(output).toString().split(" ")[0]).toBe(
      createHash("sha256").update(input).digest("hex"),
    );
    expect(proxy.cuts).toBe(50);
  });

  it("carries both directions through cuts, one-byte writes and delays", async () => {
    const proxy = await proxied({ cutAfterBytes: 5_000, maxCuts: 10, writeBytes: 1, delayMs: 2 });
    const input = randomBytes(20_000);
    const output: Buffer[] = [];
    const end = await executor(proxy, ["cat"]).stream({
      stdin: Readable.from(chunksOf(input, 1_000)),
      stdout: collecting(output),
    });
    expect(end.exitCode).toBe(0);
    expect(Buffer.concat(output).equals(input)).toBe(true);
    expect(proxy.cuts).toBe(10);
  });

  it("does not lock up where both directions are full and nobody reads for a while", async () => {
    const proxy = await proxied({});
    const input = randomBytes(8 * MIB);
    const output: Buffer[] = [];
    let stalled = false;
    const stdout = new Writable({
      highWaterMark: 1,
      write(chunk: Buffer, _encoding, done) {
        output.push(Buffer.from(chunk));
        if (stalled) return done();
        stalled = true;
        // Long enough for heartbeats to have been missed, had they waited behind payload.
        setTimeout(done, 2 * QUICK.silenceMs);
      },
    });
    const end = await executor(proxy, ["cat"]).stream({
      stdin: Readable.from(chunksOf(input, 50_000)),
      stdout,
    });
    expect(end.exitCode).toBe(0);
    expect(Buffer.concat(output).equals(input)).toBe(true);
    expect(
      (await gateway.metrics()).get('sluice_session_resumptions_total{result="resumed"}'),
    ).toBeUndefined();
  });

  it("finds out on both sides that a connection is dead, and goes on over another", async () => {
    const proxy = await proxied({});
    const stdin = new PassThrough();
    const output: Buffer[] = [];
    const running = executor(proxy, ["cat"]).stream({ stdin, stdout: collecting(output) });
    stdin.write("before ");
    await expect.poll(() => Buffer.concat(output).toString()).toBe("before ");
    proxy.freeze();
    stdin.end("after");
    expect((await running).exitCode).toBe(0);
    expect(Buffer.concat(output).toString()).toBe("before after");
  });

  it("gets the end of a command that ended while nobody was connected", async () => {
    const proxy = await proxied({});
    const output: Buffer[] = [];
    const text = () => Buffer.concat(output).toString();
    const file = path.join(mkdtempSync(path.join(tmpdir(), "sluice-resumption-")), "cut");
    onTestFinished(() => rmSync(path.dirname(file), { recursive: true, force: true }));
    const command = ["sh", "-c", `echo runs; until [ -e ${file} ]; do sleep 0.02; done; echo done; exit 3`];
    const running = executor(proxy, command).stream({ stdout: collecting(output) });
    await expect.poll(text).toBe("runs\n");
    proxy.isRefusing = true;
    proxy.cutAll();
    writeFileSync(file, "");
    await expect.poll(() => gateway.node.sessionCount).toBe(0);
    expect(text()).toBe("runs\n");
    proxy.isRefusing = false;
    expect((await running).exitCode).toBe(3);
    expect(text()).toBe("runs\ndone\n");
  });
});

describe("a resumable session's bounds", () => {
  let gateway: ResumableGateway;
  let proxy: FaultProxy;
  afterEach(async () => {
    await gateway.stop();
    await proxy.close();
  });
  async function start(resumption: object, shutdownGracePeriod = "0s", more = {}): Promise<void> {
    gateway = await ResumableGateway.start({ resumption, shutdownGracePeriod, more });
    proxy = await startFaultProxy(gateway.port, { cutAfterBytes: Number.POSITIVE_INFINITY, maxCuts: 1e9 });
  }
  const metric = async (name: string) => (await gateway.metrics()).get(name);

  const openSession = (command: readonly string[]) => openResumable(gateway.target(proxy.port), command);
  const resume = (agreement: Agreement, claim: Claim, { token = TESTER_TOKEN, path = EXEC_PATH } = {}) =>
    resumeOnce(gateway.target(gateway.port, token), agreement, claim, path);

  it("ends a session whose client does not come back in time, and its command with it", async () => {
    await start({ window: "1s" });
    const { agreement } = await openSession(["cat"]);
    await expect.poll(() => gateway.sessions().length).toBe(1);
    proxy.cutAll();
    await expect.poll(() => gateway.sessions().length).toBe(0);
    expect(await metric('sluice_resumable_sessions_ended_total{end="expired"}')).toBe(1);
    await expect.poll(() => gateway.node.sessionCount).toBe(0);
    expect(await refusalOf(resume(agreement, { attempt: 1 }))).toBe(
      "410 Expired the session is not held here, or not any more",
    );
  });

  it("does not hold up a shutdown while its client is away", async () => {
    await start({ window: "1h" }, "1h");
    await openSession(["cat"]);
    await expect.poll(() => gateway.sessions().length).toBe(1);
    proxy.cutAll();
    await gateway.stop();
    expect(gateway.node.sessionCount).toBe(0);
  });

  it("tells a client that comes too late the truth", async () => {
    await start({ window: "1s" });
    const notes: string[] = [];
    const echoed: Buffer[] = [];
    const stdin = new PassThrough();
    const running = new WebSocketExecutor(gateway.target(proxy.port), execPath(POD, ["cat"]), {
      resume: { note: (text) => void notes.push(text) },
    }).stream({ stdin, stdout: collecting(echoed) });
    const failed = running.catch((error: SessionError) => error);
    stdin.write("is it there?");
    // The gateway has a session before its client has read the 101.
    await expect.poll(() => echoed.length).toBeGreaterThan(0);
    await proxy.close();
    const error = (await failed) as SessionError;
    expect([error.name, error.code]).toEqual(["SessionError", "connection-lost"]);
    expect(error.message).toContain("not resumed in time");
    expect(notes.join()).toContain("connection lost");
    proxy = await startFaultProxy(gateway.port, { cutAfterBytes: 1e9, maxCuts: 0 });
  });

  it("tells a client soon that its server accepts connections and breaks them off", async () => {
    await start({ window: "1h" });
    const [notes, echoed]: [string[], Buffer[]] = [[], []];
    const clock = new ManualClock();
    const stdin = new PassThrough();
    const running = new WebSocketExecutor(gateway.target(proxy.port), execPath(POD, ["cat"]), {
      resume: { clock, note: (text) => void notes.push(text) },
    }).stream({ stdin, stdout: collecting(echoed) });
    const failed = running.catch((error: SessionError) => error);
    stdin.write("is it there?");
    await expect.poll(() => echoed.length).toBeGreaterThan(0);
    await proxy.close();
    const resetting = createTcpServer((socket) => socket.resetAndDestroy()).listen(proxy.port, "127.0.0.1");
    onTestFinished(() => void resetting.close());
    const tries = () => notes.filter((note) => note.includes("not resumed yet")).length;
    await expect.poll(tries).toBeGreaterThan(1);
    clock.advance(BROKEN_OFF_MS);
    const error = (await failed) as SessionError;
    expect([error.name, error.code]).toEqual(["SessionError", "connection-lost"]);
    expect(error.message).toMatch(/for 10 s connections were accepted and broken off .*process .* is gone/);
    proxy = await startFaultProxy(gateway.port, { cutAfterBytes: 1e9, maxCuts: 0 });
  });

  it("is given to its own user alone, at its own path, for a fresh proof", async () => {
    await start({});
    const { agreement } = await openSession(["cat"]);
    proxy.cutAll();
    const sentence = "forbidden: the session cannot be resumed:";
    expect(await refusalOf(resume(agreement, { attempt: 1 }, { token: OTHER_TOKEN }))).toBe(
      `403 Forbidden ${sentence} it is another user's`,
    );
    expect(await refusalOf(resume(agreement, { attempt: 1 }, { token: "nobody" }))).toContain("401");
    const path = "/api/v1/namespaces/default/pods/web/attach";
    expect(await refusalOf(resume(agreement, { attempt: 1 }, { path }))).toBe(
      `403 Forbidden ${sentence} it was opened at another path`,
    );
    const stolen = proofOf(agreement.key, { session: agreement.session, attempt: 1, received: 0 });
    expect(await refusalOf(resume(agreement, { attempt: 2, proof: stolen }))).toBe(
      `403 Forbidden ${sentence} the proof is wrong, or was used before`,
    );
    expect(await refusalOf(resume(agreement, { attempt: 5, received: 99 }))).toBe(
      "409  the session cannot be resumed: bytes are missing",
    );
    // None of it harmed the session.
    const resumed = await resume(agreement, { attempt: 6 });
    expect(resumed.responseHeaders).toContainEqual([RESUME_HEADER, "v1; received=0"]);
    // The same request once more.
    expect(await refusalOf(resume(agreement, { attempt: 6 }))).toContain("was used before");
    expect(await metric('sluice_session_resumptions_total{result="proof"}')).toBe(2);
    expect(await metric('sluice_session_resumptions_total{result="identity"}')).toBe(1);
    expect(gateway.logged.join("")).not.toContain(agreement.key);
    resumed.socket.destroy();
  });

  it("is gone with its pod, and another pod of its name is not it", async () => {
    const rules = [{ name: "no", action: "deny", match: { podLabels: { tier: "db" } } }];
    await start({}, "0s", { policy: { rules } });
    const { agreement } = await openSession(["cat"]);
    proxy.cutAll();
    gateway.editCluster((text) => text.replace('"uid":"web"', '"uid":"another"'));
    const refused = (attempt: number) => refusalOf(resume(agreement, { attempt }));
    let attempt = 0;
    await expect.poll(() => refused(++attempt)).toBe('404 NotFound pods "web" not found');
    gateway.editCluster((text) => text.replace('"name":"web"', '"name":"other"'));
    const headers = { Authorization: `Bearer ${TESTER_TOKEN}` };
    const pod = `http://127.0.0.1:${gateway.port}/api/v1/namespaces/default/pods/web`;
    await expect.poll(async () => (await fetch(pod, { headers })).status).toBe(404);
    expect(await refused(++attempt)).toBe('404 NotFound pods "web" not found');
  });

  it("looks at 8 wrong proofs, and then makes its owner wait", async () => {
    await start({});
    const { agreement } = await openSession(["cat"]);
    const wrong = "A".repeat(43);
    for (let attempt = 1; attempt <= 8; attempt++) {
      expect(await refusalOf(resume(agreement, { attempt, proof: wrong }))).toContain("403");
    }
    expect(await refusalOf(resume(agreement, { attempt: 9 }))).toContain("429 TooManyRequests");
    expect(gateway.sessions()).toHaveLength(1);
  });

  it("lets a second connection take over from one that looks alive", async () => {
    await start({});
    const { agreement, connection } = await openSession(["cat"]);
    const gone = new Promise((resolve) => connection.socket.once("end", resolve));
    connection.socket.resume();
    const resumed = await resume(agreement, { attempt: 1 });
    await gone;
    resumed.socket.destroy();
  });

  it("serves plainly where there is no more room, and whoever asks wrongly", async () => {
    await start({ maxSessions: 1 });
    const first = await openSession(["cat"]);
    const second = await dial(gateway.target(), {
      path: execPath(POD, ["cat"])({ stdin: true, stdout: true, stderr: false, tty: false }),
      transport: "websocket",
      protocols: ["v5.channel.k8s.io", RESUME_PROTOCOL],
      headers: [[RESUME_HEADER, encodeOffer({ windowBytes: MIB })]],
    });
    expect(second.protocol).toBe("v5.channel.k8s.io");
    expect(await metric('sluice_resumable_offers_total{answer="no-room"}')).toBe(1);
    for (const { socket } of [first.connection, second]) socket.destroy();
  });

  it("serves plainly where all sessions together would hold too much", async () => {
    await start({ maxTotalBytes: "2Mi" });
    const first = await openSession(["cat"]);
    const path = execPath(POD, ["cat"])({ stdin: true, stdout: true, stderr: false, tty: false });
    const second = await dialResumable(gateway.target(), {
      path,
      transport: "websocket",
      protocols: ["v5.channel.k8s.io"],
    });
    expect([second.protocol, second.isResumable]).toEqual(["v5.channel.k8s.io", undefined]);
    for (const { socket } of [first.connection, second]) socket.destroy();
  });

  it("asks nothing that another server would run", async () => {
    const asked: {
      url?: string | undefined;
      protocol?: string | undefined;
      resume?: string | string[] | undefined;
    }[] = [];
    await start({});
    const connection = await dialResumable(gateway.target(proxy.port), {
      path: execPath(POD, ["touch", "twice"])({ stdin: true, stdout: true, stderr: false, tty: false }),
      transport: "websocket",
      protocols: ["v5.channel.k8s.io"],
    });
    expect(connection.isResumable).toBe(true);
    // Behind the same address there is somebody else now.
    const other = createServer().on("upgrade", ({ url, headers }, socket) => {
      asked.push({ url, protocol: headers["sec-websocket-protocol"], resume: headers["sluice-resume"] });
      socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    proxy.targetPort = (other.address() as AddressInfo).port;
    const failed = new Promise<Error>((resolve) => connection.socket.once("error", resolve));
    connection.socket.resume();
    proxy.cutAll();
    expect((await failed).message).toContain("the session could not be resumed");
    expect(asked).toEqual([
      {
        url: "/api/v1/namespaces/default/pods/web/exec",
        protocol: RESUME_PROTOCOL,
        resume: expect.stringMatching(/^v1; session=.{22}; attempt=1; received=\d+; proof=.{43}$/),
      },
    ]);
    other.close();
  });

  it("is not offered where the configuration says so", async () => {
    await start({ enabled: false });
    const output: Buffer[] = [];
    const options = { resume: true };
    const executor = new WebSocketExecutor(gateway.target(), execPath(POD, ["echo", "plain"]), options);
    expect((await executor.stream({ stdout: collecting(output) })).exitCode).toBe(0);
    expect(Buffer.concat(output).toString()).toBe("plain\n");
  });
});

function collecting(into: Buffer[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      into.push(Buffer.from(chunk));
      done();
    },
  });
}

function* chunksOf(bytes: Buffer, size: number): Generator<Buffer> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}
