import { appendFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import path from "node:path";
import { status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { collect } from "../../../support/kubectl.ts";
import { ADMIN_TOKEN, container, RuntimeNode, sandbox } from "../../../support/runtime-node.ts";
import { GrpcFailure, type RuntimeScript } from "../../../support/scripted-runtime.ts";

let node: RuntimeNode;
afterEach(() => node?.stop());
const start = async (script: RuntimeScript = {}) => {
  node = await RuntimeNode.start({ script });
  return node;
};

const line = (content: string) => `2026-01-02T03:04:05.1Z stdout F ${content}\n`;

describe("/containerLogs", () => {
  let file: string;
  let state: number;
  beforeEach(async () => {
    state = 1;
    await start({
      ContainerStatus: () => ({ status: { id: "c1", state, logPath: file } }),
    });
    file = path.join(node.folder, "0.log");
    writeFileSync(file, line("one") + line("two"));
  });

  it.each([
    ["all", "", "one\ntwo\n"],
    ["the last line", "?tailLines=1", "two\n"],
    ["by the kubelet's old name", "?tail=1", "two\n"],
    ["all by that name", "?tail=all", "one\ntwo\n"],
    ["timestamps", "?timestamps=true&tailLines=1", "2026-01-02T03:04:05.100000000Z two\n"],
    ["a limit", "?limitBytes=5", "one\nt"],
    ["since", "?sinceTime=2026-01-02T03:04:06Z", ""],
    ["since seconds", "?sinceSeconds=60", ""],
    ["nothing of the other stream", "?stream=Stderr", ""],
  ])("%s", async (_name, query, text) => {
    const answer = await node.ask(`/containerLogs/default/web/main${query}`);
    expect(answer).toMatchObject({ status: 200, body: text });
  });

  it.each([
    ["a number that is none", "?tailLines=x", 400, '{"message": "Unable to decode query."}'],
    ["a time that is none", "?sinceTime=yesterday", 400, '{"message": "Unable to decode query."}'],
    ["a negative tail", "?tailLines=-1", 422, '{"message": "Invalid request."}'],
    ["no bytes at all", "?limitBytes=0", 422, '{"message": "Invalid request."}'],
    ["two times", "?sinceSeconds=1&sinceTime=2026-01-02T03:04:06Z", 422, '{"message": "Invalid request."}'],
    ["an unknown stream", "?stream=Both", 422, '{"message": "Invalid request."}'],
    ["the end of one stream", "?stream=Stdout&tailLines=1", 422, '{"message": "Invalid request."}'],
    [
      "an attempt that was not",
      "?previous=true",
      400,
      'previous terminated container "main" in pod "web" not found',
    ],
  ])("refuses %s", async (_name, query, code, text) => {
    expect(await node.ask(`/containerLogs/default/web/main${query}`)).toMatchObject({
      status: code,
      body: text,
    });
  });

  it("an unknown container, and an unknown pod", async () => {
    expect(await node.ask("/containerLogs/default/web/other")).toMatchObject({
      status: 404,
      body: 'container "other" not found in pod "web"\n',
    });
    node.runtime.script = { ...node.runtime.script, ListPodSandbox: () => ({}) };
    expect(await node.ask("/containerLogs/default/web/main")).toMatchObject({
      status: 404,
      body: 'pod "web" not found\n',
    });
  });

  it("a container that has not started", async () => {
    node.runtime.script = {
      ...node.runtime.script,
      ListContainers: () => ({ containers: [container("c1", { state: 0 })] }),
    };
    expect(await node.ask("/containerLogs/default/web/main")).toMatchObject({
      status: 400,
      body: 'container "main" in pod "web" is waiting to start: ContainerCreating',
    });
  });

  it("a file that is not there: no path is told", async () => {
    file = path.join(node.folder, "nowhere.log");
    expect(await node.ask("/containerLogs/default/web/main")).toMatchObject({
      status: 400,
      body: "unable to retrieve container logs for containerd://c1",
    });
  });

  it("the attempt before this one", async () => {
    const earlier = [0, 1].map((attempt) =>
      container(`c${attempt}`, { state: 2, metadata: { name: "main", attempt } }),
    );
    const present = container("c2", { metadata: { name: "main", attempt: 2 } });
    node.runtime.script = {
      ...node.runtime.script,
      ListContainers: () => ({ containers: [...earlier, present] }),
    };
    expect((await node.ask("/containerLogs/default/web/main?previous=1")).status).toBe(200);
    expect(node.runtime.callsOf("ContainerStatus")).toEqual([{ containerId: "c1", verbose: false }]);
  });

  it("in a crash loop, the attempt that exited last", async () => {
    const attempts = [1, 2].map((attempt) =>
      container(`c${attempt}`, { state: 2, metadata: { name: "main", attempt } }),
    );
    node.runtime.script = { ...node.runtime.script, ListContainers: () => ({ containers: attempts }) };
    expect((await node.ask("/containerLogs/default/web/main?previous=1")).status).toBe(200);
    expect(node.runtime.callsOf("ContainerStatus")).toEqual([{ containerId: "c2", verbose: false }]);
  });

  it("followed: each line as it is written, over the runtime's restart, until the container stops", async () => {
    const sent = request(`http://${node.authority}/containerLogs/default/web/main?follow=true`, {
      headers: { Authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    sent.end();
    let text = () => "";
    let isOver = false;
    sent.on("response", (response) => {
      text = collect(response);
      response.on("end", () => {
        isOver = true;
      });
    });
    await eventually("what was there", () => text() === "one\ntwo\n");
    node.runtime.stop();
    appendFileSync(file, line("three"));
    await eventually("what came meanwhile", () => text().endsWith("three\n"));
    await node.runtime.start();
    appendFileSync(file, line("four"));
    await eventually("what came behind it", () => text().endsWith("four\n"));
    expect(isOver).toBe(false);
    state = 2;
    await eventually("the end", () => isOver);
  });
});

describe("/run", () => {
  it("splits at single blanks, and gives output behind output", async () => {
    await start({
      ExecSync: () => ({ stdout: Buffer.from("out\n"), stderr: Buffer.from("err\n"), exitCode: 0 }),
    });
    const answer = await node.ask("/run/default/web/main?cmd=echo%20a%20%20b", { method: "POST" });
    expect(answer).toMatchObject({ status: 200, body: "out\nerr\n" });
    expect(node.runtime.callsOf("ExecSync")).toEqual([
      { containerId: "c1", cmd: ["echo", "a", "", "b"], timeout: 0 },
    ]);
  });

  it("tells a failure with its output", async () => {
    await start({ ExecSync: () => ({ stdout: Buffer.from("half"), stderr: Buffer.alloc(0), exitCode: 7 }) });
    const answer = await node.ask("/run/default/web/web-uid/main?cmd=false", { method: "POST" });
    expect(answer).toMatchObject({ status: 500, body: "command 'false' exited with 7: half" });
  });

  it("is no GET", async () => {
    await start();
    expect((await node.ask("/run/default/web/main?cmd=id")).status).toBe(405);
  });
});

describe("/pods", () => {
  it("lists each pod once, with what runs in it now", async () => {
    await start({
      ListPodSandbox: () => ({
        items: [
          sandbox("s1"),
          sandbox("s0", { state: 1 }),
          { id: "crictl", metadata: { name: "no-pod" } },
          sandbox("s2", {
            state: 1,
            metadata: { name: "dead", uid: "dead-uid", namespace: "default" },
            labels: {
              "io.kubernetes.pod.name": "dead",
              "io.kubernetes.pod.namespace": "default",
              "io.kubernetes.pod.uid": "dead-uid",
            },
          }),
        ],
      }),
      ListContainers: () => ({
        containers: [
          container("c0", { state: 2 }),
          container("c1", { metadata: { name: "main", attempt: 1 } }),
        ],
      }),
    });
    const answer = await node.ask("/pods");
    expect(answer.headers["content-type"]).toBe("application/json");
    const { kind, items } = JSON.parse(answer.body);
    expect(kind).toBe("PodList");
    expect(items).toHaveLength(2);
    expect(items[0]).toMatchObject({
      metadata: { name: "dead" },
      status: { phase: "Unknown", containerStatuses: [] },
    });
    expect(items[1]).toMatchObject({
      metadata: { name: "web", namespace: "default", uid: "web-uid", labels: { app: "web" } },
      spec: { nodeName: "node-1", containers: [{ name: "main", image: "localhost/busybox:test" }] },
      status: {
        phase: "Running",
        containerStatuses: [
          {
            name: "main",
            ready: true,
            restartCount: 1,
            containerID: "containerd://c1",
            state: { running: { startedAt: "2026-01-02T03:04:06Z" } },
          },
        ],
      },
    });
  });

  it("of nothing", async () => {
    await start({ ListPodSandbox: () => ({}), ListContainers: () => ({}) });
    expect(JSON.parse((await node.ask("/pods")).body).items).toEqual([]);
  });
});

describe("/stats/summary", () => {
  it("counts the node and its containers; what nobody counts is absent", async () => {
    await start({
      ListContainerStats: () => ({
        stats: [
          {
            attributes: { id: "c1" },
            cpu: { timestamp: 1_767_323_047e9, usageCoreNanoSeconds: { value: 5e9 } },
            memory: { timestamp: 1_767_323_047e9, workingSetBytes: { value: 4096 } },
          },
        ],
      }),
    });
    const summary = JSON.parse((await node.ask("/stats/summary")).body);
    expect(summary.node.nodeName).toBe("node-1");
    for (const value of [
      summary.node.cpu.usageCoreNanoSeconds,
      summary.node.memory.workingSetBytes,
      summary.node.fs.capacityBytes,
    ]) {
      expect(value).toBeGreaterThan(0);
    }
    expect(summary.pods).toEqual([
      {
        podRef: { name: "web", namespace: "default", uid: "web-uid" },
        startTime: "2026-01-02T03:04:05Z",
        containers: [
          {
            name: "main",
            startTime: "2026-01-02T03:04:06Z",
            cpu: { time: "2026-01-02T03:04:07Z", usageCoreNanoSeconds: 5e9 },
            memory: { time: "2026-01-02T03:04:07Z", workingSetBytes: 4096 },
          },
        ],
      },
    ]);
  });

  it("of a runtime that counts nothing is a refusal", async () => {
    await start({
      ListContainerStats: () => {
        throw new GrpcFailure(status.UNIMPLEMENTED, "not here");
      },
    });
    expect(await node.ask("/stats/summary")).toMatchObject({
      status: 500,
      body: "rpc error: code = Unimplemented desc = not here",
    });
  });
});
