import { createServer, type Server } from "node:http";
import net, { type AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { WebSocket } from "ws";
import { Target } from "../../../packages/client/src/index.ts";
import { Generator } from "../../../packages/lab/src/load/generator.ts";
import type { LoadPlan } from "../../../packages/lab/src/load/load-plan.ts";
import { LoadCollector, type LoadReport } from "../../../packages/lab/src/load/load-report.ts";
import { startWebSocketServer } from "../../support/client/websocket-server.ts";
import { loadPlan } from "../../support/load-plan.ts";

const STDIN = 0;
const STDOUT = 1;
const STATUS = 3;
const CLOSE = 255;
const SUCCESS = '{"metadata":{},"status":"Success"}';

const plan = loadPlan();

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

describe("a load of exec sessions", () => {
  it("has every byte verified and every message timed", async () => {
    const report = await loaded(await server(echo()), plan);
    expect(report.sessions).toEqual({ started: 4, finished: 4, failed: 0 });
    expect(report.bytes).toEqual({ sent: 80_000, received: 80_000 });
    expect(report.messages).toEqual({ sent: 80, received: 80 });
    expect(report.latencies.message.count).toBe(80);
    expect(report.latencies.firstByte.count).toBe(4);
    expect(report.errors).toEqual([]);
  });

  it("keeps to its rate, and counts a stalled server's delay in every message that was due meanwhile", async () => {
    const stallMs = 600;
    const waiting: (() => void)[] = [];
    let isOpen: boolean | undefined;
    const open = () => {
      isOpen = true;
      for (const send of waiting.splice(0)) send();
    };
    const target = await server(
      echo((send) => {
        if (isOpen) return send();
        waiting.push(send);
        if (isOpen === undefined) setTimeout(open, stallMs);
        isOpen = false;
      }),
    );
    const report = await loaded(target, {
      ...plan,
      sessions: 1,
      count: 1,
      messages: 100,
      messagesPerSecond: 100,
    });
    expect(report.messages).toEqual({ sent: 100, received: 100 });
    // A generator that waits for each answer would have one slow message; sixty were due during the stall.
    expect(report.latencies.message.p50Us).toBeGreaterThan(50_000);
    expect(report.latencies.message.p90Us).toBeGreaterThan(0.7 * stallMs * 1_000);
  });

  it("has no more messages under way than it may, and sends on as they come back", async () => {
    const waiting: Buffer[] = [];
    let most = 0;
    const target = await server((socket) => {
      socket.on("message", (message: Buffer) => {
        // The input's end is no message.
        if (message[0] === CLOSE) return void setTimeout(() => end(socket), 50);
        waiting.push(message.subarray(1));
        most = Math.max(most, waiting.length);
        if (waiting.length > 1) return;
        setTimeout(() => {
          for (const part of waiting.splice(0)) socket.send(Buffer.concat([Buffer.of(STDOUT), part]));
        }, 5);
      });
    });
    const bounded = { ...plan, sessions: 1, count: 1, messages: 12, messagesInFlight: 3 };
    const report = await loaded(target, bounded);
    expect(report.messages).toEqual({ sent: 12, received: 12 });
    expect(report.sessions.failed).toBe(0);
    expect(most).toBe(3);
  });

  it.each([
    ["changes a byte", "wrong-bytes", (part: Buffer) => Buffer.from(part.map((byte) => byte ^ 1))],
    ["loses a byte", "wrong-bytes", (part: Buffer) => part.subarray(1)],
    ["says everything twice", "wrong-bytes", (part: Buffer) => Buffer.concat([part, part])],
  ])("catches a server that %s", async (_, kind, lie) => {
    const report = await loaded(await server(echo(undefined, lie)), { ...plan, count: 1 });
    expect(report.sessions.failed).toBe(1);
    expect(report.errors[0]?.leg).toBe("verify");
    expect([kind, "too-many-bytes"]).toContain(report.errors[0]?.kind);
  });

  it("catches a server that loses the end and says success", async () => {
    const forgetful = (socket: WebSocket) => socket.once("message", () => end(socket));
    const report = await loaded(await server(forgetful), { ...plan, count: 1 });
    expect(report.errors).toEqual([
      expect.objectContaining({ leg: "verify", kind: "missing-bytes", count: 1 }),
    ]);
  });

  it("counts a command that fails, by its exit code", async () => {
    const status = {
      metadata: {},
      status: "Failure",
      reason: "NonZeroExitCode",
      details: { causes: [{ reason: "ExitCode", message: "3" }] },
    };
    const report = await loaded(await server((socket) => end(socket, JSON.stringify(status))), {
      ...plan,
      count: 1,
    });
    expect(report.errors).toEqual([expect.objectContaining({ leg: "session", kind: "exit code 3" })]);
  });

  it("counts refusals by leg and kind", async () => {
    const body = JSON.stringify({
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      message: "no",
      reason: "Forbidden",
      code: 403,
    });
    const refusing = await httpServer((_, response) =>
      response.writeHead(403, { "content-type": "application/json" }).end(body),
    );
    const report = await loaded(refusing, { ...plan, count: 2 });
    expect(report.errors).toEqual([
      expect.objectContaining({ leg: "http", kind: "403 Forbidden", count: 2 }),
    ]);
    expect(report.sessions).toEqual({ started: 2, finished: 0, failed: 2 });
  });

  it("counts a server that is not there", async () => {
    const { server: gone, port } = await listening(net.createServer());
    await new Promise((resolve) => gone.close(resolve));
    const report = await loaded(targetAt(port), { ...plan, count: 1 });
    expect(report.errors).toEqual([expect.objectContaining({ leg: "tcp", kind: "ECONNREFUSED" })]);
  });

  it("gives up a server that never answers the upgrade, and one that never echoes", async () => {
    const silent = await listening(net.createServer((socket) => socket.resume().on("error", () => {})));
    const times = { ...plan, count: 1, timeoutMs: 300 };
    const unanswered = await loaded(targetAt(silent.port), times);
    expect(unanswered.errors).toEqual([expect.objectContaining({ leg: "response" })]);
    const unechoed = await loaded(await server(() => {}), times);
    expect(unechoed.errors).toEqual([expect.objectContaining({ leg: "session", kind: "timeout" })]);
  });

  it("lets arrivals come by the clock, and counts those that find no place", async () => {
    // Sessions that never end: two places, twenty arrivals.
    const report = await loaded(await server(() => {}), {
      ...{ ...plan, arrivalsPerSecond: 100, count: 20, sessions: 2, timeoutMs: 600 },
    });
    expect(report.errors).toContainEqual(
      expect.objectContaining({ leg: "generator", kind: "too-many-sessions", count: 18 }),
    );
    expect(report.errors).toContainEqual(
      expect.objectContaining({ leg: "session", kind: "timeout", count: 2 }),
    );
  });

  it("ends early with what it has when it is stopped", async () => {
    const target = await server(echo());
    const endless = { ...plan, messages: 0, messagesPerSecond: 50, count: 0, sessions: 1 };
    const collector = new LoadCollector(endless, 1, Date.now());
    const generator = new Generator(
      endless,
      { index: 0, processes: 1, startAtMs: Date.now() },
      target,
      (interval) => {
        collector.add(interval);
        generator.stop();
      },
    );
    await generator.run();
    const report = collector.report(true);
    expect(report.sessions).toEqual({ started: 1, finished: 1, failed: 0 });
    expect(report.seconds).toBeLessThan(10);
    expect(report.messages.sent).toBe(report.messages.received);
  });
});

async function loaded(target: Target, options: LoadPlan): Promise<LoadReport> {
  const startAtMs = Date.now();
  const collector = new LoadCollector(options, 1, startAtMs);
  const emit = collector.add.bind(collector);
  await new Generator(options, { index: 0, processes: 1, startAtMs }, target, emit).run();
  return collector.report(false);
}

async function server(onSession: (socket: WebSocket) => void): Promise<Target> {
  const { target, close } = await startWebSocketServer(onSession);
  closers.push(close);
  return target;
}

/** What `cat` does, perhaps late, perhaps wrongly. */
function echo(
  when: (send: () => void) => void = (send) => send(),
  lie: (part: Buffer) => Buffer = (part) => part,
) {
  return (socket: WebSocket) => {
    socket.on("message", (message: Buffer) => {
      if (message[0] === STDIN) {
        when(() => socket.send(Buffer.concat([Buffer.of(STDOUT), lie(message.subarray(1))])));
      } else if (message[0] === CLOSE) when(() => end(socket));
    });
  };
}

function end(socket: WebSocket, status = SUCCESS): void {
  socket.send(Buffer.concat([Buffer.of(STATUS), Buffer.from(status)]));
  socket.close(1000);
}

const targetAt = (port: number) => new Target({ url: `http://127.0.0.1:${port}`, proxy: "none" });

async function httpServer(handler: Parameters<typeof createServer>[1] & object): Promise<Target> {
  const { port } = await listening(createServer(handler));
  return targetAt(port);
}

async function listening<S extends Server | net.Server>(server: S): Promise<{ server: S; port: number }> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closers.push(() => {
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port };
}
