import { describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../../support/eventually.ts";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { statusOf } from "./ask.ts";

function ruleFor(host: string, namespace = "default"): object {
  const http = { paths: [{ path: "/", pathType: "Prefix", backend: backend("echo-service") }] };
  return ingressObject(host, { rules: [{ host, http }] }, { namespace });
}

async function liveDoor(): Promise<{ door: FrontDoor; service: (namespace?: string) => object[] }> {
  const door = await FrontDoor.start([], {}, {}, "live");
  onTestFinished(() => door.stop());
  const pod = await door.addPod("echo-service");
  return { door, service: (namespace = "default") => serviceObjects("echo-service", [pod], { namespace }) };
}

const addressOf = (door: FrontDoor, name: string, namespace?: string) =>
  eventually(`an address of ${name}`, () => door.publishedAddresses(name, namespace).length > 0, {
    intervalMs: 1,
  });

describe("addresses in a live API", () => {
  it("are written when the routes answer: the first request after each is served", async () => {
    const { door, service } = await liveDoor();
    const objects: object[] = service();
    door.write(objects);
    for (let index = 0; index < 10; index++) {
      const host = `host-${index}`;
      objects.push(ruleFor(host));
      door.write(objects);
      await addressOf(door, host);
      expect(door.publishedAddresses(host)).toEqual([{ ip: "192.0.2.1" }]);
      expect(await statusOf(door.httpPort, host), host).toBe(200);
    }
  });

  it("are taken back with the class, and the route with them", async () => {
    const { door, service } = await liveDoor();
    const ingress = ruleFor("leaves") as { spec: object };
    door.write([...service(), ingress]);
    await addressOf(door, "leaves");
    // As an API server does, the status stays with what is written.
    const status = { loadBalancer: { ingress: door.publishedAddresses("leaves") } };
    door.write([
      ...service(),
      { ...ingress, spec: { ...ingress.spec, ingressClassName: "foreign" }, status },
    ]);
    await eventually("no address", () => door.publishedAddresses("leaves").length === 0);
    expect(await statusOf(door.httpPort, "leaves")).toBe(404);
  });

  it("a namespace that goes has no routes at once, before its objects are gone", async () => {
    const { door, service } = await liveDoor();
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "going" } };
    const objects = [...service("going"), ruleFor("going", "going"), ...service(), ruleFor("stays")];
    door.write([{ ...namespace, status: { phase: "Active" } }, ...objects]);
    await addressOf(door, "going", "going");
    await addressOf(door, "stays");
    expect(await statusOf(door.httpPort, "going")).toBe(200);
    const deletionTimestamp = "2026-01-01T00:00:00Z";
    door.write([
      {
        ...namespace,
        metadata: { name: "going", deletionTimestamp },
        spec: { finalizers: ["kubernetes"] },
        status: { phase: "Terminating" },
      },
      ...objects,
    ]);
    await eventually("no route", async () => (await statusOf(door.httpPort, "going")) === 404, {
      timeoutMs: 2_000,
    });
    expect(await statusOf(door.httpPort, "stays")).toBe(200);
  });
});
