import { randomBytes } from "node:crypto";
import { PassThrough, Writable } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import type { CommandStreams } from "../../../packages/client/src/command-run.ts";
import { WebSocketExecutor } from "../../../packages/client/src/executors.ts";
import { acceptValueOf } from "../../../packages/client/src/http/upgrade/websocket-request.ts";
import { execPath } from "../../../packages/client/src/pod-paths.ts";
import type { SessionTimes } from "../../../packages/client/src/session-times.ts";
import { SessionError } from "../../../packages/client/src/sessions/session-error.ts";
import { Target } from "../../../packages/client/src/target.ts";
import type { RemoteCommandVersion } from "../../../protocols/remotecommand/index.ts";
import { encodeClose, encodeSwitchingProtocols } from "../../../protocols/websocket/index.ts";
import { failureOf } from "../../support/client/closed-after-each.ts";
import {
  Collected,
  endSession,
  exitStatus,
  inputOf,
  onChannel,
  SUCCESS,
  startWebSocketServer,
  type TestWebSocketServer,
  type TestWebSocketServerOptions,
} from "../../support/client/websocket-server.ts";
import { afterHead, listenRaw, openSocketCount, until } from "../../support/http/loopback.ts";
import { ManualClock } from "../../support/manual-clock.ts";

const exec = execPath({ namespace: "default", pod: "web", container: "main" }, ["cat"]);

let server: TestWebSocketServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
  await until(() => openSocketCount() === 0, "all sockets are closed");
});

async function executor(
  onSession: (socket: WebSocket) => void,
  options: TestWebSocketServerOptions & {
    times?: Partial<SessionTimes>;
    versions?: RemoteCommandVersion[];
  } = {},
): Promise<WebSocketExecutor> {
  server = await startWebSocketServer(onSession, options);
  return new WebSocketExecutor(server.target, exec, { times: options.times }, options.versions);
}

/** Sends input back on a channel, and ends with success when the input ends. */
function loopback(channel: number): (socket: WebSocket) => void {
  return (socket) => {
    socket.on("message", (message: Buffer) => {
      if (message[0] === 255) endSession(socket);
      else socket.send(onChannel(channel, message.subarray(1)));
    });
  };
}

/** A server that says one thing when it has been asked. */
const saying =
  (...messages: (Buffer | string)[]) =>
  (socket: WebSocket): void => {
    for (const message of messages) socket.send(message, { binary: typeof message !== "string" });
    socket.close(1000);
  };

const failure = (run: Promise<unknown>) => failureOf(SessionError, run);

describe("WebSocketExecutor", () => {
  it.each([
    [1, "stdout"],
    [2, "stderr"],
  ] as const)("TestWebSocketClient_LoopbackStdinTo channel %i (%s): 1 MiB comes back whole", async (channel, name) => {
    const bytes = randomBytes(1024 * 1024);
    const output = new Collected();
    const end = await (await executor(loopback(channel))).stream({ stdin: inputOf(bytes), [name]: output });
    expect(end).toEqual({ exitCode: 0, message: "" });
    expect(output.bytes.equals(bytes)).toBe(true);
    const asked = ["stdin=true", `${name}=true`].sort().join("&");
    expect(server?.requests[0]?.url).toBe(
      `/api/v1/namespaces/default/pods/web/exec?command=cat&container=main&${asked}`,
    );
  });

  it("_LoopbackStdinAsPipe: a pipe that is written to bit by bit, and web streams", async () => {
    const stdin = new PassThrough();
    const stdout = new Collected();
    const run = (await executor(loopback(1))).stream({ stdin, stdout });
    for (let index = 0; index < 100; index += 1) {
      stdin.write(`line ${index}\n`);
      await new Promise((resolve) => setImmediate(resolve));
    }
    stdin.end();
    await run;
    expect(stdout.text.split("\n").length).toBe(101);

    const written: Uint8Array[] = [];
    await new WebSocketExecutor((server as TestWebSocketServer).target, exec).stream({
      stdin: new Blob(["web input"]).stream() as CommandStreams["stdin"] & ReadableStream<Uint8Array>,
      stdout: new WritableStream<Uint8Array>({
        write(chunk) {
          written.push(chunk);
        },
      }),
    });
    expect(Buffer.concat(written).toString()).toBe("web input");
  });

  it.each([
    1,
    7,
    125,
    4096,
    32 * 1024,
    100_000,
  ])("_DifferentBufferSizes: messages of %i bytes", async (size) => {
    const bytes = randomBytes(Math.min(size * 50, 200_000));
    const stdout = new Collected();
    const executing = await executor((socket) => {
      for (let at = 0; at < bytes.length; at += size)
        socket.send(onChannel(1, bytes.subarray(at, at + size)));
      endSession(socket);
    });
    await executing.stream({ stdout });
    expect(stdout.bytes.equals(bytes)).toBe(true);
  });

  it("_MultipleReadChannels: stdout and stderr at once; fragments are put together", async () => {
    const [out, err] = [randomBytes(300_000), randomBytes(300_000)];
    const streams = { stdout: new Collected(), stderr: new Collected() };
    const executing = await executor((socket) => {
      for (let at = 0; at < out.length; at += 1_000) {
        const half = onChannel(1, out.subarray(at, at + 500));
        socket.send(half, { fin: false });
        socket.send(out.subarray(at + 500, at + 1_000), { fin: true });
        socket.send(onChannel(2, err.subarray(at, at + 1_000)));
      }
      endSession(socket);
    });
    await executing.stream(streams);
    expect(streams.stdout.bytes.equals(out)).toBe(true);
    expect(streams.stderr.bytes.equals(err)).toBe(true);
  });

  it("_MultipleWriteChannels: input and terminal sizes at once; a terminal has no stderr", async () => {
    const sizes: string[] = [];
    const input: Buffer[] = [];
    const executing = await executor((socket) => {
      socket.on("message", (message: Buffer) => {
        if (message[0] === 4) sizes.push(message.subarray(1).toString());
        else if (message[0] === 0) input.push(message.subarray(1));
        else if (message[0] === 255) endSession(socket);
      });
    });
    async function* terminal() {
      for (let width = 1; width <= 50; width += 1) yield { width, height: 2 };
    }
    const bytes = randomBytes(100_000);
    const streams = { stdin: inputOf(bytes), stdout: new Collected(), stderr: new Collected(), tty: true };
    await executing.stream({ ...streams, terminalSizes: terminal() });
    expect(sizes.join("")).toBe(
      Array.from({ length: 50 }, (_, index) => `{"Width":${index + 1},"Height":2}\n`).join(""),
    );
    expect(Buffer.concat(input).equals(bytes)).toBe(true);
    expect(server?.requests[0]?.url).toContain("stdin=true&stdout=true&tty=true");
  });

  it.each([1, 7, 126, 127, 255])("_ErrorStream: exit code %i", async (code) => {
    const executing = await executor((socket) => endSession(socket, exitStatus(code)));
    expect(await executing.stream({})).toEqual({
      exitCode: code,
      message: `command terminated with exit code ${code}`,
    });
  });

  it("_ErrorStream: a failure without an exit code is an error with its Status", async () => {
    const status = '{"status":"Failure","message":"no such file","reason":"InternalError","code":500}';
    const executing = await executor((socket) => endSession(socket, status));
    expect(await failure(executing.stream({}))).toMatchObject({
      code: "remote-failure",
      message: "no such file",
      status: { code: 500 },
    });
  });

  it("_ErrorStream: a failure without a message says so", async () => {
    const executing = await executor((socket) => endSession(socket, '{"status":"Failure","message":null}'));
    expect(await failure(executing.stream({}))).toMatchObject({ message: "the server gave no reason" });
  });

  it.each([
    ["v4.channel.k8s.io", exitStatus(3), 3],
    ["v3.channel.k8s.io", "", 0],
    ["v2.channel.k8s.io", "command terminated with non-zero exit code: x, exit code 3", 3],
  ] as const)("_ProtocolVersions: %s", async (version, status, exitCode) => {
    const options = { protocols: [version], versions: [version] };
    const executing = await executor(saying(onChannel(1, "hi"), onChannel(3, status)), options);
    const stdout = new Collected();
    expect(await executing.stream({ stdout })).toMatchObject({ exitCode });
    expect(stdout.text).toBe("hi");
  });

  it("_BadHandshake: a server without the version refuses, and that is an upgrade failure", async () => {
    const executing = await executor(() => {}, { protocols: ["v4.channel.k8s.io"] });
    await expect(executing.stream({})).rejects.toMatchObject({
      name: "ConnectError",
      isUpgradeFailure: true,
    });
  });

  it.each([
    ["_TextMessageTypeError", ["\u0001text"], "unexpected message type: 1"],
    ["_EmptyMessageHandled", [Buffer.alloc(0)], "read stream id: EOF"],
  ] as const)("%s", async (_name, messages, text) => {
    const executing = await executor(saying(...messages));
    expect(await failure(executing.stream({ stdout: new Collected() }))).toMatchObject({
      code: "protocol-error",
      message: text,
    });
  });

  it("ignores a 255, unknown channels, and output that was not asked for", async () => {
    const executing = await executor(
      saying(
        Buffer.of(1),
        Buffer.of(255, 1),
        Buffer.of(255, 1, 2),
        onChannel(77, "x"),
        onChannel(2, "x"),
        onChannel(3, SUCCESS),
      ),
    );
    expect(await executing.stream({ stdout: new Collected() })).toMatchObject({ exitCode: 0 });
  });

  it.each([
    ["no status at all", [], "missing-status", "without a status"],
    ["exit code 300", [onChannel(3, exitStatus(300))], "remote-failure", 'invalid exit code value "300"'],
    [
      "no Status but text",
      [onChannel(3, "oops")],
      "remote-failure",
      "error stream protocol error: not a Status",
    ],
    ["a status of 65 KiB", [onChannel(3, "x".repeat(65 * 1024))], "protocol-error", "too large"],
  ] as const)("%s is an error", async (_what, messages, code, text) => {
    const error = await failure((await executor(saying(...messages))).stream({}));
    expect(error.code).toBe(code);
    expect(error.message).toContain(text);
  });

  it("a status counts however the connection ends after it; a broken connection without one is an error", async () => {
    const said = await executor((socket) =>
      socket.send(onChannel(3, exitStatus(4)), () => socket.terminate()),
    );
    expect(await said.stream({})).toMatchObject({ exitCode: 4 });
    await server?.close();
    const silent = await executor((socket) => socket.terminate());
    expect(await failure(silent.stream({}))).toMatchObject({ code: "connection-lost" });
  });

  it("does not wait for ever for a server that has said its status and does not close", async () => {
    const times = { closeWaitMs: 30 };
    const executing = await executor((socket) => socket.send(onChannel(3, SUCCESS)), { times });
    expect(await executing.stream({})).toMatchObject({ exitCode: 0 });
  });

  it("resolves when its server has closed the connection: a caller that exits then resets nothing", async () => {
    let hasServerSeenEnd = false;
    const raw = await listenRaw((socket) => {
      afterHead(socket, (head) => {
        const key = /sec-websocket-key: (\S+)/i.exec(head.toString("latin1"))?.[1] ?? "";
        socket.write(encodeSwitchingProtocols(acceptValueOf(key), "v5.channel.k8s.io"));
        socket.write(Buffer.concat([Buffer.of(0x82, SUCCESS.length + 1), onChannel(3, SUCCESS)]));
        socket.write(encodeClose(1000, ""));
      });
      socket.on("end", () => {
        hasServerSeenEnd = true;
        socket.end();
      });
    });
    const target = new Target({ url: `http://127.0.0.1:${raw.port}`, proxy: "none" });
    await new WebSocketExecutor(target, exec).stream({});
    expect(hasServerSeenEnd).toBe(true);
    await raw.close();
  });

  it("resolves though its server keeps the connection open", async () => {
    const executing = await executor((socket) => {
      endSession(socket);
      socket.pause();
    });
    expect(await executing.stream({})).toMatchObject({ exitCode: 0 });
  });
});

describe("heartbeats", () => {
  it("_HeartbeatTimeout: a server that answers nothing is given up", async () => {
    const clock = new ManualClock();
    const executing = await executor(() => {}, { autoPong: false, times: { clock } });
    const run = failure(executing.stream({ stdin: new PassThrough() }));
    await until(() => clock.listenerCount > 0, "the session runs");
    clock.advance(60_999);
    clock.advance(1);
    expect(await run).toMatchObject({ code: "heartbeat-timeout" });
  });

  it("_HeartbeatSucceeds: a PING every five seconds, and its PONG keeps the session", async () => {
    const clock = new ManualClock();
    let pings = 0;
    let session: WebSocket | undefined;
    const executing = await executor(
      (socket) => {
        session = socket;
        socket.on("ping", () => {
          pings += 1;
        });
      },
      { times: { clock } },
    );
    const run = executing.stream({});
    await until(() => clock.listenerCount > 0, "the session runs");
    for (let second = 1; second <= 30; second += 1) {
      clock.advance(5_000);
      await until(() => pings === second, "the PING came");
    }
    endSession(session as WebSocket);
    expect(await run).toMatchObject({ exitCode: 0 });
  });

  it("a reader that stalls for hours, here or there, does not kill the session", async () => {
    const clock = new ManualClock();
    const chunk = Buffer.alloc(64 * 1024);
    let release: (() => void) | undefined;
    const stalled = new Writable({
      highWaterMark: 1,
      write: (_chunk, _encoding, done) => {
        release = done;
      },
    });
    const executing = await executor(
      (socket) => {
        for (let count = 0; count < 200; count += 1) socket.send(onChannel(1, chunk));
        endSession(socket);
      },
      { times: { clock } },
    );
    let hasEnded = false;
    const run = executing.stream({ stdout: stalled }).finally(() => {
      hasEnded = true;
    });
    await until(() => release !== undefined, "the first output came");
    for (let hour = 0; hour < 5; hour += 1) clock.advance(3_600_000);
    expect(hasEnded).toBe(false);
    const flowing = setInterval(() => {
      const taken = release;
      release = undefined;
      taken?.();
    }, 0);
    expect(await run).toMatchObject({ exitCode: 0 });
    clearInterval(flowing);
  });

  it("input that the remote command does not read holds up PONGs, and does not kill the session", async () => {
    const clock = new ManualClock();
    let session: WebSocket | undefined;
    const executing = await executor(
      (socket) => {
        session = socket;
        // Acts like a server whose receive loop waits for the command to read.
        socket.once("message", () => socket.pause());
      },
      { times: { clock } },
    );
    const run = executing.stream({ stdin: inputOf(randomBytes(8 * 1024 * 1024)) });
    await until(() => session?.isPaused === true, "the server reads no more");
    for (let hour = 0; hour < 3; hour += 1) clock.advance(3_600_000);
    endSession(session as WebSocket, exitStatus(9));
    expect(await run).toMatchObject({ exitCode: 9 });
  });
});

describe("the local side", () => {
  it("an output that fails ends the session with a typed error", async () => {
    const full = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error("no space left on device"))),
    });
    const executing = await executor((socket) => socket.send(onChannel(1, "x")));
    expect(await failure(executing.stream({ stdout: full }))).toMatchObject({
      code: "output-failed",
      message: "writing to stdout: no space left on device",
    });
  });

  it("an input that fails ends the session, and not as if the input had ended", async () => {
    const messages: Buffer[] = [];
    const executing = await executor((socket) => {
      socket.on("message", (message: Buffer) => messages.push(message));
    });
    const stdin = new PassThrough();
    const run = failure(executing.stream({ stdin }));
    stdin.write("a");
    await until(() => messages.length > 0, "the input came");
    stdin.destroy(new Error("disk failure"));
    expect(await run).toMatchObject({ code: "input-failed", message: "reading from stdin: disk failure" });
    expect(messages.map((message) => message.toString("latin1"))).toEqual(["\u0000a"]);
  });

  it("a signal ends the session, or the attempt", async () => {
    const controller = new AbortController();
    const executing = await executor((socket) => socket.on("message", () => controller.abort()));
    const stdin = inputOf("x");
    const run = executing.stream({ stdin, signal: controller.signal });
    expect(await failure(run)).toMatchObject({ code: "aborted" });
    await expect(executing.stream({ signal: controller.signal })).rejects.toMatchObject({ leg: "aborted" });
  });

  it("hands an input back that the session did not use", async () => {
    const stdin = new PassThrough();
    const executing = await executor((socket) => endSession(socket));
    await executing.stream({ stdin });
    stdin.write("later");
    expect(String(stdin.read())).toBe("later");
  });
});
