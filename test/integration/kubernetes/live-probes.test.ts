import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { Pod } from "../../../src/api/objects.ts";
import { parseConfiguration } from "../../../src/config/configuration.ts";
import { publishPodStatus } from "../../../src/kubernetes/publish-pod-status.ts";
import { buildProbes } from "../../../src/probes/component.ts";
import { eventually } from "../../support/eventually.ts";
import { defaultLocateOptions } from "../../support/locate-options.ts";
import { probedSpec, UNREADY_STATUS } from "../../support/probed-pod.ts";
import { startLive } from "./live.ts";

it("a live pod's conditions follow its probe", async () => {
  let status = 200;
  const probed = createServer((_, response) => response.writeHead(status).end());
  await new Promise<void>((resolve) => probed.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void probed.close());
  const { port } = probed.address() as AddressInfo;
  const { client, store, metrics, hasPods } = await startLive({ kinds: ["Pod"] });
  const send = (method: string, path: string, contentType: string, json: object) =>
    client.json({ method, path: `/api/v1/namespaces/default/pods${path}`, body: { contentType, json } });
  await send("POST", "", "application/json", {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web" },
    spec: probedSpec(port),
  });
  await send("PATCH", "/web/status", "application/strategic-merge-patch+json", {
    status: UNREADY_STATUS,
  });
  await hasPods("web");
  const logged: unknown[] = [];
  const log = (...line: unknown[]) => logged.push(line);
  const probes = await buildProbes(
    parseConfiguration(
      "apiVersion: sluice.dev/v1alpha1\nkind: GatewayConfiguration\npodProbes: { nodeNames: [ours] }\n",
      "gateway.yaml",
    ),
    {
      store,
      publishStatus: (pod, next) => publishPodStatus(client, pod, next),
      nodes: { reportProbe: () => {} },
      kubelet: {
        ...defaultLocateOptions,
        endpointOf: async ({ host, port: kubelet }) => ({ host, port: kubelet }),
      },
      metrics,
      logger: { debug: log, info: log, warn: log, error: log } as never,
    },
  );
  onTestFinished(() => probes.stop());
  const live = async () => (await client.json({ path: "/api/v1/namespaces/default/pods/web" })) as Pod;
  const isReady = async (wanted: string) => {
    const pod = await live();
    const container = pod.status?.containerStatuses?.[0];
    const condition = pod.status?.conditions?.find(({ type }) => type === "Ready");
    return condition?.status === wanted && String(container?.ready) === wanted.toLowerCase();
  };
  await eventually("ready", () => isReady("True"));
  // It was not at first, for a reason.
  for (const { type, status: is, reason, message } of (await live()).status?.conditions ?? []) {
    expect({ type, is, reason, message }).toEqual({ type, is: "True" });
  }
  status = 500;
  await eventually("not ready", () => isReady("False"));
  expect((await live()).status?.containerStatuses?.[0]).toMatchObject({
    image: "web:1",
    imageID: "sha256:1",
    started: true,
  });
  status = 200;
  await eventually("ready again", () => isReady("True"));
});
