import { afterEach, expect, it } from "vitest";
import { backend, INGRESS_CLASS, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { HeldBackend, WHOLE_BODY } from "../../support/held-backend.ts";
import { http1Requests, http2Requests } from "../../support/requests-in-flight.ts";
import { WorkerGateway } from "../../support/worker-gateway.ts";

const REQUESTS = 24;
let gateway: WorkerGateway | undefined;
let pods: HeldBackend | undefined;

afterEach(async () => {
  await gateway?.stop();
  pods?.close();
});

it("SIGTERM to two workers: Ingress requests in flight are answered whole", async () => {
  pods = new HeldBackend();
  const held = pods.held;
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
  const { port } = gateway.listener("ingress.http");
  const http1 = http1Requests(port, REQUESTS);
  const http2 = await http2Requests(port, REQUESTS);
  await expect.poll(() => held.length, { timeout: 10_000 }).toBe(2 * REQUESTS);
  gateway.signal("SIGTERM");
  await expect
    .poll(() => fetch(`http://127.0.0.1:${port}`).catch(() => "refused"), { timeout: 10_000 })
    .toBe("refused");
  pods.release();
  const outcomes = await Promise.all([...http1, ...http2.outcomes]);
  expect(outcomes).toEqual(Array(2 * REQUESTS).fill([200, WHOLE_BODY]));
  expect(await gateway.exited).toEqual([0, null]);
});
