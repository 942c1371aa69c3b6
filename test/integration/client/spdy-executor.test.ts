import { randomBytes } from "node:crypto";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { FallbackExecutor, SpdyExecutor, WebSocketExecutor } from "../../../packages/client/src/executors.ts";
import { execPath } from "../../../packages/client/src/pod-paths.ts";
import type { SessionTimes } from "../../../packages/client/src/session-times.ts";
import { SessionError } from "../../../packages/client/src/sessions/session-error.ts";
import { Target } from "../../../packages/client/src/target.ts";
import { closedAfterEach, failureOf } from "../../support/client/closed-after-each.ts";
import {
  Collected,
  endSession,
  exitStatus,
  inputOf,
  SUCCESS,
  startWebSocketServer,
} from "../../support/client/websocket-server.ts";
import { startConnectProxy } from "../../support/connect-proxy.ts";
import { until } from "../../support/http/loopback.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { startRawNode } from "../../support/raw-node.ts";
import {
  endExec,
  type KubeletScript,
  type KubeletSession,
  ScriptedKubelet,
} from "../../support/scripted-kubelet.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

const exec = execPath({ namespace: "default", pod: "web" }, ["cat"]);

const closing = closedAfterEach();

async function startKubelet(script: KubeletScript) {
  const kubelet = new ScriptedKubelet(script);
  const port = await kubelet.listen();
  closing.push(() => kubelet.close());
  return { kubelet, port, target: new Target({ url: `http://127.0.0.1:${port}`, proxy: "none" }) };
}

async function executor(script: KubeletScript, times: Partial<SessionTimes> = {}) {
  const started = await startKubelet({ protocol: "v4.channel.k8s.io", ...script });
  return { ...started, executing: new SpdyExecutor(started.target, exec, { times }) };
}

const failure = (run: Promise<unknown>) => failureOf(SessionError, run);

/** Ends the session when its last expected stream is there. */
const endingAt =
  (count: number, end: (session: KubeletSession) => void): NonNullable<KubeletScript["onStream"]> =>
  (_name, _stream, session) => {
    if (session.streams.size === count) end(session);
  };

describe("SpdyExecutor", () => {
  it("resolves when its connection is closed: a caller that exits then resets nothing", async () => {
    let hasServerSeenEnd = false;
    const { executing } = await executor({
      onStream: endingAt(2, ({ streams, socket }) => {
        streams.get("stdout")?.finish();
        streams.get("error")?.write(Buffer.from(SUCCESS));
        streams.get("error")?.finish();
        socket.once("end", () => {
          hasServerSeenEnd = true;
          socket.end();
        });
      }),
    });
    await executing.stream({ stdout: new PassThrough().resume() });
    expect(hasServerSeenEnd).toBe(true);
  });

  it.each([
    ["everything", { stdin: true, stdout: true, stderr: true }, ["error", "stdin", "stdout", "stderr"]],
    [
      "a terminal drops stderr",
      { stdin: true, stdout: true, stderr: true, tty: true },
      ["error", "stdin", "stdout", "resize"],
    ],
    ["output only", { stdout: true }, ["error", "stdout"]],
    ["nothing", {}, ["error"]],
  ])("TestV2CreateStreams, TestSPDYExecutorStream: %s", async (_what, wanted: Record<
    string,
    boolean
  >, names) => {
    const { executing, kubelet } = await executor({
      onStream: endingAt(names.length, (session) => endExec(session, SUCCESS)),
    });
    const end = await executing.stream({
      ...(wanted.stdin && { stdin: new PassThrough() }),
      ...(wanted.stdout && { stdout: new Collected() }),
      ...(wanted.stderr && { stderr: new Collected() }),
      tty: wanted.tty,
    });
    expect(end.exitCode).toBe(0);
    expect([...(kubelet.sessions[0]?.streams.keys() ?? [])]).toEqual(names);
    expect(kubelet.requests[0]?.headers["x-stream-protocol-version"]).toBe(
      "v4.channel.k8s.io, v3.channel.k8s.io, v2.channel.k8s.io",
    );
  });

  it("TestStreamRandomData: input and output arrive whole", async () => {
    const bytes = randomBytes(1024 * 1024);
    const { executing } = await executor({
      onData: (name, part, fin, session) => {
        if (name !== "stdin") return;
        session.streams.get("stdout")?.write(Buffer.from(part));
        if (fin) endExec(session, SUCCESS);
      },
    });
    const stdout = new Collected();
    await executing.stream({ stdin: inputOf(bytes), stdout });
    expect(stdout.bytes.equals(bytes)).toBe(true);
  });

  it("TestSPDYExecutorNonZeroExitCode, TestV4ErrorDecoder: the code, from a Status without metadata, too", async () => {
    const { executing } = await executor({
      onStream: endingAt(1, (session) => endExec(session, exitStatus(42).replace('"metadata":{},', ""))),
    });
    expect(await executing.stream({})).toMatchObject({ exitCode: 42 });
  });

  it.each([
    ["", "remote-failure", "error stream protocol error: unknown error", '{"status":"Whatever"}'],
    ["", "remote-failure", "details must be set", '{"status":"Failure","reason":"NonZeroExitCode"}'],
    [
      "",
      "remote-failure",
      "no ExitCode cause given",
      '{"status":"Failure","reason":"NonZeroExitCode","details":{}}',
    ],
    ["", "missing-status", "without a status", ""],
  ])("TestV4ErrorDecoder %s: %s, %s", async (_name, code, text, status) => {
    const { executing } = await executor({ onStream: endingAt(1, (session) => endExec(session, status)) });
    const error = await failure(executing.stream({}));
    expect(error.code).toBe(code);
    expect(error.message).toContain(text);
  });

  it("TestV2ErrorStreamReading: an empty error stream that ends is success, text is a failure", async () => {
    for (const protocol of ["v2.channel.k8s.io", "v3.channel.k8s.io"]) {
      const good = await executor({ protocol, onStream: endingAt(1, (session) => endExec(session, "")) });
      expect(await good.executing.stream({})).toMatchObject({ exitCode: 0 });
      const bad = await executor({
        protocol,
        onStream: endingAt(1, (session) => endExec(session, "no such")),
      });
      expect(await failure(bad.executing.stream({}))).toMatchObject({
        code: "remote-failure",
        message: "error executing remote command: no such",
      });
      const dead = await executor({ protocol, onStream: endingAt(1, ({ socket }) => socket.end()) });
      expect((await failure(dead.executing.stream({}))).code).toBe("missing-status");
    }
  });

  it("TestStreamExitsAfterConnectionIsClosed: an error, though input is still open", async () => {
    const { executing } = await executor({ onStream: endingAt(3, ({ socket }) => socket.destroy()) });
    const run = executing.stream({ stdin: new PassThrough(), stdout: new Collected() });
    expect(["missing-status", "connection-lost"]).toContain((await failure(run)).code);
  });

  it("TestSPDYExecutorStream: a cancelled context ends the session", async () => {
    const controller = new AbortController();
    const { executing } = await executor({ onStream: endingAt(2, () => controller.abort()) });
    const run = executing.stream({ stdin: new PassThrough(), signal: controller.signal });
    expect((await failure(run)).code).toBe("aborted");
  });

  it("TestLateStreamCreation: a server that accepts no stream is an error, not a hang", async () => {
    const clock = new ManualClock();
    const node = await startRawNode();
    closing.push(() => node.close());
    const target = new Target({ url: `http://127.0.0.1:${node.port}`, proxy: "none" });
    const run = failure(
      new SpdyExecutor(target, exec, { times: { clock } }).stream({ stdin: new PassThrough() }),
    );
    await until(() => clock.listenerCount > 0, "the session runs");
    clock.advance(30_000);
    expect(await run).toMatchObject({
      code: "stream-timeout",
      message: "the server did not accept the streams: error, stdin",
    });
  });

  it("a server that names no version, or one that was not offered, is an upgrade failure", async () => {
    for (const protocol of ["", "channel.k8s.io", "v5.channel.k8s.io"]) {
      const { executing } = await executor({ protocol });
      await expect(executing.stream({})).rejects.toMatchObject({ leg: "handshake", isUpgradeFailure: true });
    }
  });

  it("malformed SPDY is a protocol error", async () => {
    const { executing } = await executor({
      onStream: endingAt(1, ({ socket }) => socket.write(Buffer.from("80030063000000040000", "hex"))),
    });
    expect((await failure(executing.stream({}))).code).toBe("protocol-error");
  });
});

describe("FallbackExecutor", () => {
  const both = (webSocket: Target, spdy: Target) =>
    new FallbackExecutor(new WebSocketExecutor(webSocket, exec), new SpdyExecutor(spdy, exec));

  it("TestFallbackClient_WebSocketPrimarySucceeds: SPDY is not tried", async () => {
    const server = await startWebSocketServer((socket) => endSession(socket));
    closing.push(server.close);
    const { target, kubelet } = await startKubelet({});
    expect(await both(server.target, target).stream({})).toMatchObject({ exitCode: 0 });
    expect(kubelet.requests).toEqual([]);
  });

  it.each([
    "HTTP/1.1 403 Forbidden\r\n\r\n",
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
  ])("TestFallbackClient_SPDYSecondarySucceeds, _SPDYSecondaryNonZeroExitCode: after %j, with the input unread", async (refusal) => {
    const { target } = await startKubelet({
      protocol: "v4.channel.k8s.io",
      refuse: (request) => (request.method === "GET" ? refusal : undefined),
      onData: (name, part, fin, session) => {
        if (name !== "stdin") return;
        session.streams.get("stdout")?.write(Buffer.from(part));
        if (fin) endExec(session, exitStatus(3));
      },
    });
    const stdout = new Collected();
    expect(await both(target, target).stream({ stdin: inputOf("hello"), stdout })).toMatchObject({
      exitCode: 3,
    });
    expect(stdout.text).toBe("hello");
  });

  it("TestFallbackClient_PrimaryAndSecondaryFail: the second's error is what is seen", async () => {
    const { target } = await startKubelet({
      refuse: ({ method }) => `HTTP/1.1 403 Forbidden\r\nContent-Length: ${method?.length}\r\n\r\n${method}`,
    });
    await expect(both(target, target).stream({})).rejects.toMatchObject({
      message: "unable to upgrade connection: POST",
    });
  });

  it("does not fall back where no HTTP answer came, nor after a 101", async () => {
    const { target, kubelet } = await startKubelet({});
    const nobody = new Target({ url: "http://127.0.0.1:1", proxy: "none" });
    await expect(both(nobody, target).stream({})).rejects.toMatchObject({ leg: "tcp" });
    const server = await startWebSocketServer((socket) => socket.terminate());
    closing.push(server.close);
    await expect(both(server.target, target).stream({})).rejects.toMatchObject({ code: "connection-lost" });
    expect(kubelet.requests).toEqual([]);
  });

  it("TestFallbackClient_WebSocketHTTPSProxyNoFallback: an HTTPS proxy needs none", async () => {
    const certificate = await issueCertificate({ commonName: "proxy" }, undefined, {
      addresses: ["127.0.0.1"],
    });
    const proxy = await startConnectProxy({ certificate });
    const server = await startWebSocketServer((socket) => endSession(socket));
    const { target, kubelet } = await startKubelet({});
    closing.push(proxy.close, server.close);
    const through = new Target({
      url: `http://127.0.0.1:${server.port}`,
      proxy: `https://127.0.0.1:${proxy.port}`,
      tls: { ca: certificate.cert },
    });
    expect(await both(through, target).stream({})).toMatchObject({ exitCode: 0 });
    expect(kubelet.requests).toEqual([]);
    expect(proxy.asked.length).toBe(1);
  });
});
