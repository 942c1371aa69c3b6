import type { ServerResponse } from "node:http";
import { afterEach, expect, it } from "vitest";
import { backend, INGRESS_CLASS, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { HeldBackend, WHOLE_BODY } from "../../support/held-backend.ts";
import { openClient, readToEnd, untilRefused } from "../../support/http/loopback.ts";
import { http1Requests, http2Requests } from "../../support/requests-in-flight.ts";
import { WorkerGateway } from "../../support/worker-gateway.ts";

const REQUESTS = 24;
let gateway: WorkerGateway | undefined;
let pods: HeldBackend | undefined;

afterEach(async () => {
  await gateway?.stop();
  pods?.close();
});

const portOf = (url: "httpUrl" | "apiServerUrl"): number => {
  const { ingress, apiServerUrl } = gateway?.ready() ?? {};
  return Number(new URL((url === "httpUrl" ? ingress?.httpUrl : apiServerUrl) ?? "").port);
};

async function start(): Promise<readonly ServerResponse[]> {
  pods = new HeldBackend();
  const objects = [
    INGRESS_CLASS,
    ...serviceObjects("app", [{ port: await pods.listen() }]),
    ingressObject("all", { defaultBackend: backend("app") }),
  ];
  gateway = await WorkerGateway.start({
    gracePeriod: "20s",
    files: { "door.json": JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) },
    more: {
      listeners: {
        apiServer: { port: 0 },
        admin: { port: 0 },
        ingress: { httpPort: 0, httpsPort: 0, allowedEndpointAddresses: ["127.0.0.0/8"] },
      },
      cluster: { manifests: ["cluster.json", "door.json"] },
    },
  });
  return pods.held;
}

it("SIGTERM to two workers: Ingress requests in flight are answered whole", async () => {
  const held = await start();
  const port = portOf("httpUrl");
  const http1 = http1Requests(port, REQUESTS);
  const http2 = await http2Requests(port, REQUESTS);
  await expect.poll(() => held.length).toBe(2 * REQUESTS);
  gateway?.signal("SIGTERM");
  await untilRefused(port);
  pods?.release();
  const outcomes = await Promise.all([...http1, ...http2.outcomes]);
  expect(outcomes).toEqual(Array(2 * REQUESTS).fill([200, WHOLE_BODY]));
  expect(await gateway?.exited).toEqual([0, null]);
});

it("SIGTERM to two workers: connections without a request are answered once", async () => {
  const held = await start();
  const names = ["httpUrl", "apiServerUrl"] as const;
  const clients = await Promise.all(names.map((name) => openClient(portOf(name))));
  const answers = clients.map(readToEnd);
  gateway?.signal("SIGTERM");
  for (const name of names) await untilRefused(portOf(name));
  for (const client of clients) client.write("GET /version HTTP/1.1\r\nHost: a\r\n\r\n");
  await expect.poll(() => held.length).toBe(1);
  pods?.release();
  const [forwarded, own] = await Promise.all(answers);
  expect(forwarded?.text.slice(0, 15)).toBe("HTTP/1.1 200 OK");
  expect(own?.text.slice(0, 15)).toBe("HTTP/1.1 200 OK");
  expect([forwarded?.isClean, own?.isClean]).toEqual([true, true]);
  expect(await gateway?.exited).toEqual([0, null]);
});
