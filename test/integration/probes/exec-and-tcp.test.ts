import { describe, expect, it } from "vitest";
import { CommandTimeoutError, probeExec, type RunCommand } from "../../../src/probes/exec-probe.ts";
import { expandCommand } from "../../../src/probes/probe-target.ts";
import { closedPort, MISBEHAVIOURS, startServer } from "../../support/misbehaving-servers.ts";
import { probe } from "./probe.ts";

const ending = (exitCode: number, output = ""): RunCommand => {
  return async () => ({ exitCode, output: Buffer.from(output) });
};
const breaking = (error: Error): RunCommand => {
  return () => Promise.reject(error);
};

describe("TestExec", () => {
  const options = { timeoutMs: 1_000 };

  it.each([
    [0, "Success"],
    [1, "Failure"],
    [127, "Failure"],
  ])("exit code %i is a %s", async (exitCode, result) => {
    expect(await probeExec(["x"], ending(exitCode, "out"), options)).toMatchObject({
      result,
      message: "out",
    });
  });

  it("output is cut at 10 KiB", async () => {
    const { message } = await probeExec(["x"], ending(0, "x".repeat(20_000)), options);
    expect(message).toHaveLength(10_240);
  });

  it("a time-out is a failure that names it, or, with ExecProbeTimeout off, says nothing about the container", async () => {
    const late = breaking(new CommandTimeoutError(["sleep", "60"]));
    expect(await probeExec(["sleep", "60"], late, options)).toMatchObject({
      result: "Failure",
      message: 'command "sleep 60" timed out',
    });
    const ignored = await probeExec(["sleep", "60"], late, { ...options, failsOnTimeout: false });
    expect(ignored).toMatchObject({ result: "Unknown", error: 'command "sleep 60" timed out' });
  });

  it("what the runtime can not do is an error", async () => {
    expect(await probeExec(["x"], breaking(new Error("no such container")), options)).toMatchObject({
      result: "Unknown",
      error: "no such container",
    });
  });
});

describe("exec handlers", () => {
  it("run in the target, with the time-out and the command expanded", async () => {
    let ran: unknown;
    const runCommand: RunCommand = async (command, { timeoutMs }) => {
      ran = { command, timeoutMs };
      return { exitCode: 0, output: Buffer.alloc(0) };
    };
    const environment = [{ name: "FILE", value: "/tmp/ready" }];
    const handler = { exec: { command: ["cat", "$(FILE)"] } };
    expect((await probe(handler, { timeoutMs: 700, target: { runCommand, environment } })).result).toBe(
      "Success",
    );
    expect(ran).toEqual({ command: ["cat", "/tmp/ready"], timeoutMs: 700 });
  });

  it("without a way to run commands it is an error", async () => {
    expect((await probe({ exec: { command: ["true"] } })).error).toBeDefined();
  });

  it("$(NAME) comes from literal values only", () => {
    const environment = [{ name: "A", value: "1" }, { name: "B", valueFrom: {} }, { name: "EMPTY" }];
    expect(expandCommand(["$(A)x$(A)", "$$(A)", "$(NONE)", "$(EMPTY)", "$A", "$(A"], environment)).toEqual([
      "1x1",
      "$(A)",
      "$(NONE)",
      "",
      "$A",
      "$(A",
    ]);
  });
});

describe("TestTcpHealthChecker", () => {
  it("an open port is a success with nothing to say", async () => {
    const server = await startServer(MISBEHAVIOURS.silent);
    expect(await probe({ tcpSocket: { port: server.port } })).toMatchObject({
      result: "Success",
      message: "",
    });
    await server.close();
  });

  it("a closed port is a failure", async () => {
    const port = await closedPort();
    expect(await probe({ tcpSocket: { port } })).toMatchObject({ result: "Failure" });
  });

  it("TestGetTCPAddrParts: ports by name, by number in a string, and a host of one's own", async () => {
    const server = await startServer(MISBEHAVIOURS.silent);
    const containerPorts = [{ name: "web", containerPort: server.port }];
    const target = { containerPorts };
    expect((await probe({ tcpSocket: { port: "web" } }, { target })).result).toBe("Success");
    expect((await probe({ tcpSocket: { port: String(server.port) } })).result).toBe("Success");
    const elsewhere = { containerPorts, host: "nosuch.invalid" };
    const handler = { tcpSocket: { port: "web", host: "127.0.0.1" } };
    expect((await probe(handler, { target: elsewhere })).result).toBe("Success");
    await server.close();
  });
});
