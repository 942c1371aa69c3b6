import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { WorkerStart } from "../../../src/app/runtime/calls.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";
import { builtProgram } from "../../support/built-program.ts";
import { eventually } from "../../support/eventually.ts";
import { GatewayFiles } from "../../support/gateway-files.ts";

let server: TestApiServer;
let files: GatewayFiles;
let worker: ChildProcess;
afterEach(async () => {
  worker.kill("SIGKILL");
  files.remove();
  await server.stop();
});

/** A worker that watches a live cluster and waits for its primary, which listens for it. */
async function startWorker(): Promise<{ readonly exited: Promise<unknown[]> }> {
  server = await TestApiServer.start();
  files = new GatewayFiles({});
  const kubeconfig = await server.writeKubeconfig(files.write("kubeconfig", ""));
  const start: WorkerStart = {
    configurationText: JSON.stringify({
      apiVersion: "sluice.dev/v1alpha1",
      kind: "GatewayConfiguration",
      cluster: { kubeconfig },
      logging: { level: "silent" },
    }),
    configurationFile: files.configurationFile,
    flags: {},
    ticketKeys: "",
    replicaId: "00000000",
    isFirst: true,
    workers: 2,
    adminSocket: path.join(files.folder, "admin.sock"),
  };
  worker = fork(path.join(path.dirname(builtProgram()), "worker-main.cjs"), {
    serialization: "advanced",
  });
  const asked: { name: string }[] = [];
  worker.on("message", (message: { name: string }) => asked.push(message));
  worker.send({ type: "call", name: "start", body: start, id: 1 });
  await eventually("it watches and waits", () => server.connections > 0 && asked[0]?.name === "listen");
  return { exited: once(worker, "exit") };
}

describe("a worker that has not started yet", () => {
  it("ends when its primary dies", async () => {
    const { exited } = await startWorker();
    worker.disconnect();
    expect(await exited).toEqual([null, "SIGKILL"]);
    await expect.poll(() => server.connections).toBe(0);
  });

  it("ends when it is told to", async () => {
    const { exited } = await startWorker();
    worker.kill("SIGTERM");
    expect(await exited).toEqual([null, "SIGKILL"]);
  });
});
