import { status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { CriRuntime } from "../../../src/cri/cri-runtime.ts";
import { RuntimeError } from "../../../src/cri/runtime-error.ts";
import { eventually } from "../../support/eventually.ts";
import { GrpcFailure, type RuntimeScript, ScriptedRuntime } from "../../support/scripted-runtime.ts";

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

async function openRuntime(script: RuntimeScript = {}, { isUp = true, maxMessageBytes = 1 << 20 } = {}) {
  const scripted = new ScriptedRuntime(script);
  if (isUp) await scripted.start();
  const runtime = await CriRuntime.open({ endpoint: scripted.endpoint, callTimeoutMs: 400, maxMessageBytes });
  cleanUps.push(() => {
    runtime.close();
    scripted.remove();
  });
  return { scripted, runtime };
}

const failureOf = (promise: Promise<unknown>): Promise<RuntimeError> =>
  promise.then(
    () => Promise.reject(new Error("it did not fail")),
    (error: unknown) => {
      expect(error).toBeInstanceOf(RuntimeError);
      return error as RuntimeError;
    },
  );

const STREAMS = { stdin: true, stdout: true, stderr: false, tty: true };

describe("CriRuntime", () => {
  it("asks for streaming URLs with every option in its own field", async () => {
    const { scripted, runtime } = await openRuntime({
      Exec: () => ({ url: "http://127.0.0.1:1/exec/a" }),
      Attach: () => ({ url: "http://127.0.0.1:1/attach/b" }),
      PortForward: () => ({ url: "http://127.0.0.1:1/portforward/c" }),
    });
    expect(await runtime.execUrl("c1", ["sh", "-c", ""], STREAMS)).toBe("http://127.0.0.1:1/exec/a");
    expect(await runtime.attachUrl("c2", STREAMS)).toBe("http://127.0.0.1:1/attach/b");
    expect(await runtime.portForwardUrl("s1", [80, 65_535])).toBe("http://127.0.0.1:1/portforward/c");
    expect(scripted.callsOf("Exec")).toEqual([{ containerId: "c1", cmd: ["sh", "-c", ""], ...STREAMS }]);
    expect(scripted.callsOf("Attach")).toEqual([{ containerId: "c2", ...STREAMS }]);
    expect(scripted.callsOf("PortForward")).toEqual([{ podSandboxId: "s1", port: [80, 65_535] }]);
  });

  it("reads what is left out as empty", async () => {
    const { runtime } = await openRuntime({
      ListPodSandbox: () => ({ items: [{ id: "s1" }] }),
      ListContainers: () => ({}),
    });
    expect(await runtime.listPodSandboxes()).toEqual([
      expect.objectContaining({ id: "s1", labels: {}, annotations: {}, state: 0 }),
    ]);
    expect(await runtime.listContainers()).toEqual([]);
  });

  it("lets a command have its own time, and stops waiting a little later", async () => {
    const { scripted, runtime } = await openRuntime({
      ExecSync: () => new Promise((resolve) => setTimeout(() => resolve({ exitCode: 3 }), 600)),
    });
    expect(await runtime.execSync("c1", ["true"], 1)).toMatchObject({ exitCode: 3 });
    expect(scripted.callsOf("ExecSync")).toEqual([{ containerId: "c1", cmd: ["true"], timeout: 1 }]);
  });

  it.each([
    ["NotFound", status.NOT_FOUND],
    ["ResourceExhausted", status.RESOURCE_EXHAUSTED],
    ["Unimplemented", status.UNIMPLEMENTED],
  ] as const)("words a refusal as the kubelet does: %s", async (code, grpcStatus) => {
    const { runtime } = await openRuntime({
      Version: () => {
        throw new GrpcFailure(grpcStatus, "of the runtime");
      },
    });
    const failure = await failureOf(runtime.version());
    expect(failure.code).toBe(code);
    expect(failure.message).toBe(`rpc error: code = ${code} desc = of the runtime`);
  });

  it("gives up a call that is not answered in time", async () => {
    const { runtime } = await openRuntime({ Version: () => new Promise(() => {}) });
    expect((await failureOf(runtime.version())).code).toBe("DeadlineExceeded");
  });

  it("refuses an answer past its bound", async () => {
    const { runtime } = await openRuntime(
      { ListContainers: () => ({ containers: [{ id: "x".repeat(70_000) }] }) },
      { maxMessageBytes: 65_536 },
    );
    const failure = await failureOf(runtime.listContainers());
    expect(failure.message).toMatch(
      /^rpc error: code = ResourceExhausted desc = Received message larger than max/,
    );
  });

  it("names the socket where nobody listens, at once, and finds a runtime that starts later", async () => {
    const { scripted, runtime } = await openRuntime(
      { Version: () => ({ runtimeName: "late" }) },
      { isUp: false },
    );
    const failure = await failureOf(runtime.version());
    expect(failure.code).toBe("Unavailable");
    expect(failure.message).toContain(`the container runtime at ${scripted.endpoint} cannot be reached`);
    await scripted.start();
    const version = await eventually("it is found", () => runtime.version().catch(() => undefined));
    expect(version).toMatchObject({ runtimeName: "late" });
  });

  it("fails what is under way when the runtime goes, and finds it again after a restart", async () => {
    const { scripted, runtime } = await openRuntime({ Version: () => new Promise(() => {}) });
    const underWay = failureOf(runtime.version());
    await eventually("the call is there", () => scripted.callsOf("Version").length === 1);
    scripted.stop();
    expect(["Unavailable", "Canceled", "Internal"]).toContain((await underWay).code);
    scripted.script = { Version: () => ({ runtimeName: "again" }) };
    await scripted.start();
    await eventually("it is found again", () => runtime.version().catch(() => undefined));
  });

  it("fails calls after it was closed", async () => {
    const { runtime } = await openRuntime({ Version: () => ({}) });
    runtime.close();
    await failureOf(runtime.version());
  });

  it("takes no empty URL for a stream", async () => {
    const { runtime } = await openRuntime({ Exec: () => ({}) });
    expect((await failureOf(runtime.execUrl("c1", ["id"], STREAMS))).message).toContain(
      "without a streaming URL",
    );
  });
});
