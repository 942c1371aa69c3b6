import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import { NamedSecrets } from "../../../src/kubernetes/named-secrets.ts";

const ingress = (name: string, ...secrets: string[]) => ({
  apiVersion: "networking.k8s.io/v1" as const,
  kind: "Ingress" as const,
  metadata: { name, namespace: "a" },
  spec: { tls: secrets.map((secretName) => ({ secretName })) },
});

it("follows the authority of backends, where it is named by a name", async () => {
  const cluster = new ClusterStore();
  const told: string[] = [];
  const follow = (namespace: string, name: string) => {
    told.push(`${namespace}/${name}`);
    return () => {};
  };
  const secrets = new NamedSecrets({ cluster, follow, onTooMany: () => {} });
  for (const [index, named] of ["ca", "x,metadata.namespace=b", ""].entries()) {
    const { metadata, ...rest } = ingress(`i${index}`);
    const annotations = { "sluice.dev/backend-ca-secret": named };
    cluster.upsert({ ...rest, metadata: { ...metadata, annotations } });
  }
  await setImmediate();
  expect(told).toEqual(["a/ca"]);
  secrets.stop();
});

it("follows what is named once, lets go of what is not, so many and no more", async () => {
  const cluster = new ClusterStore();
  const told: string[] = [];
  const secrets = new NamedSecrets({
    cluster,
    follow: (namespace, name) => {
      told.push(`+${namespace}/${name}`);
      return () => told.push(`-${namespace}/${name}`);
    },
    onTooMany: (wanted) => told.push(`${wanted} wanted`),
    maxSecrets: 2,
  });
  cluster.upsert(ingress("i", "x", "y"));
  cluster.upsert(ingress("j", "y"));
  await setImmediate();
  expect(told).toEqual(["+a/x", "+a/y"]);
  cluster.upsert(ingress("i"));
  await setImmediate();
  cluster.upsert(ingress("k", "z", "w"));
  await setImmediate();
  expect(told.slice(2)).toEqual(["-a/x", "+a/z", "3 wanted"]);
  secrets.stop();
  expect([told.slice(5).sort(), secrets.size]).toEqual([["-a/y", "-a/z"], 0]);
});
