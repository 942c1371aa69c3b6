import { describe, expect, it } from "vitest";
import type { Pod } from "../../../src/api/objects.ts";
import type { ApiRequest } from "../../../src/kubernetes/api-client.ts";
import { EventRecorder } from "../../../src/kubernetes/event-recorder.ts";

const POD: Pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "default", uid: "uid-1" },
  spec: { nodeName: "ours", containers: [{ name: "main" }] },
};

function recorder() {
  const requests: ApiRequest[] = [];
  const failures: unknown[] = [];
  const state = { nowMs: Date.parse("2026-01-01T00:00:00Z"), isDown: false };
  const events = new EventRecorder({
    client: {
      json: async (request) => {
        if (state.isDown) throw new Error("away");
        requests.push(request);
        return { metadata: { name: `web.${requests.length}` } };
      },
    },
    onFailure: (error) => failures.push(error),
    nowMs: () => state.nowMs,
  });
  const record = (message: string, pod = POD) =>
    events.record(pod, "main", { type: "Warning", reason: "Unhealthy", message });
  return { requests, failures, state, record };
}

describe("Events about containers", () => {
  it("are core/v1 Events about the pod, with the container in the field path", async () => {
    const { requests, record } = recorder();
    await record("Readiness probe failed: HTTP probe failed with statuscode: 500");
    expect(requests).toEqual([
      {
        method: "POST",
        path: "/api/v1/namespaces/default/events",
        body: {
          contentType: "application/json",
          json: {
            apiVersion: "v1",
            kind: "Event",
            metadata: { generateName: "web.", namespace: "default" },
            involvedObject: {
              apiVersion: "v1",
              kind: "Pod",
              namespace: "default",
              name: "web",
              uid: "uid-1",
              fieldPath: "spec.containers{main}",
            },
            type: "Warning",
            reason: "Unhealthy",
            message: "Readiness probe failed: HTTP probe failed with statuscode: 500",
            source: { component: "sluice", host: "ours" },
            firstTimestamp: "2026-01-01T00:00:00Z",
            lastTimestamp: "2026-01-01T00:00:00Z",
            count: 1,
          },
        },
      },
    ]);
  });

  it("the same again counts up, also while the first is being written; something else is a new one", async () => {
    const { requests, record } = recorder();
    await Promise.all([record("a"), record("a")]);
    await record("b");
    expect(
      requests.map(({ method, path, body }) => [method, path, (body?.json as { count: number }).count]),
    ).toEqual([
      ["POST", "/api/v1/namespaces/default/events", 1],
      ["PATCH", "/api/v1/namespaces/default/events/web.1", 2],
      ["POST", "/api/v1/namespaces/default/events", 1],
    ]);
  });

  it("a pod is heard 25 times, then once in five minutes; others are not affected", async () => {
    const { requests, state, record } = recorder();
    for (let turn = 0; turn < 40; turn++) await record("again");
    expect(requests).toHaveLength(25);
    state.nowMs += 299_000;
    await record("again");
    expect(requests).toHaveLength(25);
    state.nowMs += 2_000;
    await record("again");
    expect(requests).toHaveLength(26);
    await record("again", { ...POD, metadata: { ...POD.metadata, uid: "uid-2" } });
    expect(requests).toHaveLength(27);
  });

  it("what can not be written is lost and told; the next one begins anew; long messages are cut", async () => {
    const { requests, failures, state, record } = recorder();
    state.isDown = true;
    await record("a");
    state.isDown = false;
    await record("a");
    await record("x".repeat(10_000));
    expect(failures).toHaveLength(1);
    expect(requests.map(({ method }) => method)).toEqual(["POST", "POST"]);
    expect((requests[1]?.body?.json as { message: string }).message).toHaveLength(1_024);
  });
});
