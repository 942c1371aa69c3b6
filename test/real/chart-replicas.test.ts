import { X509Certificate } from "node:crypto";
import path from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { describeReal } from "../support/real-parts.ts";
import { CHART, configurationOf, type Rendered, renderChart, rightsOf } from "../support/rendered-chart.ts";

const GATEWAY_VALUES = path.join(CHART, "ci/gateway-values.yaml");

describeReal("helm", "several replicas by the chart", () => {
  it("lets several replicas know each other, and one alone nobody", () => {
    const objects = renderChart("--set", "networkPolicy.enabled=true");
    const named = (kind: string, name: string) =>
      objects.find((object) => object.kind === kind && object.metadata.name === name);
    const selector = named("Deployment", "s-sluice-gateway")?.spec?.selector.matchLabels;
    expect(named("Service", "s-sluice-gateway-peers")?.spec).toEqual({
      type: "ClusterIP",
      clusterIP: "None",
      publishNotReadyAddresses: true,
      selector,
      ports: [{ name: "peer", port: 8444, targetPort: "peer", appProtocol: "https" }],
    });
    const configuration = parse(named("ConfigMap", "s-sluice-gateway")?.data?.["config.yaml"] ?? "");
    expect(configuration.listeners.peers).toMatchObject({
      port: 8444,
      service: { name: "s-sluice-gateway-peers", namespace: "sluice" },
    });
    expect(named("Role", "s-sluice-gateway-peers")).toMatchObject({
      rules: [{ apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] }],
    });
    const { "tls.crt": leaf = "", "session.key": key = "" } =
      named("Secret", "s-sluice-gateway-peers")?.data ?? {};
    expect(new X509Certificate(Buffer.from(leaf, "base64")).subjectAltName).toBe("DNS:sluice-peer");
    expect(Buffer.from(key, "base64")).toHaveLength(44);
    // Their port is open to the replicas alone.
    expect(JSON.stringify(named("NetworkPolicy", "s-sluice-gateway"))).toContain(
      JSON.stringify({ from: [{ podSelector: { matchLabels: selector } }], ports: [{ port: "peer" }] }),
    );
    for (const alone of ["gateway.replicaCount=1", "gateway.peers.enabled=false"]) {
      expect(JSON.stringify(renderChart("--set", `networkPolicy.enabled=true,${alone}`))).not.toMatch(/peer/);
    }
  });

  it("gives them one store of quotas, with its password and certificates as files", () => {
    const objects = renderChart("--values", GATEWAY_VALUES);
    expect(parse(configurationOf(objects)).quotaStore).toEqual({
      url: "rediss://valkey.valkey.svc:6380",
      onFailure: "deny",
      passwordFile: "/etc/sluice-quotas/password",
      certificateAuthorityFile: "/etc/sluice-quotas/ca.crt",
      clientCertificateFile: "/etc/sluice-quotas/tls.crt",
      clientKeyFile: "/etc/sluice-quotas/tls.key",
    });
    const pod = objects.find(({ kind }) => kind === "Deployment")?.spec?.template.spec;
    expect(pod?.containers[0]?.volumeMounts).toContainEqual({
      name: "quotas",
      mountPath: "/etc/sluice-quotas",
      readOnly: true,
    });
    const same = (key: string) => ({ key, path: key });
    expect(pod?.volumes.find(({ name }) => name === "quotas")).toEqual({
      name: "quotas",
      projected: {
        sources: [
          { secret: { name: "valkey", items: [{ key: "valkey-password", path: "password" }] } },
          { secret: { name: "valkey-tls", items: ["ca.crt", "tls.crt", "tls.key"].map(same) } },
        ],
      },
    });
  });

  it("has no files of a store that asks for nothing", () => {
    const objects = renderChart("--set", "gateway.config.quotaStore.url=redis://valkey");
    expect(parse(configurationOf(objects)).quotaStore).toEqual({ url: "redis://valkey" });
    expect(JSON.stringify(objects)).not.toContain("sluice-quotas");
  });

  it.each([
    ["redis://valkey", 6379],
    ["rediss://valkey:6380/2", 6380],
    ["redis://[fd00::7]", 6379],
    ["redis://[fd00::7]:7000", 7000],
  ])("lets the gateway's connections out to %s, and to what else it needs alone", (url, port) => {
    const set = `networkPolicy.enabled=true,networkPolicy.egress.enabled=true,gateway.config.quotaStore.url=${url}`;
    const selector = { matchLabels: expect.objectContaining({ "app.kubernetes.io/component": "gateway" }) };
    expect(egressOf(renderChart("--set", set))).toEqual([
      {
        ports: [
          { protocol: "UDP", port: 53 },
          { protocol: "TCP", port: 53 },
        ],
      },
      { ports: [{ port: 443 }, { port: 6443 }] },
      { to: [{ podSelector: selector }], ports: [{ port: 8444 }] },
      { ports: [{ port }] },
    ]);
  });

  it("narrows where the gateway's connections go to the given networks and peers", () => {
    const [, servers, , store, pods, own] = egressOf(renderChart("--values", GATEWAY_VALUES)) ?? [];
    expect(servers).toEqual({
      ports: [{ port: 443 }, { port: 6443 }, { port: 10_250 }],
      to: [{ ipBlock: { cidr: "10.0.0.0/8" } }, { ipBlock: { cidr: "fd00::/8" } }],
    });
    const namespace = { matchLabels: { "kubernetes.io/metadata.name": "valkey" } };
    expect(store).toEqual({ ports: [{ port: 6380 }], to: [{ namespaceSelector: namespace }] });
    // Those whose probes the gateway runs.
    expect(pods).toEqual({ to: [{ namespaceSelector: {} }] });
    expect(own).toEqual({ ports: [{ port: 4317 }], to: [{ ipBlock: { cidr: "192.0.2.10/32" } }] });
    expect(egressOf(renderChart("--set", "networkPolicy.enabled=true"))).toBeUndefined();
  });

  it.each([
    "gateway",
    "ingress",
  ])("lets one replica of the %s probe pods, by a Lease of the release", (name) => {
    const only = [
      `gateway.enabled=${name === "gateway"}`,
      `ingress.enabled=${name === "ingress"}`,
      "ingress.rbac.secretNamespaces={*}",
    ].join();
    const probes = `${only},${name}.config.podProbes.nodeNames={virtual}`;
    const objects = renderChart("--set", probes);
    const lease = { name: `s-sluice-${name}-probes`, namespace: "sluice" };
    expect(objects.filter(({ kind }) => kind === "Lease").map(({ metadata }) => metadata)).toContainEqual(
      expect.objectContaining(lease),
    );
    expect(parse(configurationOf(objects)).podProbes).toEqual({
      nodeNames: ["virtual"],
      leaderElection: { resourceName: lease.name, resourceNamespace: lease.namespace },
    });
    // The Leases are there: the right to create them could not be bound to their names.
    expect(rightsOf(objects).missing).toEqual(["create coordination.k8s.io/leases"]);
    const held = [...rightsOf(objects).held];
    expect(held).toContain("update coordination.k8s.io/leases");

    const withoutElection = renderChart(
      "--set",
      `${probes},${name}.config.podProbes.leaderElection.leaderElect=false`,
    );
    expect(namesOf(withoutElection)).not.toContain(lease.name);
    expect([...rightsOf(withoutElection).held]).toContain("patch /pods/status");
    expect([...rightsOf(renderChart("--set", only)).held]).not.toContain("patch /pods/status");
  });

  it("follows the names of Leases in the configuration", () => {
    const election = (path: string) => [
      `ingress.config.${path}.leaderElection.resourceName=${path.replace(".", "-").toLowerCase()}`,
      `ingress.config.${path}.leaderElection.resourceNamespace=leases`,
    ];
    const objects = renderChart(
      "--set",
      [
        "gateway.enabled=false,ingress.enabled=true,ingress.config.podProbes.nodeNames={virtual}",
        ...election("listeners.ingress"),
        ...election("podProbes"),
      ].join(),
    );
    const names = ["listeners-ingress", "podprobes"];
    const leases = objects.filter(({ kind }) => kind === "Lease");
    expect(leases.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort()).toEqual(
      names.map((name) => `leases/${name}`),
    );
    const roles = objects.filter(({ kind, metadata }) => kind === "Role" && metadata.namespace === "leases");
    expect(
      roles.flatMap(({ rules = [] }) => rules.flatMap(({ resourceNames = [] }) => resourceNames)).sort(),
    ).toEqual(names);
  });

  it("lets replicas write their deletion cost, in their own namespace alone", () => {
    const objects = renderChart("--set", "gateway.config.cluster.podDeletionCost=true");
    const [container] =
      objects.find(({ kind }) => kind === "Deployment")?.spec?.template.spec.containers ?? [];
    expect(container?.env).toEqual([
      { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ]);
    const name = "s-sluice-gateway-deletion-cost";
    expect(objects.find(({ kind, metadata }) => kind === "Role" && metadata.name === name)).toMatchObject({
      metadata: { namespace: "sluice" },
      rules: [{ apiGroups: [""], resources: ["pods"], verbs: ["patch"] }],
    });
    expect(rightsOf(objects).missing).toEqual([]);
    const without = renderChart();
    expect(namesOf(without)).not.toContain(name);
    expect(rightsOf(without).held).not.toContain("patch /pods");
  });

  it("scales by sessions, and leaves the number of replicas to the autoscaler then", () => {
    const objects = renderChart("--set", "gateway.autoscaling.enabled=true");
    expect(JSON.stringify(objects.find(({ kind }) => kind === "HorizontalPodAutoscaler"))).toContain(
      "sluice_streaming_active_sessions",
    );
    expect(objects.find(({ kind }) => kind === "Deployment")?.spec).not.toHaveProperty("replicas");
    // Another autoscaler's business.
    const others = "gateway.autoscaling.enabled=true,gateway.autoscaling.horizontalPodAutoscaler=false";
    const left = renderChart("--set", others);
    expect(left.some(({ kind }) => kind === "HorizontalPodAutoscaler")).toBe(false);
    expect(left.find(({ kind }) => kind === "Deployment")?.spec).not.toHaveProperty("replicas");
  });
});

const namesOf = (objects: readonly Rendered[]): string[] => objects.map(({ metadata }) => metadata.name);

function egressOf(objects: readonly Rendered[]): readonly unknown[] | undefined {
  return objects.find(({ kind }) => kind === "NetworkPolicy")?.spec?.egress;
}
