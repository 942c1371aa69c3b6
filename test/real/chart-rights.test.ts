import path from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { describeReal } from "../support/real-parts.ts";
import {
  CHART,
  configurationOf,
  helm,
  type Rendered,
  renderChart,
  rightsOf,
} from "../support/rendered-chart.ts";

const INGRESS = ["--set", "gateway.enabled=false,ingress.enabled=true"];
const NODE = ["--values", path.join(CHART, "ci/node-values.yaml")];
const PEERLESS = "gateway.peers.enabled=false";

/** What the roles grant, as `get /pods`, where it matches. */
const on = (objects: readonly Rendered[], wanted: RegExp): string[] =>
  objects
    .flatMap(({ rules = [] }) => rules)
    .flatMap(({ apiGroups = [], resources = [], verbs }) =>
      verbs.flatMap((verb) =>
        apiGroups.flatMap((group) => resources.map((name) => `${verb} ${group}/${name}`)),
      ),
    )
    .filter((grant) => wanted.test(grant));

describeReal("helm", "the rights that the chart gives", () => {
  it("impersonate by the constrained verbs, unless values say otherwise", () => {
    const rendered = (set: string) => renderChart("--set", [PEERLESS, set].join());
    const plain = rendered("image.tag=x");
    expect(on(plain, /^impersonate(-on)?:/).length).toBeGreaterThan(0);
    expect(on(plain, /^impersonate /)).toEqual([]);
    expect(parse(configurationOf(plain)).cluster).toMatchObject({
      forwardAs: "impersonate",
      impersonation: "constrained",
    });
    expect(on(rendered("gateway.rbac.impersonate=legacy"), /^impersonate /).length).toBeGreaterThan(0);
    const own = rendered("gateway.rbac.impersonate=none");
    expect(on(own, /^impersonate/)).toEqual([]);
    expect(parse(configurationOf(own)).cluster.forwardAs).toBe("caller");
    expect(on(rendered("gateway.config.cluster.impersonation=legacy"), /^impersonate:/)).toEqual([]);
  });

  it("over running sessions are roles that are bound to nobody, and only if they are wanted", () => {
    expect(on(renderChart("--set", "image.tag=x"), /sluice\.dev\/streamingsessions$/)).toEqual([]);
    const roles = renderChart("--set", "gateway.rbac.sessionRoles=true")
      .filter(({ metadata }) => metadata.name.includes("-session-"))
      .map((role) => [role.kind, role.metadata.name.split("-session-")[1], on([role], /./)]);
    const may = (...verbs: string[]) => verbs.map((verb) => `${verb} sluice.dev/streamingsessions`);
    expect(roles.toSorted()).toEqual([
      [
        "ClusterRole",
        "moderator",
        [...may("get", "list", "watch", "delete"), "get sluice.dev/streamingsessions/output"],
      ],
      [
        "ClusterRole",
        "operator",
        [
          ...may("get", "list", "watch"),
          "get sluice.dev/streamingsessions/output",
          "get sluice.dev/streamingsessions/attach",
          "create sluice.dev/streamingsessions/attach",
        ],
      ],
      ["ClusterRole", "viewer", may("list", "watch")],
    ]);
  });

  describe("of the API server to speak for its users", () => {
    const PROXY = "gateway.apiService.frontProxy";
    const values = [
      "gateway.apiService.enabled=true",
      `${PROXY}.clientCA=c`,
      `${PROXY}.allowedNames={proxy}`,
    ];
    const rendered = (...more: string[]) => renderChart("--set", [...values, ...more].join());
    const apiServiceOf = (objects: readonly Rendered[]) =>
      objects.find(({ kind }) => kind === "APIService") as (Rendered & { spec: object }) | undefined;

    it("come with its certificate's authority and names, and only if they are wanted", () => {
      const objects = rendered();
      expect(parse(configurationOf(objects)).authentication.requestHeader).toEqual({
        clientCAFile: "/etc/sluice-proxies/ca.crt",
        allowedNames: ["proxy"],
      });
      const pod = objects.find(({ kind }) => kind === "Deployment")?.spec?.template.spec;
      const volume = { name: "proxies", configMap: { name: "s-sluice-gateway-front-proxy" } };
      expect(pod?.volumes).toContainEqual(volume);
      const plain = renderChart("--set", "image.tag=x");
      expect(configurationOf(plain)).not.toContain("requestHeader");
      expect(apiServiceOf(plain)).toBeUndefined();
    });

    it("go to a server of the gateway's own certificate", () => {
      const objects = rendered();
      const secret = objects.find(({ metadata }) => metadata.name === "s-sluice-gateway-tls");
      expect(secret?.data?.["ca.crt"]).toMatch(/^LS0t/);
      expect(apiServiceOf(objects)?.spec).toEqual({
        group: "sluice.dev",
        version: "v1alpha1",
        groupPriorityMinimum: 1000,
        versionPriority: 100,
        service: { name: "s-sluice-gateway", namespace: "sluice", port: 443 },
        caBundle: secret?.data?.["ca.crt"],
      });
      const given = apiServiceOf(rendered("gateway.tls.existingSecret=t", "gateway.apiService.caBundle=b"));
      expect(given?.spec).toMatchObject({ caBundle: Buffer.from("b").toString("base64") });
      const managed = apiServiceOf(
        rendered("gateway.tls.certManager.enabled=true", "gateway.tls.certManager.issuerRef.name=i"),
      );
      expect(managed?.metadata).toMatchObject({
        annotations: { "cert-manager.io/inject-ca-from": "sluice/s-sluice-gateway" },
      });
      expect(managed?.spec).not.toHaveProperty("caBundle");
      const blind = apiServiceOf(rendered("gateway.apiService.insecureSkipTLSVerify=true"))?.spec;
      expect(blind).toMatchObject({ insecureSkipTLSVerify: true });
      expect(blind).not.toHaveProperty("caBundle");
      expect(() => rendered("gateway.tls.existingSecret=t")).toThrow(
        "gateway.apiService.caBundle is required",
      );
    });
  });

  it("name what an API server without the constrained verbs needs", () => {
    const older = (...set: string[]) => helm("template", "s", CHART, "--kube-version", "1.35.2", ...set);
    expect(older().stderr).toContain(
      "gateway.rbac.impersonate=constrained needs Kubernetes 1.36 and this is v1.35.2",
    );
    expect(older("--set", "gateway.rbac.impersonate=legacy").status).toBe(0);
    expect(older("--set", "gateway.rbac.impersonate=none").status).toBe(0);
  });

  it("read what admission is configured with only where sessions are judged by it here", () => {
    const admission = (set: string) => on(renderChart("--set", set), /admissionregistration/);
    expect(admission("image.tag=x")).toEqual([]);
    expect(admission("gateway.config.cluster.admission=none,gateway.kubelet.existingSecret=k")).toEqual([]);
    expect(admission("gateway.config.cluster.admission=apiServer").length).toBe(12);
    expect(admission("gateway.kubelet.existingSecret=k").length).toBe(12);
  });

  it("of a front door reach neither pods nor nodes, and no Secret that nobody gave", () => {
    const objects = renderChart(...INGRESS);
    expect(on(objects, / \/(pods|nodes|secrets)/)).toEqual([]);
    // The Lease is the release's own.
    expect(rightsOf(objects).missing.filter((right) => !/secrets|leases/.test(right))).toEqual([]);
    const probes = renderChart(...INGRESS, "--set", "ingress.config.podProbes.nodeNames={virtual}");
    expect(on(probes, / \/pods$/)).toEqual(["get /pods", "list /pods", "watch /pods"]);
    expect(on(probes, / \/nodes/)).toEqual([]);
  });

  it("of a front door reach the Secrets that values name, by name or namespace", () => {
    const secretRoles = (...set: string[]) =>
      renderChart(...INGRESS, ...set).flatMap(({ kind, metadata: { namespace }, rules = [] }) =>
        rules
          .filter(({ resources = [] }) => resources.includes("secrets"))
          .map(({ resourceNames, verbs }) => ({ kind, namespace, resourceNames, verbs })),
      );
    const verbs = ["list", "watch"];
    expect(secretRoles("--set", "ingress.rbac.secretNamespaces={web}")).toEqual([
      { kind: "Role", namespace: "web", resourceNames: undefined, verbs },
    ]);
    expect(secretRoles("--set-json", 'ingress.rbac.secrets={"shop":["shop-tls","ca"]}')).toEqual([
      { kind: "Role", namespace: "shop", resourceNames: ["shop-tls", "ca"], verbs },
    ]);
    expect(secretRoles("--set", "ingress.rbac.secretNamespaces={*}")).toEqual([
      { kind: "ClusterRole", namespace: undefined, resourceNames: undefined, verbs },
    ]);
  });

  it("of a node read its kubelet's pages, of the nodes that values name, and no log unasked", () => {
    const objects = renderChart(...NODE);
    expect(on(objects, /nodes\/(log|proxy)/)).toEqual([]);
    const pages = objects.flatMap(({ rules = [] }) =>
      rules.filter(({ resources = [] }) => /^nodes/.test(`${resources[0]}`)),
    );
    expect(pages.map(({ resourceNames }) => resourceNames)).toEqual([["worker-1", "worker-2"]]);
    expect(on(renderChart(...NODE, "--set", "node.rbac.logs=true"), /nodes\/log/)).toEqual([
      "get /nodes/log",
    ]);
  });

  it("let a node's port believe the cluster's authority of clients, and no superuser of it", () => {
    const objects = renderChart(...NODE);
    const { authentication, listeners } = parse(configurationOf(objects));
    expect(authentication).toMatchObject({
      clientCAFile: "/etc/sluice-clients/client-ca-file",
      refuseSystemMasters: true,
    });
    const pod = objects.find(({ kind }) => kind === "DaemonSet")?.spec?.template.spec;
    expect(pod?.volumes).toContainEqual({ name: "clients", configMap: { name: "client-ca" } });
    // Each node's own key: nothing of the release holds one.
    expect(pod?.volumes).toContainEqual({
      name: "tls",
      hostPath: { path: "/var/lib/kubelet/pki", type: "Directory" },
    });
    expect(listeners.kubelet.tls.keyFile).toBe("/var/lib/kubelet/pki/kubelet-server-current.pem");
    expect(objects.map(({ kind }) => kind)).not.toContain("Secret");
  });

  it("bind pods patch to the own pod's annotation, by the cluster's admission", () => {
    const objects = renderChart("--set", "gateway.config.cluster.podDeletionCost=true");
    const policy = objects.find(({ kind }) => kind === "ValidatingAdmissionPolicy");
    const binding = objects.find(({ kind }) => kind === "ValidatingAdmissionPolicyBinding");
    expect(JSON.stringify(policy)).toContain("system:serviceaccount:sluice:s-sluice-gateway");
    expect(binding?.spec).toMatchObject({ policyName: policy?.metadata.name, validationActions: ["Deny"] });
    expect(on(renderChart(), /^patch \/pods/)).toEqual([]);
  });

  it("close the admin listener to other namespaces, unless one is named", () => {
    const adminOf = (...set: string[]) => {
      const policy = renderChart(...set).find(({ kind }) => kind === "NetworkPolicy");
      const rules = (policy?.spec as unknown as { ingress: { from?: object[]; ports: { port: string }[] }[] })
        .ingress;
      return rules.find(({ ports }) => ports[0]?.port === "admin")?.from;
    };
    expect(adminOf()).toEqual([{ podSelector: {} }]);
    const monitoring = { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } };
    expect(
      adminOf("--set-json", `networkPolicy.metricsNamespaceSelector=${JSON.stringify(monitoring)}`),
    ).toEqual([{ podSelector: {} }, { namespaceSelector: monitoring }]);
  });

  it("leave no pod of a failed helm test behind, and print what it said", () => {
    const { stdout } = helm("template", "s", CHART, "--show-only", "templates/tests/ready.yaml");
    expect(parse(stdout).metadata.annotations).toEqual({
      "helm.sh/hook": "test",
      "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded,hook-failed",
      "helm.sh/hook-output-log-policy": "hook-failed",
    });
  });
});
