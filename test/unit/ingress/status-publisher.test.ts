import { describe, expect, it } from "vitest";
import type { Ingress, IngressAddress } from "../../../src/api/networking-objects.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { StatusPublisher } from "../../../src/ingress/status-publisher.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";

function ingress(name: string, status?: IngressAddress): Ingress {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, namespace: "default" },
    spec: {},
    ...(status && { status: { loadBalancer: { ingress: [status] } } }),
  };
}

function publishing(...objects: readonly Ingress[]) {
  const cluster = new ClusterStore();
  for (const object of objects) cluster.upsert(object);
  const written: string[] = [];
  const failures: string[] = [];
  let isFailing = false;
  let held: Promise<void> = Promise.resolve();
  const publisher = new StatusPublisher({
    cluster,
    addresses: ["192.0.2.1", "door.example.com"],
    write: async (object, addresses) => {
      written.push(`${object.metadata.name} ${JSON.stringify(addresses)}`);
      await held;
      if (isFailing) throw new Error("conflict");
      cluster.upsert({ ...object, status: { loadBalancer: { ingress: addresses } } });
    },
    onFailure: (object) => failures.push(object.metadata.name),
  });
  return {
    cluster,
    publisher,
    written,
    failures,
    holdWrites: () => {
      let release = (): void => {};
      held = new Promise((resolve) => {
        release = resolve;
      });
      return release;
    },
    failWrites: (yes: boolean) => {
      isFailing = yes;
    },
    current: (name: string) => cluster.get("Ingress", "default", name) as Ingress,
    settled: () => publisher.settled(),
  };
}

const ADDRESSES = '[{"ip":"192.0.2.1"},{"hostname":"door.example.com"}]';

describe("StatusPublisher", () => {
  it("writes our addresses once, IP addresses and host names apart", async () => {
    const { publisher, written, current, settled } = publishing(ingress("a"));
    atOnce(publisher.publishing([current("a")]));
    await settled();
    atOnce(publisher.publishing([current("a")]));
    await settled();
    expect(written).toEqual([`a ${ADDRESSES}`]);
  });

  it("writes nothing to Ingresses that are not served", async () => {
    const { publisher, written, current, settled } = publishing(ingress("a"), ingress("foreign"));
    atOnce(publisher.publishing([current("a")]));
    await settled();
    expect(written).toEqual([`a ${ADDRESSES}`]);
  });

  it("takes its addresses back from one that is no longer served, but not what others wrote", async () => {
    const { cluster, publisher, written, current, settled } = publishing(ingress("a"), ingress("b"));
    atOnce(publisher.publishing([current("a"), current("b")]));
    await settled();
    written.length = 0;
    atOnce(publisher.publishing([]));
    cluster.upsert(ingress("b", { ip: "198.51.100.7" }));
    await settled();
    expect(written).toContain("a []");
    expect(current("b").status?.loadBalancer?.ingress).toEqual([{ ip: "198.51.100.7" }]);
  });

  it("takes them back, too, when an Ingress is dropped while they are being written", async () => {
    const { publisher, written, current, settled, holdWrites } = publishing(ingress("a"));
    const release = holdWrites();
    atOnce(publisher.publishing([current("a")]));
    await expect.poll(() => written).toEqual([`a ${ADDRESSES}`]);
    atOnce(publisher.publishing([]));
    release();
    await settled();
    expect(written).toEqual([`a ${ADDRESSES}`, "a []"]);
  });

  it("looks at one Ingress in a step", () => {
    const many = Array.from({ length: 100 }, (_, index) => ingress(`a${index}`));
    const { publisher } = publishing(...many);
    expect([...publisher.publishing(many)].length).toBeGreaterThanOrEqual(2 * many.length);
  });

  it("writes again when the object comes back without them, and after a failure", async () => {
    const { cluster, publisher, written, failures, current, settled, failWrites } = publishing(ingress("a"));
    failWrites(true);
    atOnce(publisher.publishing([current("a")]));
    await settled();
    expect(failures).toEqual(["a"]);
    failWrites(false);
    cluster.upsert({
      ...ingress("a"),
      metadata: { name: "a", namespace: "default", labels: { changed: "yes" } },
    });
    await settled();
    expect(written).toHaveLength(2);
    expect(current("a").status?.loadBalancer?.ingress).toHaveLength(2);
  });
});
