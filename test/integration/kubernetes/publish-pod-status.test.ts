import { afterEach, describe, expect, it } from "vitest";
import type { Pod } from "../../../src/api/objects.ts";
import type { ApiRequest } from "../../../src/kubernetes/api-client.ts";
import { publishPodStatus } from "../../../src/kubernetes/publish-pod-status.ts";
import { TestApiServer } from "../../support/api-server/test-api-server.ts";

let server: TestApiServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

const PODS = "/api/v1/namespaces/default/pods";

/** What ApiClient does, without its credentials. */
const client = {
  json: async ({ method = "GET", path, body }: ApiRequest): Promise<unknown> => {
    const response = await fetch(`${server?.url}${path}`, {
      method,
      ...(body && { headers: { "Content-Type": body.contentType }, body: JSON.stringify(body.json) }),
    });
    if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
    return response.json();
  },
};

async function createdPod(): Promise<Pod> {
  server = await TestApiServer.start();
  const json = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", namespace: "default" },
    spec: { containers: [{ name: "main", image: "web:1" }] },
  };
  const created = (await client.json({
    method: "POST",
    path: PODS,
    body: { contentType: "application/json", json },
  })) as Pod;
  const status = {
    phase: "Running",
    conditions: [
      { type: "PodScheduled", status: "True" },
      { type: "Ready", status: "True" },
    ],
    containerStatuses: [
      {
        name: "main",
        image: "web:1",
        imageID: "sha256:1",
        ready: true,
        restartCount: 4,
        state: { running: {} },
      },
    ],
  };
  const contentType = "application/strategic-merge-patch+json";
  await client.json({ method: "PATCH", path: `${PODS}/web/status`, body: { contentType, json: { status } } });
  return created;
}

const read = async () => (await client.json({ path: `${PODS}/web` })) as Pod;
const verdict = {
  phase: "Running",
  conditions: [
    { type: "Ready", status: "False", reason: "ContainersNotReady" },
    { type: "ContainersReady", status: "False", reason: "ContainersNotReady" },
  ],
  containerStatuses: [{ name: "main", started: true, ready: false, restartCount: 4 }],
};

describe("publishing a pod's readiness to a live cluster", () => {
  it("writes conditions and verdicts, and leaves what others wrote", async () => {
    const pod = await createdPod();
    await publishPodStatus(client, pod, verdict);
    const { status } = await read();
    expect(status?.conditions?.map(({ type, status }) => `${type}=${status}`).sort()).toEqual([
      "ContainersReady=False",
      "PodScheduled=True",
      "Ready=False",
    ]);
    expect(status?.containerStatuses).toEqual([
      {
        name: "main",
        image: "web:1",
        imageID: "sha256:1",
        ready: false,
        started: true,
        restartCount: 4,
        state: { running: {} },
      },
    ]);
  });

  it("leaves a pod of that name alone that is another one", async () => {
    const pod = await createdPod();
    await publishPodStatus(client, { ...pod, metadata: { ...pod.metadata, uid: "earlier" } }, verdict);
    expect((await read()).status?.conditions).toHaveLength(2);
  });

  it("rejects when the API server does", async () => {
    const pod = await createdPod();
    const gone = { ...pod, metadata: { ...pod.metadata, name: "gone" } };
    await expect(publishPodStatus(client, gone, verdict)).rejects.toThrow("404");
  });
});
