import { expect, it } from "vitest";
import type { Ingress, IngressClass } from "../../../src/api/networking-objects.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { backendOf } from "../../../src/ingress/route.ts";
import { RouteController } from "../../../src/ingress/route-controller.ts";

const CONTROLLER = "sluice.dev/ingress-controller";
const CLASSES = { controllerName: CONTROLLER, legacyClassName: undefined, servesWithoutClass: false };
/** Several slices take so many. */
const COUNT = 4_000;

const ingressClass: IngressClass = {
  apiVersion: "networking.k8s.io/v1",
  kind: "IngressClass",
  metadata: { name: "sluice" },
  spec: { controller: CONTROLLER },
};

function ingress(index: number, service: string): Ingress {
  const paths = [
    { path: "/", pathType: "Prefix", backend: { service: { name: service, port: { number: 80 } } } },
  ];
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: `ingress-${index}`, namespace: "default" },
    spec: { ingressClassName: "sluice", rules: [{ host: `host-${index}.example`, http: { paths } }] },
  };
}

const ingresses = (service: string): Ingress[] =>
  Array.from({ length: COUNT }, (_, index) => ingress(index, service));

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function startRoutes() {
  const store = new ClusterStore();
  const change = (service: string): void =>
    store.replaceAll([ingressClass, ...ingresses(service)], new Date());
  change("v1");
  const activated: number[] = [];
  const began: Record<"compiled" | "published", () => void> = { compiled: () => {}, published: () => {} };
  const controller = await RouteController.start({
    cluster: store,
    classes: CLASSES,
    hostOwnership: "shared",
    *onActive(active) {
      activated.push(active.ingresses.length);
      began.published();
      for (const _ of active.ingresses) yield;
    },
  });
  const { list } = store;
  store.list = (kind, namespace) => {
    if (kind === "Ingress") began.compiled();
    return list.call(store, kind, namespace) as never;
  };
  const serviceAt = (index: number): string | undefined => {
    const route = controller.table.match(`host-${index}.example`, "/");
    const backend = route && backendOf(route);
    return backend?.type === "service" ? backend.service : undefined;
  };
  return {
    controller,
    activated,
    change,
    /** Of all hosts that are asked: one for a whole table. */
    served: () => [...new Set([0, 1, COUNT / 2, COUNT - 2, COUNT - 1].map(serviceAt))],
    /** In the middle of the next reload: its first slice is over. */
    during: (what: keyof typeof began) =>
      new Promise<void>((resolve) => {
        began[what] = () => setImmediate(resolve);
      }),
  };
}

it.each([
  "compiled",
  "published",
] as const)("a reload that is overtaken while routes are %s takes effect as a whole, and so does the next", async (when) => {
  const { controller, served, change, during } = await startRoutes();
  const middle = during(when).then(() => change("v3"));
  change("v2");
  const seen = new Set<string | undefined>();
  while (!seen.has("v3")) {
    const services = served();
    expect(services).toHaveLength(1);
    seen.add(services[0]);
    await nextTurn();
  }
  await middle;
  expect([...seen]).toEqual(["v1", "v2", "v3"]);
  await controller.stop();
});

it("a stop in the middle of a reload leaves the table before, and tells nobody", async () => {
  const { controller, activated, served, change, during } = await startRoutes();
  const middle = during("compiled");
  change("v2");
  await middle;
  await controller.stop();
  expect(served()).toEqual(["v1"]);
  expect(activated).toEqual([COUNT]);
});
