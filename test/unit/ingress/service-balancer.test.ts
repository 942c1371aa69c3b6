import { describe, expect, it } from "vitest";
import type { KubernetesObject } from "../../../src/api/objects.ts";
import { ClusterStore } from "../../../src/cluster/cluster-store.ts";
import type { ServiceRoute } from "../../../src/ingress/route.ts";
import { ServiceBalancer } from "../../../src/ingress/service-balancer.ts";
import { AddressRules } from "../../../src/net/address-rules.ts";

function route(port: number | string = 80): ServiceRoute {
  return {
    type: "service",
    cookiePath: "/",
    names: { namespace: "default", ingress: "app", service: "app" },
    origin: { apiVersion: "networking.k8s.io/v1", kind: "Ingress", metadata: { name: "app" } },
    namespace: "default",
    service: "app",
    port,
    options: { responseTimeoutMs: 1, bodyTimeoutMs: 1, tunnelIdleTimeoutMs: 1, redirectsToTls: false },
  };
}

function service(spec: object = { ports: [{ port: 80 }] }): KubernetesObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "app", namespace: "default" },
    spec,
  } as KubernetesObject;
}

function slice(
  name: string,
  addresses: readonly (string | [string, object])[],
  ports: object[] = [{ port: 8080 }],
): KubernetesObject {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name, namespace: "default", labels: { "kubernetes.io/service-name": "app" } },
    addressType: "IPv4",
    endpoints: addresses.map((entry) =>
      typeof entry === "string" ? { addresses: [entry] } : { addresses: [entry[0]], conditions: entry[1] },
    ),
    ports,
  } as KubernetesObject;
}

function balancerOf(...objects: readonly KubernetesObject[]): {
  cluster: ClusterStore;
  balancer: ServiceBalancer;
} {
  const cluster = new ClusterStore();
  for (const object of objects) cluster.upsert(object);
  return {
    cluster,
    balancer: new ServiceBalancer({
      cluster,
      addressRules: new AddressRules([]),
      dialTimeoutMs: 1,
      onTlsFailure: () => {},
    }),
  };
}

/** The endpoints that so many requests in a row are given first. */
function firstsOf(balancer: ServiceBalancer, count: number, port?: number | string): (string | undefined)[] {
  return Array.from({ length: count }, () => {
    const turn = balancer.turnFor(route(port));
    if (typeof turn === "string") return turn;
    const endpoint = turn.next()?.endpoint;
    return endpoint && `${endpoint.host}:${endpoint.port}`;
  });
}

describe("ServiceBalancer", () => {
  it("gives every endpoint of all slices its turn, each once in a request", () => {
    const { balancer } = balancerOf(
      service(),
      slice("a", ["10.0.0.1", "10.0.0.2"]),
      slice("b", ["10.0.0.3", "10.0.0.1"]),
    );
    expect(firstsOf(balancer, 4)).toEqual([
      "10.0.0.1:8080",
      "10.0.0.2:8080",
      "10.0.0.3:8080",
      "10.0.0.1:8080",
    ]);
    const turn = balancer.turnFor(route());
    if (typeof turn === "string") throw new Error(turn);
    const given = [turn.next(), turn.next(), turn.next(), turn.next()].map(
      (upstream) => upstream?.endpoint.host,
    );
    expect(given).toEqual(["10.0.0.2", "10.0.0.3", "10.0.0.1", undefined]);
  });

  it("finds a named port of the Service under its name in the slices", () => {
    const ports = [
      { name: "metrics", port: 9090 },
      { name: "web", port: 3000 },
    ];
    const { balancer } = balancerOf(
      service({
        ports: [
          { name: "web", port: 80 },
          { name: "metrics", port: 81 },
        ],
      }),
      slice("a", ["10.0.0.1"], ports),
    );
    expect(firstsOf(balancer, 1, "web")).toEqual(["10.0.0.1:3000"]);
    expect(firstsOf(balancer, 1, 81)).toEqual(["10.0.0.1:9090"]);
    expect(firstsOf(balancer, 1, "other")).toEqual(["no-such-port"]);
  });

  it("dials the TCP port of a Service that has UDP on the same number", () => {
    const { balancer } = balancerOf(
      service({
        ports: [
          { name: "udp", port: 53, protocol: "UDP" },
          { name: "tcp", port: 53, protocol: "TCP" },
          { name: "quic", port: 443, protocol: "UDP" },
        ],
      }),
      slice(
        "a",
        ["10.0.0.1"],
        [
          { name: "udp", port: 5353, protocol: "UDP" },
          { name: "tcp", port: 5354, protocol: "TCP" },
          { name: "quic", port: 8443, protocol: "UDP" },
        ],
      ),
    );
    expect(firstsOf(balancer, 1, 53)).toEqual(["10.0.0.1:5354"]);
    expect(firstsOf(balancer, 1, 443)).toEqual(["no-such-port"]);
    expect(firstsOf(balancer, 1, "udp")).toEqual(["no-such-port"]);
  });

  it("takes what is ready; with none ready, what still serves while it terminates", () => {
    const terminating = { ready: false, serving: true, terminating: true };
    const { cluster, balancer } = balancerOf(
      service(),
      slice("a", [
        ["10.0.0.1", { ready: false }],
        ["10.0.0.2", terminating],
        ["10.0.0.3", { ready: true }],
      ]),
    );
    expect(firstsOf(balancer, 2)).toEqual(["10.0.0.3:8080", "10.0.0.3:8080"]);
    cluster.upsert(
      slice("a", [
        ["10.0.0.1", { ready: false }],
        ["10.0.0.2", terminating],
      ]),
    );
    expect(firstsOf(balancer, 2)).toEqual(["10.0.0.2:8080", "10.0.0.2:8080"]);
    cluster.upsert(slice("a", [["10.0.0.1", { ready: false }]]));
    expect(firstsOf(balancer, 1)).toEqual([undefined]);
  });

  it("follows slices and Services that come, change and go", () => {
    const { cluster, balancer } = balancerOf();
    expect(firstsOf(balancer, 1)).toEqual(["no-service"]);
    cluster.upsert(service());
    cluster.upsert(slice("a", ["10.0.0.1"]));
    expect(firstsOf(balancer, 1)).toEqual(["10.0.0.1:8080"]);
    cluster.upsert(slice("a", ["10.0.0.9"], [{ port: 9 }]));
    expect(firstsOf(balancer, 1)).toEqual(["10.0.0.9:9"]);
    cluster.remove("EndpointSlice", "default", "a");
    expect(firstsOf(balancer, 1)).toEqual([undefined]);
    cluster.remove("Service", "default", "app");
    expect(firstsOf(balancer, 1)).toEqual(["no-service"]);
  });

  it("keeps the connections of an endpoint that stays", () => {
    const { cluster, balancer } = balancerOf(service(), slice("a", ["10.0.0.1", "10.0.0.2"]));
    const upstreamsOf = () => {
      const turn = balancer.turnFor(route());
      if (typeof turn === "string") throw new Error(turn);
      return [turn.next(), turn.next()];
    };
    const before = new Set(upstreamsOf());
    cluster.upsert(slice("a", ["10.0.0.2", "10.0.0.3"]));
    const kept = upstreamsOf().filter((upstream) => before.has(upstream));
    expect(kept.map((upstream) => upstream?.endpoint.host)).toEqual(["10.0.0.2"]);
  });

  it.each([
    "127.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
  ])("gives nobody the address %s, whoever wrote it into a slice", (address) => {
    const { balancer } = balancerOf(service(), slice("a", [address, "10.0.0.1"]));
    expect(firstsOf(balancer, 2)).toEqual(["10.0.0.1:8080", "10.0.0.1:8080"]);
  });
});
