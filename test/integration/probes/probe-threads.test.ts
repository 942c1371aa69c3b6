import path from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { onFault } from "../../../packages/client/src/observability/faults.ts";
import type { ProbeHandler } from "../../../src/api/probe-objects.ts";
import { runProbe } from "../../../src/probes/run-probe.ts";
import { ProbeThreads, threadsFor } from "../../../src/probes/threads/probe-threads.ts";
import { eventually } from "../../support/eventually.ts";
import { MISBEHAVIOURS, type MisbehavingServer, startServer } from "../../support/misbehaving-servers.ts";

type ProbeThreadsOptions = ConstructorParameters<typeof ProbeThreads>[0];

/** Threads run what is compiled: Node does not read TypeScript everywhere. */
const program = pathToFileURL(path.resolve("dist/src/probes/threads/probe-thread.js"));
const TARGET = { host: "127.0.0.1", containerPorts: [{ name: "web", containerPort: 0 }] };
const OPTIONS = {
  timeoutMs: 5_000,
  userAgentVersion: "1.36",
  gates: { H2CContainerProbe: true, GRPCContainerProbeTLS: true },
};

const servers: MisbehavingServer[] = [];
const stops: (() => void)[] = [];
let nowMs = 0;

beforeEach(() => {
  nowMs = 0;
});
afterEach(async () => {
  for (const stop of stops.splice(0)) stop();
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(name: keyof typeof MISBEHAVIOURS): Promise<MisbehavingServer> {
  const server = await startServer(MISBEHAVIOURS[name]);
  servers.push(server);
  return server;
}

/** Threads that start as soon as a second has passed with any probe at all. */
function threads(options: Partial<ProbeThreadsOptions> = {}) {
  const problems: unknown[] = [];
  const probes = new ProbeThreads({
    maxThreads: 1,
    probesPerThread: 1,
    program,
    now: () => nowMs,
    onProblem: (error) => problems.push(error),
    ...options,
  });
  stops.push(() => probes.stop());
  return { probes, problems };
}

async function started(options: Partial<ProbeThreadsOptions> = {}) {
  const made = threads(options);
  nowMs += 1_000;
  const { port } = await serve("answers 204");
  await made.probes.run({ tcpSocket: { port } }, TARGET, OPTIONS);
  expect(made.probes.threadCount).toBe(options.maxThreads ?? 1);
  return made;
}

describe("threadsFor", () => {
  it.each([
    [0, 0],
    [1_999, 0],
    [2_000, 1],
    [9_999, 4],
    [1_000_000, 8],
  ])("%i probes a second: %i of 8", (rate, wanted) => {
    expect(threadsFor(rate, 8, 2_000)).toBe(wanted);
  });
});

describe("ProbeThreads", () => {
  it("says what runProbe says, of every kind", async () => {
    const { probes } = await started();
    const handlers: ProbeHandler[] = [];
    for (const name of ["answers 204", "answers 404", "answers garbage", "ends its body early"] as const) {
      const { port } = await serve(name);
      handlers.push(
        { httpGet: { port, path: "/p" } },
        { httpGet: { port, protocol: "HTTP2" } },
        { tcpSocket: { port } },
      );
    }
    const { port } = await serve("goes away with an error");
    handlers.push({ grpc: { port } }, { httpGet: { port: "nobody" } });
    for (const handler of handlers) {
      const here = await runProbe(handler, TARGET, OPTIONS);
      const expected = here.result === "Success" ? { ...here, wire: {} } : here;
      expect(await probes.run(handler, TARGET, OPTIONS)).toEqual(expected);
    }
  });

  it("runs exec probes here", async () => {
    const { probes } = await started();
    const runCommand = async () => ({ exitCode: 0, output: Buffer.from("here") });
    const result = await probes.run({ exec: { command: ["true"] } }, { ...TARGET, runCommand }, OPTIONS);
    expect(result).toMatchObject({ result: "Success", message: "here" });
  });

  it("starts none for few probes, and not more than it may for many", async () => {
    const { port } = await serve("answers 204");
    const few = threads({ probesPerThread: 10 });
    const none = threads({ maxThreads: 0 });
    for (let count = 0; count < 9; count++) {
      nowMs += 200;
      await few.probes.run({ tcpSocket: { port } }, TARGET, OPTIONS);
      await none.probes.run({ tcpSocket: { port } }, TARGET, OPTIONS);
    }
    expect([few.probes.threadCount, none.probes.threadCount]).toEqual([0, 0]);
  });

  it("a probe that nobody wants any more closes its connection", async () => {
    const { probes } = await started();
    const silent = await serve("silent");
    const stopping = new AbortController();
    const running = probes.run({ httpGet: { port: silent.port } }, TARGET, {
      ...OPTIONS,
      signal: stopping.signal,
    });
    await eventually("it is connected", () => silent.openConnections() === 1);
    stopping.abort();
    expect((await running).message).toMatch(/: context canceled$/);
    await eventually("it is closed", () => silent.openConnections() === 0);
  });

  it("a thread that is asked for hundreds at once runs them all, and none that was cancelled before its turn", async () => {
    const { probes } = await started();
    const { port } = await serve("answers 204");
    const stopping = new AbortController();
    const runs = Array.from({ length: 300 }, (_, index) =>
      probes.run(
        { httpGet: { port } },
        TARGET,
        index < 200 ? OPTIONS : { ...OPTIONS, signal: stopping.signal },
      ),
    );
    stopping.abort();
    const results = await Promise.all(runs);
    expect(results.slice(0, 200).every(({ result }) => result === "Success")).toBe(true);
    expect(results.slice(200).every(({ message }) => message.endsWith(": context canceled"))).toBe(true);
  });

  it("what a thread ran when it ended is an error, and goes on here", async () => {
    const { probes, problems } = threads({ program: new URL("data:text/javascript,process.exit(3)") });
    nowMs += 1_000;
    const { port } = await serve("answers 204");
    expect(await probes.run({ tcpSocket: { port } }, TARGET, OPTIONS)).toMatchObject({
      result: "Unknown",
      error: "the thread that probed has ended",
    });
    await eventually("it is told", () => problems.length === 1);
    expect(probes.threadCount).toBe(0);
    nowMs += 1_000;
    expect((await probes.run({ tcpSocket: { port } }, TARGET, OPTIONS)).result).toBe("Success");
    expect(probes.threadCount).toBe(0);
  });

  it("an exception in a thread is a fault of this process, and ends that probe alone", async () => {
    const faults: string[] = [];
    stops.push(onFault((where, error) => void faults.push(`${where}: ${(error as Error).stack}`)));
    const injected = `import { Socket } from "node:net";
      const { emit } = Socket.prototype;
      Socket.prototype.emit = function (event, ...values) {
        if (event !== "connect") return emit.call(this, event, ...values);
        Socket.prototype.emit = emit;
        throw new Error("injected into connect");
      };
      await import(${JSON.stringify(program.href)});`;
    const { probes, problems } = threads({
      program: new URL(`data:text/javascript,${encodeURIComponent(injected)}`),
    });
    nowMs += 1_000;
    const { port } = await serve("answers 204");
    const run = () => probes.run({ tcpSocket: { port } }, TARGET, OPTIONS);
    expect((await run()).result).toBe("Failure");
    expect((await run()).result).toBe("Success");
    expect([probes.threadCount, problems]).toEqual([1, []]);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(/^probe: Error: injected into connect\n +at /);
  });

  it("stop ends what runs", async () => {
    const { probes } = await started();
    const { port } = await serve("silent");
    const running = probes.run({ httpGet: { port } }, TARGET, OPTIONS);
    probes.stop();
    expect((await running).error).toBe("the thread that probed has ended");
  });
});
