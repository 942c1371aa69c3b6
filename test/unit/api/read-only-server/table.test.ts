import { describe, expect, it } from "vitest";
import type { KubernetesObject, Node, Pod, PodStatus } from "../../../../src/api/objects.ts";
import { printerOf } from "../../../../src/api/read-only-server/columns.ts";
import { ageOf } from "../../../../src/api/read-only-server/human-duration.ts";

const now = new Date("2026-01-02T00:00:00Z");
const pod = (status: PodStatus, more: { metadata?: object; spec?: object } = {}): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", creationTimestamp: "2026-01-01T00:00:00Z", ...more.metadata },
  spec: { containers: [{ name: "a" }, { name: "b" }], ...more.spec },
  status,
});
const running = { ready: true, state: { running: {} } };
const waiting = (reason?: string) => ({ state: { waiting: reason === undefined ? {} : { reason } } });
const terminated = (fields: object) => ({ state: { terminated: fields } });
const cells = (object: KubernetesObject) => printerOf(object.kind as "Pod").cells(object, now);

describe("a pod's row", () => {
  it.each<[what: string, pod: Pod, ready: string, status: string, restarts: string]>([
    [
      "running",
      pod({
        phase: "Running",
        containerStatuses: [
          { name: "a", ...running },
          { name: "b", ...running, restartCount: 2 },
        ],
      }),
      "2/2",
      "Running",
      "2",
    ],
    [
      "half ready",
      pod({
        phase: "Running",
        containerStatuses: [
          { name: "a", ...running },
          { name: "b", ...running, ready: false },
        ],
      }),
      "1/2",
      "Running",
      "0",
    ],
    [
      "waiting",
      pod({ phase: "Pending", containerStatuses: [{ name: "a", ...waiting("ImagePullBackOff") }] }),
      "0/2",
      "ImagePullBackOff",
      "0",
    ],
    [
      "the first container speaks",
      pod({
        phase: "Running",
        containerStatuses: [
          { name: "a", ...waiting("CrashLoopBackOff") },
          { name: "b", ...terminated({ reason: "Error" }) },
        ],
      }),
      "0/2",
      "CrashLoopBackOff",
      "0",
    ],
    [
      "exit code",
      pod({ phase: "Failed", containerStatuses: [{ name: "a", ...terminated({ exitCode: 3 }) }] }),
      "0/2",
      "ExitCode:3",
      "0",
    ],
    [
      "signal",
      pod({
        phase: "Failed",
        containerStatuses: [{ name: "a", ...terminated({ exitCode: 137, signal: 9 }) }],
      }),
      "0/2",
      "Signal:9",
      "0",
    ],
    [
      "completed beside a running one",
      pod({
        phase: "Running",
        containerStatuses: [
          { name: "a", ...terminated({ reason: "Completed" }) },
          { name: "b", ...running },
        ],
      }),
      "1/2",
      "NotReady",
      "0",
    ],
    [
      "completed, yet ready",
      pod({
        phase: "Running",
        conditions: [{ type: "Ready", status: "True" }],
        containerStatuses: [
          { name: "a", ...terminated({ reason: "Completed" }) },
          { name: "b", ...running },
        ],
      }),
      "1/2",
      "Running",
      "0",
    ],
    ["evicted", pod({ phase: "Failed", reason: "Evicted" }), "0/2", "Evicted", "0"],
    [
      "gated",
      pod({
        phase: "Pending",
        conditions: [{ type: "PodScheduled", status: "False", reason: "SchedulingGated" }],
      }),
      "0/2",
      "SchedulingGated",
      "0",
    ],
    [
      "initialising",
      pod(
        {
          phase: "Pending",
          initContainerStatuses: [
            { name: "i", ...terminated({ exitCode: 0 }) },
            { name: "j", ...waiting("PodInitializing"), restartCount: 1 },
          ],
        },
        { spec: { initContainers: [{ name: "i" }, { name: "j" }] } },
      ),
      "0/2",
      "Init:1/2",
      "1",
    ],
    [
      "init failed",
      pod({ phase: "Pending", initContainerStatuses: [{ name: "i", ...terminated({ exitCode: 2 }) }] }),
      "0/2",
      "Init:ExitCode:2",
      "0",
    ],
    [
      "init waiting",
      pod({ phase: "Pending", initContainerStatuses: [{ name: "i", ...waiting("ErrImagePull") }] }),
      "0/2",
      "Init:ErrImagePull",
      "0",
    ],
    [
      "deleted",
      pod({ phase: "Running" }, { metadata: { deletionTimestamp: "2026-01-02T00:00:00Z" } }),
      "0/2",
      "Terminating",
      "0",
    ],
    [
      "deleted when over",
      pod({ phase: "Succeeded" }, { metadata: { deletionTimestamp: "2026-01-02T00:00:00Z" } }),
      "0/2",
      "Succeeded",
      "0",
    ],
    [
      "node lost",
      pod(
        { phase: "Running", reason: "NodeLost" },
        { metadata: { deletionTimestamp: "2026-01-02T00:00:00Z" } },
      ),
      "0/2",
      "Unknown",
      "0",
    ],
    [
      "restarted lately",
      pod({
        phase: "Running",
        containerStatuses: [
          {
            name: "a",
            ...running,
            restartCount: 3,
            lastState: { terminated: { finishedAt: "2026-01-01T23:59:00Z" } },
          },
        ],
      }),
      "1/2",
      "Running",
      "3 (60s ago)",
    ],
  ])("%s", (_, object, ready, status, restarts) => {
    expect(cells(object).slice(1, 5)).toEqual([ready, status, restarts, "24h"]);
    expect(cells(object)).toHaveLength(printerOf("Pod").columns.length);
  });

  it("names what is only seen wide", () => {
    const object = pod(
      { podIP: "10.0.0.1", nominatedNodeName: "m", conditions: [{ type: "g", status: "True" }] },
      { spec: { nodeName: "n", readinessGates: [{ conditionType: "g" }, { conditionType: "h" }] } },
    );
    expect(cells(object).slice(5)).toEqual(["10.0.0.1", "n", "m", "1/2"]);
    expect(cells(pod({})).slice(5)).toEqual(["<none>", "<none>", "<none>", "<none>"]);
  });
});

describe("a node's row", () => {
  it.each<[more: Partial<Node>, status: string, roles: string]>([
    [{}, "Unknown", "<none>"],
    [{ status: { conditions: [{ type: "Ready", status: "False" }] } }, "NotReady", "<none>"],
    [
      { status: { conditions: [{ type: "Ready", status: "True" }] }, spec: { unschedulable: true } },
      "Ready,SchedulingDisabled",
      "<none>",
    ],
    [
      {
        metadata: {
          name: "n",
          labels: {
            "node-role.kubernetes.io/z": "",
            "node-role.kubernetes.io/a": "",
            "kubernetes.io/role": "b",
          },
        },
      },
      "Unknown",
      "a,b,z",
    ],
  ])("%j", (more, status, roles) => {
    const row = cells({ apiVersion: "v1", kind: "Node", metadata: { name: "n" }, ...more });
    expect(row.slice(1, 4)).toEqual([status, roles, "<unknown>"]);
    expect(row).toHaveLength(printerOf("Node").columns.length);
  });
});

describe("an age, as kubectl prints it", () => {
  const [minute, hour, day, year] = [60, 3_600, 86_400, 365 * 86_400];
  it.each([
    [-2, "<invalid>"],
    [-1, "0s"],
    [0, "0s"],
    [119.9, "119s"],
    [2 * minute, "2m"],
    [9 * minute + 59, "9m59s"],
    [10 * minute + 59, "10m"],
    [3 * hour - 1, "179m"],
    [3 * hour, "3h"],
    [7 * hour + 59 * minute, "7h59m"],
    [8 * hour + 59 * minute, "8h"],
    [2 * day - 1, "47h"],
    [2 * day + hour, "2d1h"],
    [8 * day + hour, "8d"],
    [2 * year - 1, "729d"],
    [2 * year + day, "2y1d"],
    [8 * year + day, "8y"],
  ])("%d s: %s", (seconds, text) => {
    const since = new Date(now.getTime() - seconds * 1_000);
    expect(ageOf(since.toISOString(), now)).toBe(text);
  });
});
