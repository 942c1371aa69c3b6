import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { buffer, text } from "node:stream/consumers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { ForwardedStream } from "../../../packages/client/src/forwarded-stream.ts";
import type { PortForwardConnection } from "../../../packages/client/src/port-forward-connection.ts";
import {
  FallbackDialer,
  SpdyDialer,
  TunnelDialer,
} from "../../../packages/client/src/port-forward-dialers.ts";
import { PortForwarder, parsePortArgument } from "../../../packages/client/src/port-forwarder.ts";
import { Target } from "../../../packages/client/src/target.ts";
import { createDemoPodServers } from "../../../packages/lab/src/fake-node/run-fake-node.ts";
import { openSocketCount, until } from "../../support/http/loopback.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { type KubeletScript, type KubeletSession, ScriptedKubelet } from "../../support/scripted-kubelet.ts";
import { POD, startNode } from "../fake-node/upgrade.ts";
import { startTunnelServer } from "./tunnel-server.ts";

// The bounds under test.
const ERROR_WAIT_MS = 5_000;
const MAX_STREAM_BUFFER_BYTES = 1024 * 1024;
const STREAM_STALL_TIMEOUT_MS = 30_000;

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
  await until(() => openSocketCount() === 0, "all sockets are closed");
});

const targetOf = (port: number) => new Target({ url: `http://127.0.0.1:${port}`, proxy: "none" });

/** A pod whose ports say back what they hear. */
const echoing: KubeletScript = {
  protocol: "portforward.k8s.io",
  onData: (name, part, fin, session) => {
    if (!name.startsWith("data")) return;
    session.streams.get(name)?.write(Buffer.from(part));
    if (!fin) return;
    session.streams.get(name)?.finish();
    session.streams.get(name.replace("data", "error"))?.finish();
  },
};

async function startKubelet(script: KubeletScript = echoing) {
  const kubelet = new ScriptedKubelet({ protocol: "portforward.k8s.io", ...script });
  const port = await kubelet.listen();
  closing.push(() => kubelet.close());
  return { kubelet, target: targetOf(port) };
}

async function dialed(script?: KubeletScript, times?: { clock: ManualClock }) {
  const { kubelet, target } = await startKubelet(script);
  const connection = await new SpdyDialer(target, "/portforward", { times }).dial();
  closing.push(async () => connection.close());
  return { kubelet, connection };
}

async function forwarding(openStream: (port: number) => Promise<ForwardedStream>, errors: string[] = []) {
  const forwarder = new PortForwarder({
    addresses: ["127.0.0.1"],
    ports: [{ local: 0, remote: 80 }],
    openStream,
    onError: (_port, error) => errors.push(error.message),
  });
  const [listening] = await forwarder.start();
  closing.push(() => forwarder.close());
  return listening?.local ?? 0;
}

function hasIPv6Loopback(): boolean {
  return (networkInterfaces().lo ?? []).some(({ address }) => address === "::1");
}

async function local(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  closing.push(async () => socket.destroy());
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** The other side ended it, in whatever way. */
function gone(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once("close", resolve).once("end", resolve).resume();
  });
}

async function echoThrough(connection: PortForwardConnection, bytes: Buffer): Promise<Buffer> {
  const stream = connection.openStream(80);
  stream.end(bytes);
  return buffer(stream);
}

describe("port-forward sessions", () => {
  it("TestHandleConnection: the error stream first, the same request id, data both ways, streams removed", async () => {
    const { kubelet, connection } = await dialed();
    expect((await echoThrough(connection, Buffer.from("hello"))).toString()).toBe("hello");
    await echoThrough(connection, Buffer.from("again"));
    const [session] = kubelet.sessions as [KubeletSession];
    expect([...session.streams.values()].map(({ headers }) => Object.fromEntries(headers))).toEqual(
      ["0", "1"].flatMap((requestid) => [
        { streamtype: "error", port: "80", requestid },
        { streamtype: "data", port: "80", requestid },
      ]),
    );
    await until(() => connection.openStreams === 0, "the streams are removed");
  });

  it("carries 4 MiB both ways on several streams at once, bare and in a tunnel", async () => {
    const bare = await dialed();
    const tunnel = await startTunnelServer(echoing);
    closing.push(tunnel.close);
    const tunneled = await new TunnelDialer(targetOf(tunnel.port), "/portforward").dial();
    closing.push(async () => tunneled.close());
    for (const connection of [bare.connection, tunneled]) {
      const all = await Promise.all(
        [1, 2, 3].map(async () => {
          const bytes = randomBytes(4 * 1024 * 1024);
          return (await echoThrough(connection, bytes)).equals(bytes);
        }),
      );
      expect(all).toEqual([true, true, true]);
    }
  });

  it("TestTunnelingConnection_ReadWriteClose: either side's Close 1000 is the end, any other code a failure", async () => {
    for (const code of [1000, 1011]) {
      const tunnel = await startTunnelServer(echoing);
      closing.push(tunnel.close);
      const connection = await new TunnelDialer(targetOf(tunnel.port), "/portforward").dial();
      await until(() => tunnel.sessions.length === 1, "the session is there");
      tunnel.sessions[0]?.close(code, "why");
      const error = await connection.ended;
      expect(error?.message).toContain(code === 1000 ? "the connection ended" : "websocket: close 1011: why");
    }
    const tunnel = await startTunnelServer(echoing);
    closing.push(tunnel.close);
    const connection = await new TunnelDialer(targetOf(tunnel.port), "/portforward").dial();
    connection.close();
    expect(await connection.ended).toBeUndefined();
    await until(() => tunnel.closeCodes.length === 1, "the server saw the Close");
    expect(tunnel.closeCodes).toEqual([1000]);
  });

  it("TestHandleConnectionSendsRemoteError: the text fails that connection, and only that", async () => {
    const { connection } = await dialed({
      onStream: (name, stream) => {
        if (name !== "error0") return;
        stream.write(Buffer.from("error forwarding port 80 to pod x, uid : connection refused\u001b[2J"));
        stream.reset();
      },
      onData: echoing.onData as NonNullable<KubeletScript["onData"]>,
    });
    await expect(text(connection.openStream(80))).rejects.toMatchObject({
      code: "remote-failure",
      message: "error forwarding port 80 to pod x, uid : connection refused[2J",
    });
    expect((await echoThrough(connection, Buffer.from("still there"))).toString()).toBe("still there");
  });

  it("the text of an error is whole, wherever its frames are cut, and no longer than its bound", async () => {
    const said = Buffer.from("pod überlastet: 接続できません 🚫");
    const { connection } = await dialed({
      onStream: (name, stream) => {
        if (name !== "error0" && name !== "error1") return;
        if (name === "error0") for (const byte of said) stream.write(Buffer.of(byte));
        else stream.write(Buffer.alloc(1024 * 1024, "x"));
        stream.reset();
      },
    });
    await expect(text(connection.openStream(80))).rejects.toMatchObject({ message: said.toString() });
    await expect(text(connection.openStream(80))).rejects.toMatchObject({ message: "x".repeat(4 * 1024) });
  });

  it("TestWaitForConnectionExitsOnStreamConnClosed: every stream fails, and the session says so", async () => {
    const { kubelet, connection } = await dialed();
    const stream = connection.openStream(80);
    const failed = once(stream, "error");
    await until(() => kubelet.sessions[0]?.streams.size === 2, "the streams are there");
    kubelet.sessions[0]?.socket.destroy();
    expect((await failed)[0]).toMatchObject({ message: "lost connection to pod" });
    expect((await connection.ended)?.message).toContain("lost connection to pod");
    expect(() => connection.openStream(80)).toThrow("lost connection to pod");
  });

  /** containerd ends a refused connection so: the data stream's end is one write, the reason the next. */
  it.each([
    "its client has ended",
    "its client is open",
  ])("a reason that follows the end of the data is reported: %s", async (when) => {
    const hasEnded = when === "its client has ended";
    const { connection } = await dialed({
      onStream: (name, stream, session) => {
        if (name !== "data0") return;
        stream.finish();
        session.spdy.ping();
        const isRead = until(() => session.pongs.length > 0, "the end of the data has been read");
        void isRead.then(() => {
          session.streams.get("error0")?.write(Buffer.from("error forwarding port 80: connection refused"));
          session.streams.get("error0")?.finish();
        });
      },
    });
    const errors: string[] = [];
    const port = await forwarding(async () => connection.openStream(80), errors);
    const socket = await local(port);
    if (hasEnded) socket.end();
    await gone(socket);
    if (!hasEnded) socket.end();
    await until(() => errors.length > 0, "the reason is reported");
    expect(errors).toEqual(["error forwarding port 80: connection refused"]);
  });

  it("a server that ends the data and never the error stream ends the connection all the same", async () => {
    const { connection } = await dialed({
      onStream: (name, stream) => {
        if (name === "data0") stream.finish();
      },
    });
    const stream = connection.openStream(80);
    stream.resume().end();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      await once(stream, "end");
      expect(stream.destroyed).toBe(false);
      vi.advanceTimersByTime(ERROR_WAIT_MS);
      await once(stream, "close");
    } finally {
      vi.useRealTimers();
    }
    expect(stream.errored).toBeNull();
  });

  it("an answer of another protocol is refused", async () => {
    for (const protocol of ["", "v4.channel.k8s.io"]) {
      const { target } = await startKubelet({ protocol });
      await expect(new SpdyDialer(target, "/portforward").dial()).rejects.toMatchObject({
        leg: "handshake",
        message: `unable to negotiate protocol: client supports "portforward.k8s.io", server returned "${protocol}"`,
      });
    }
  });

  it("TestFallbackDialer: after a refusal, not after a lost connection", async () => {
    const { target } = await startKubelet({
      ...echoing,
      refuse: ({ method }) => (method === "GET" ? "HTTP/1.1 400 Bad Request\r\n\r\n" : undefined),
    });
    const spdy = new SpdyDialer(target, "/portforward");
    const connection = await new FallbackDialer(new TunnelDialer(target, "/portforward"), spdy).dial();
    closing.push(async () => connection.close());
    expect(connection.transport).toBe("spdy");
    const nobody = new TunnelDialer(targetOf(1), "/portforward");
    await expect(new FallbackDialer(nobody, spdy).dial()).rejects.toMatchObject({ leg: "tcp" });
  });

  it("one local side that does not read holds the others up for so long and no longer", async () => {
    const clock = new ManualClock();
    const { kubelet, connection } = await dialed(echoing, { clock });
    const stalled = connection.openStream(80);
    const failed = once(stalled, "error");
    await until(() => kubelet.sessions[0]?.streams.has("data0") === true, "the stream is there");
    kubelet.sessions[0]?.streams.get("data0")?.write(randomBytes(3 * MAX_STREAM_BUFFER_BYTES));
    await until(() => stalled.readableLength >= MAX_STREAM_BUFFER_BYTES, "its buffer is full");
    // Alone, it may take as long as it likes.
    for (let hour = 0; hour < 3; hour += 1) clock.advance(3_600_000);
    expect(stalled.destroyed).toBe(false);
    const other = echoThrough(connection, Buffer.from("waiting"));
    clock.advance(STREAM_STALL_TIMEOUT_MS);
    expect((await failed)[0]).toMatchObject({ message: "the local connection does not read" });
    expect((await other).toString()).toBe("waiting");
  });
});

describe("a server that reads no more", () => {
  /** containerd, if the target ends first, ends both streams and does not read the data stream. */
  const endingFirst: KubeletScript = {
    ...echoing,
    onStream: (name, stream, session) => {
      if (name !== "data0") return;
      stream.write(Buffer.from("banner"));
      session.streams.get("error0")?.finish();
      stream.finish();
    },
  };

  it("is sent nothing more of a connection that it has ended, and its sender hears of it behind all that came", async () => {
    const received = new Map<string, number>();
    const { connection } = await dialed({
      ...endingFirst,
      onData: (name, part, fin, session) => {
        received.set(name, (received.get(name) ?? 0) + part.byteLength);
        if (name !== "data0") echoing.onData?.(name, part, fin, session);
      },
    });
    const errors: string[] = [];
    const port = await forwarding(async () => connection.openStream(80), errors);
    const socket = await local(port);
    expect((await once(socket, "data")).toString()).toBe("banner");
    await once(socket, "end");
    const closed = new Promise<string>((resolve) => {
      socket.once("error", ({ message }) => resolve(message));
    });
    socket.write(Buffer.alloc(16 * 1024 * 1024));
    expect(await closed).toMatch(/ECONNRESET|EPIPE/);
    expect(errors).toEqual([]);
    expect(received.get("data0") ?? 0).toBe(0);
    expect((await echoThrough(connection, Buffer.from("next"))).toString()).toBe("next");
  });

  it.each([
    "finishes",
    "resets",
  ])("a library's stream says so to who writes, and to nobody else: it %s", async (how) => {
    const { connection } = await dialed({
      onStream: (name, stream, session) => {
        if (!name.startsWith("data")) return;
        stream.write(Buffer.from("banner"));
        if (how === "resets") stream.reset();
        else {
          stream.finish();
          session.streams.get(name.replace("data", "error"))?.finish();
        }
      },
    });
    const writing = connection.openStream(80);
    await once(writing, "remoteClosed");
    writing.write("too late");
    const failed = new Promise<Error>((resolve) => void writing.once("error", resolve));
    expect((await once(writing, "data"))[0].toString()).toBe("banner");
    expect(await failed).toMatchObject({ code: "remote-closed" });
    const reading = connection.openStream(80);
    expect((await buffer(reading)).toString()).toBe("banner");
    reading.end();
    await until(() => connection.openStreams === 0, "both are over");
  });

  it("fails a connection that is not accepted in time, and opens no more", async () => {
    const clock = new ManualClock();
    const { kubelet, connection } = await dialed(echoing, { clock });
    expect((await echoThrough(connection, Buffer.from("x"))).toString()).toBe("x");
    kubelet.sessions[0]?.socket.pause();
    const stream = connection.openStream(80);
    const failed = once(stream, "error");
    clock.advance(29_999);
    expect(stream.destroyed).toBe(false);
    clock.advance(1);
    expect((await failed)[0]).toMatchObject({ code: "stream-timeout" });
    expect(await stream.accepted).toBe(false);
    // It was the last one of a session that opens no more.
    expect(await connection.ended).toBeUndefined();
  });

  it("is given up where data on its way holds up others, and not where it holds up itself alone", async () => {
    const clock = new ManualClock();
    const { kubelet, connection } = await dialed(echoing, { clock });
    const [one] = [connection.openStream(80)];
    expect(await one.accepted).toBe(true);
    kubelet.sessions[0]?.socket.pause();
    one.write(Buffer.alloc(100));
    for (let hour = 0; hour < 3; hour += 1) clock.advance(3_600_000);
    expect(connection.isOver).toBe(false);
    kubelet.sessions[0]?.socket.resume();
    await once(one, "data");
    const other = connection.openStream(80);
    expect(await other.accepted).toBe(true);
    kubelet.sessions[0]?.socket.pause();
    one.on("error", () => {}).write(Buffer.alloc(100));
    other.on("error", () => {});
    clock.advance(60_999);
    expect(connection.isOver).toBe(false);
    clock.advance(1);
    expect(await connection.ended).toMatchObject({ code: "heartbeat-timeout" });
  });

  it("is in doubt after data, and after data that was given up, until it answers or accepts a stream", async () => {
    const { kubelet, connection } = await dialed({});
    const answer = (): void => kubelet.sessions[0]?.streams.get("data0")?.write(Buffer.from("answer"));
    expect(connection.isInDoubt).toBe(false);
    const stream = connection.openStream(80);
    stream.write("x");
    // Accepted before the data: that says nothing of it.
    expect(await stream.accepted).toBe(true);
    kubelet.sessions[0]?.spdy.ping();
    expect(connection.isInDoubt).toBe(true);
    answer();
    await once(stream, "data");
    expect(connection.isInDoubt).toBe(false);
    stream.destroy();
    expect(connection.isInDoubt).toBe(true);
    kubelet.sessions[0]?.spdy.ping();
    await until(() => kubelet.sessions[0]?.pongs.length === 2, "the answers to PINGs");
    expect(connection.isInDoubt).toBe(true);
    expect(await connection.openStream(80).on("error", () => {}).accepted).toBe(true);
    expect(connection.isInDoubt).toBe(false);
  });
});

describe("a pod's server that ends first", () => {
  it.each([
    "SPDY",
    "a tunnel",
  ])("does not stop the connections after it, whatever its client still sends: %s", async (way) => {
    const banner = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {}).end("banner");
    });
    const [servers] = [await createDemoPodServers("web"), banner.listen(0, "127.0.0.1")];
    await once(banner, "listening");
    const ports = new Map([...servers.ports, [5, (banner.address() as AddressInfo).port]]);
    const node = await startNode({ pods: [{ ...POD, ports }] });
    const Dialer = way === "SPDY" ? SpdyDialer : TunnelDialer;
    const connection = await new Dialer(targetOf(node.port), "/portForward/default/web").dial();
    closing.push(async () => {
      connection.close();
      await Promise.all([node.close(), servers.close(), new Promise((resolve) => banner.close(resolve))]);
    });
    const [first, second] = await Promise.all(
      [5, 7].map((remote) => forwarding(async () => connection.openStream(remote))),
    );
    for (let round = 0; round < 3; round += 1) {
      const socket = await local(first ?? 0);
      await once(socket.resume(), "end");
      const lost = new Promise((resolve) => void socket.once("error", resolve));
      socket.write(Buffer.alloc(16 * 1024 * 1024));
      expect(await lost).toMatchObject({ code: expect.stringMatching(/ECONNRESET|EPIPE/) });
      const next = await local(second ?? 0);
      next.end("served");
      expect(await text(next)).toBe("served");
    }
  });
});

describe("PortForwarder", () => {
  it("joins local connections with streams, half-close included", async () => {
    const { connection } = await dialed();
    const port = await forwarding(async (remote) => connection.openStream(remote));
    const socket = await local(port);
    socket.end("half-closed");
    expect(await text(socket)).toBe("half-closed");
  });

  it("TestForwardPortsReturnsErrorWhenConnectionIsLost: a lost session, or no session, does not end the forward", async () => {
    const first = await dialed();
    const second = await dialed();
    const errors: string[] = [];
    let connection: PortForwardConnection | undefined = first.connection;
    const port = await forwarding(async (remote) => {
      if (connection === undefined) throw new Error("no pod is ready");
      return connection.openStream(remote);
    }, errors);
    const lost = await local(port);
    const reset = gone(lost);
    lost.write("x");
    await until(() => first.kubelet.sessions[0]?.streams.size === 2, "the streams are there");
    first.kubelet.sessions[0]?.socket.destroy();
    await reset;
    connection = undefined;
    await gone(connect({ port, host: "127.0.0.1" }).on("error", () => {}));
    connection = second.connection;
    const socket = await local(port);
    socket.end("after the replacement");
    expect(await text(socket)).toBe("after the replacement");
    expect(errors).toEqual(["lost connection to pod", "no pod is ready"]);
  });

  it("TestGetListener, TestGetPortsReturnsDynamicallyAssignedLocalPort: any free port, the same on every address", async () => {
    const openStream = () => Promise.reject(new Error("unused"));
    const forwarder = new PortForwarder({ ports: [{ local: 0, remote: 80 }], openStream });
    const listening = await forwarder.start();
    closing.push(() => forwarder.close());
    expect(listening[0]).toMatchObject({ address: "127.0.0.1", remote: 80 });
    expect(new Set(listening.map(({ local }) => local)).size).toBe(1);

    const taken = { ports: [{ local: listening[0]?.local ?? 0, remote: 80 }], openStream };
    await expect(new PortForwarder({ ...taken, addresses: ["127.0.0.1"] }).start()).rejects.toThrow(
      /^unable to listen on port \d+: Listeners failed to create with the following errors: \[unable to create listener: Error listen tcp 127\.0\.0\.1:\d+: bind: address already in use/,
    );
    await expect(new PortForwarder({ ...taken, addresses: ["web"] }).start()).rejects.toThrow(
      "web is not a valid IP",
    );
  });

  it.skipIf(!hasIPv6Loopback())("another program on one address of localhost is named", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    closing.push(async () => void other.close());
    const { port } = other.address() as AddressInfo;
    const errors: string[] = [];
    const forwarder = new PortForwarder({
      ports: [{ local: port, remote: 80 }],
      openStream: () => Promise.reject(new Error("unused")),
      onError: ({ address, local, remote }, error) =>
        errors.push(`${address}:${local} -> ${remote}: ${error.message}`),
    });
    closing.push(() => forwarder.close());
    expect(await forwarder.start()).toEqual([{ address: "::1", local: port, remote: 80 }]);
    expect(errors).toEqual([
      `127.0.0.1:${port} -> 80: listen tcp 127.0.0.1:${port}: bind: address already in use`,
    ]);
  });

  it("TestForwardPortsReturnsNilWhenStopChanIsClosed: closing ends the listener and its connections", async () => {
    const { connection } = await dialed();
    const forwarder = new PortForwarder({
      addresses: ["127.0.0.1"],
      ports: [{ local: 0, remote: 80 }],
      openStream: async (remote) => connection.openStream(remote),
    });
    const [listening] = await forwarder.start();
    const socket = await local(listening?.local ?? 0);
    const closed = gone(socket);
    await forwarder.close();
    await closed;
  });

  it("one connection more than allowed is closed, and the others go on", async () => {
    const { connection } = await dialed();
    const forwarder = new PortForwarder({
      addresses: ["127.0.0.1"],
      ports: [{ local: 0, remote: 80 }],
      openStream: async (remote) => connection.openStream(remote),
      maxConnections: 2,
    });
    const [listening] = await forwarder.start();
    closing.push(() => forwarder.close());
    const port = listening?.local ?? 0;
    const [first] = [await local(port), await local(port)];
    await gone(connect({ port, host: "127.0.0.1" }).on("error", () => {}));
    first?.end("still there");
    expect(await text(first as Socket)).toBe("still there");
  });

  it.each([
    ["80", 80, 80],
    ["8080:80", 8080, 80],
    [":80", 0, 80],
    ["0:80", 0, 80],
  ])("TestParsePortsAndNew: %s", (argument, localPort, remote) => {
    expect(parsePortArgument(argument)).toEqual({ local: localPort, remote });
  });

  it.each([
    ["", "invalid port format ''"],
    ["1:2:3", "invalid port format '1:2:3'"],
    ["a:80", "local port 'a' must be a number from 0 to 65535"],
    ["80:", "remote port '' must be a number from 1 to 65535"],
    ["80:65536", "remote port '65536' must be a number from 1 to 65535"],
    ["80:0", "remote port '0' must be a number from 1 to 65535"],
    ["-1", "local port '-1' must be a number from 0 to 65535"],
  ])("TestParsePortsAndNew: %j is refused", (argument, message) => {
    expect(() => parsePortArgument(argument)).toThrow(message);
  });
});
