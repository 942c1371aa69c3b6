import { afterEach, describe, expect, it } from "vitest";
import { defaultTimeouts } from "../../../support/default-configuration.ts";
import { type GatewayHarness, startGatewayHarness } from "../../../support/gateway-harness.ts";
import { ManualClock } from "../../../support/manual-clock.ts";
import { type RawNode, startRawNode } from "../../../support/raw-node.ts";
import { endExec, type KubeletScript, ScriptedKubelet, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { dataFrame } from "../../../support/scripted-spdy-peer.ts";
import { TunnelClient } from "../../../support/tunnel-client.ts";
import { V5Client } from "../../../support/v5-client.ts";

// The bound under test.
const NODE_SILENCE_MS = 10_000;

const { idleMs, streamCreationMs, webSocketPingMs, unsolicitedPongMs, spdyPingMs } = defaultTimeouts;
const FLOOD_BYTES = 32 * 1024 * 1024;

let harness: GatewayHarness | undefined;
let node: { close(): Promise<void> } | undefined;
let clock: ManualClock;

/** As the gateway's clock ticks: a tick that comes late counts for less silence. */
function advanceBySeconds(ms: number): void {
  for (let passed = 0; passed < ms; passed += 1_000) clock.advance(1_000);
}

afterEach(async () => {
  await harness?.close();
  await node?.close();
  harness = node = undefined;
});

async function startGateway(kubeletPort: number): Promise<string> {
  clock = new ManualClock();
  harness = await startGatewayHarness({ kubeletPort, clock });
  return harness.authority;
}

async function startKubelet(script: KubeletScript): Promise<{ authority: string; kubelet: ScriptedKubelet }> {
  const kubelet = new ScriptedKubelet(script);
  node = kubelet;
  return { authority: await startGateway(await kubelet.listen()), kubelet };
}

async function startRaw(
  options: Parameters<typeof startRawNode>[0] = {},
): Promise<{ authority: string; raw: RawNode }> {
  const raw = await startRawNode(options);
  node = raw;
  return { authority: await startGateway(raw.port), raw };
}

/** A session in which the gateway knows that every stream has been accepted. */
async function openExec(authority: string, kubelet: ScriptedKubelet): Promise<V5Client> {
  const client = new V5Client(authority, "stdin=true&stdout=true");
  await client.opened;
  await expect.poll(() => kubelet.sessions[0]?.streams.size).toBe(3);
  kubelet.sessions[0]?.spdy.ping();
  await expect.poll(() => kubelet.sessions[0]?.pongs.length).toBe(1);
  return client;
}

/** Pongs in order, by payload; unsolicited ones carry none. */
function pongsOf(client: V5Client): string[] {
  const pongs: string[] = [];
  client.socket.on("pong", (payload) => pongs.push(payload.toString()));
  return pongs;
}

/** Resolves when the number has not grown for a while: whoever writes is held up. */
async function standsStill(numberNow: () => number): Promise<void> {
  let seen = -1;
  let sameTimes = 0;
  const hasStopped = (): boolean => {
    sameTimes = seen === numberNow() ? sameTimes + 1 : 0;
    seen = numberNow();
    return sameTimes >= 5;
  };
  await expect.poll(hasStopped, { interval: 20 }).toBe(true);
}

const downstreamBytes = (): number => harness?.context.sessions.list()[0]?.downstreamBytes ?? 0;
const upstreamBytes = (): number => harness?.context.sessions.list()[0]?.upstreamBytes ?? 0;

describe("heartbeats towards the client", () => {
  it("a PING and an unsolicited PONG at their intervals, while nothing else moves", async () => {
    const { authority, kubelet } = await startKubelet({});
    const client = await openExec(authority, kubelet);
    const pongs = pongsOf(client);
    let pings = 0;
    client.socket.on("ping", () => {
      pings += 1;
    });
    expect(webSocketPingMs).toBeLessThanOrEqual(30_000);
    expect(unsolicitedPongMs).toBeLessThanOrEqual(20_000);
    clock.advance(unsolicitedPongMs - 1);
    clock.advance(1);
    await expect.poll(() => pongs).toEqual([""]);
    expect(pings).toBe(0);
    clock.advance(webSocketPingMs - unsolicitedPongMs);
    await expect.poll(() => pings).toBe(1);
    for (let round = 2; round <= 4; round++) {
      clock.advance(webSocketPingMs);
      await expect.poll(() => pings).toBe(round);
    }
    client.socket.terminate();
  });

  it("a tunnel's client is pinged as well", async () => {
    const { authority } = await startRaw({ protocol: "portforward.k8s.io" });
    const client = await TunnelClient.open(authority);
    await expect.poll(() => harness?.context.sessions.list().length).toBe(1);
    clock.advance(webSocketPingMs);
    await expect.poll(() => client.pings).toBe(1);
    client.socket.terminate();
  });

  it("a client's PING is answered with its payload", async () => {
    const { authority, kubelet } = await startKubelet({});
    const client = await openExec(authority, kubelet);
    const pongs = pongsOf(client);
    client.socket.ping("one");
    client.socket.ping();
    client.socket.ping("x".repeat(125));
    await expect.poll(() => pongs).toEqual(["one", "", "x".repeat(125)]);
    client.socket.terminate();
  });

  it("while stdout is not read: stdin flows, no heartbeat piles up, and one PONG is owed: the newest", async () => {
    let stdin = "";
    const { authority, kubelet } = await startKubelet({
      onData: (name, part) => {
        if (name === "stdin") stdin += Buffer.from(part).toString();
      },
    });
    const client = await openExec(authority, kubelet);
    const pongs = pongsOf(client);
    client.socket.pause();
    kubelet.sessions[0]?.streams.get("stdout")?.write(Buffer.alloc(FLOOD_BYTES, "x"));
    await standsStill(downstreamBytes);
    expect(downstreamBytes()).toBeLessThan(FLOOD_BYTES);
    for (let index = 0; index < 1_000; index++) client.socket.ping(`ping ${index}`);
    client.send(0, "behind the pings");
    await expect.poll(() => stdin).toBe("behind the pings");
    for (let round = 0; round < 10; round++) clock.advance(webSocketPingMs);

    client.socket.resume();
    await expect.poll(downstreamBytes).toBe(FLOOD_BYTES);
    await expect.poll(() => pongs).toEqual(["ping 999"]);
    const { sessions } = kubelet;
    if (sessions[0]) endExec(sessions[0], SUCCESS);
    const { stdout, status, closeCode } = await client.done;
    expect([stdout.length, status, closeCode]).toEqual([FLOOD_BYTES, SUCCESS, 1000]);
  });

  it("while stdin is not taken: unsolicited PONGs and PINGs go on, and the client's own PING is answered once it is read", async () => {
    let stdinBytes = 0;
    const { authority, kubelet } = await startKubelet({
      onData: (name, part) => {
        if (name === "stdin") stdinBytes += part.byteLength;
      },
    });
    const client = await openExec(authority, kubelet);
    const pongs = pongsOf(client);
    let pings = 0;
    client.socket.on("ping", () => {
      pings += 1;
    });
    const kubeletSocket = kubelet.sessions[0]?.socket;
    kubeletSocket?.pause();
    for (let sent = 0; sent < FLOOD_BYTES; sent += 65_536) client.send(0, Buffer.alloc(65_536));
    client.socket.ping("behind stdin");
    await standsStill(upstreamBytes);
    expect(upstreamBytes()).toBeLessThan(FLOOD_BYTES);
    for (let round = 1; round <= 4; round++) {
      clock.advance(webSocketPingMs);
      await expect.poll(() => [pings, pongs.length]).toEqual([round, round]);
    }
    expect(pongs).toEqual(["", "", "", ""]);
    kubeletSocket?.resume();
    await expect.poll(() => stdinBytes).toBe(FLOOD_BYTES);
    await expect.poll(() => pongs.at(-1)).toBe("behind stdin");
    client.socket.terminate();
  });
});

describe("heartbeats towards the node", () => {
  const pingIds = (raw: RawNode): number[] =>
    raw.frames.flatMap((frame) => (frame.type === "PING" ? [frame.id] : []));

  it("SPDY PINGs with odd ids, whether they are answered or not", async () => {
    const { authority, raw } = await startRaw();
    const client = new V5Client(authority, "stdout=true");
    await client.opened;
    await expect.poll(() => harness?.context.sessions.list().length).toBe(1);
    for (const ids of [[1], [1, 3]]) {
      advanceBySeconds(Math.max(spdyPingMs, NODE_SILENCE_MS) + 1_000);
      await expect.poll(() => pingIds(raw)).toEqual(ids);
    }
    client.socket.terminate();
  });

  it("none while the client holds up reading from the node, nor for seconds behind its last byte", async () => {
    const { authority, raw } = await startRaw({
      onSession: (socket) => {
        const frame = dataFrame(3, "x".repeat(1024 * 1024));
        for (let sent = 0; sent < FLOOD_BYTES; sent += 1024 * 1024) socket.write(frame);
      },
    });
    const client = new V5Client(authority, "stdout=true");
    client.socket.once("open", () => client.socket.pause());
    await client.opened;
    await expect.poll(downstreamBytes).toBeGreaterThan(0);
    await standsStill(downstreamBytes);
    expect(downstreamBytes()).toBeLessThan(FLOOD_BYTES);
    // Below the time-out of stream creation: this node accepts no stream.
    advanceBySeconds(NODE_SILENCE_MS);
    client.socket.resume();
    await expect.poll(downstreamBytes).toBe(FLOOD_BYTES);
    advanceBySeconds(NODE_SILENCE_MS);
    expect(pingIds(raw)).toEqual([]);
    advanceBySeconds(1_000);
    await expect.poll(() => pingIds(raw)).toEqual([1]);
    client.socket.terminate();
  });
});

describe("deadlines of a session", () => {
  it("idle: heartbeats of either side do not count; a Failure says so, and 1000 follows", async () => {
    const { authority, kubelet } = await startKubelet({});
    const client = await openExec(authority, kubelet);
    const pongs = pongsOf(client);
    const rounds = 8;
    for (let round = 1; round < rounds; round++) {
      client.socket.ping("alive");
      kubelet.sessions[0]?.spdy.ping();
      await expect.poll(() => pongs.filter((payload) => payload === "alive").length).toBe(round);
      clock.advance(idleMs / rounds);
    }
    expect(harness?.context.sessions.size).toBe(1);
    clock.advance(idleMs / rounds);
    const { status, closeCode } = await client.done;
    expect(JSON.parse(status)).toMatchObject({
      status: "Failure",
      reason: "InternalError",
      message: "Internal error occurred: the session was idle for too long",
      code: 500,
    });
    expect(closeCode).toBe(1000);
    await expect.poll(() => kubelet.sessions[0]?.socket.readableEnded).toBe(true);
    expect(
      await harness?.metric(
        'sluice_streaming_sessions_ended_total{subresource="exec",plan="translate",ended_by="gateway",cause="idle"}',
      ),
    ).toEqual([
      'sluice_streaming_sessions_ended_total{subresource="exec",plan="translate",ended_by="gateway",cause="idle"} 1',
    ]);
  });

  it("idle: a byte of payload begins the time anew", async () => {
    const { authority, kubelet } = await startKubelet({});
    const client = await openExec(authority, kubelet);
    for (let round = 1; round <= 3; round++) {
      clock.advance(idleMs - 1);
      client.send(0, "x");
      await expect.poll(upstreamBytes).toBe(round);
      clock.advance(1);
    }
    expect(harness?.context.sessions.size).toBe(1);
    clock.advance(idleMs);
    expect((await client.done).status).toContain("idle for too long");
  });

  it("idle: a tunnel ends with 1001", async () => {
    const { authority } = await startRaw({ protocol: "portforward.k8s.io" });
    const client = await TunnelClient.open(authority);
    await expect.poll(() => harness?.context.sessions.list().length).toBe(1);
    clock.advance(idleMs);
    expect(await client.closed).toEqual({ code: 1001, reason: "the session was idle for too long" });
  });

  it("stream creation: a node that never replies is given up with a Failure and 1000", async () => {
    const { authority, raw } = await startRaw();
    const client = new V5Client(authority, "stdin=true&stdout=true");
    await client.opened;
    await expect.poll(() => raw.frames.length).toBe(3);
    clock.advance(streamCreationMs - 1);
    expect(harness?.context.sessions.size).toBe(1);
    clock.advance(1);
    const { status, closeCode } = await client.done;
    expect(JSON.parse(status)).toMatchObject({
      status: "Failure",
      message: "Internal error occurred: the node did not accept the streams in time",
      code: 500,
    });
    expect(closeCode).toBe(1000);
    await expect.poll(() => raw.sockets[0]?.readableEnded).toBe(true);
    expect(raw.frames.map(({ type }) => type)).not.toContain("GOAWAY");
  });

  it("a client that is gone: stdin ends and so does the connection, without a GOAWAY that would let the command live", async () => {
    const { authority, raw } = await startRaw();
    const client = new V5Client(authority, "stdin=true&stdout=true");
    await client.opened;
    await expect.poll(() => raw.frames.length).toBe(3);
    client.socket.terminate();
    await expect.poll(() => raw.sockets[0]?.readableEnded).toBe(true);
    expect(raw.frames.slice(3).map(({ type }) => type)).toEqual(["DATA"]);
  });

  it("stream creation: replies to all streams end the deadline", async () => {
    const { authority, kubelet } = await startKubelet({});
    const client = await openExec(authority, kubelet);
    clock.advance(streamCreationMs);
    expect(harness?.context.sessions.size).toBe(1);
    client.socket.terminate();
  });
});
