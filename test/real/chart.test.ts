import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { builtProgram } from "../support/built-program.ts";
import { describeReal, kubectlSample, programOf } from "../support/real-parts.ts";
import { CHART, helm, type Rendered, renderChart, rightsOf } from "../support/rendered-chart.ts";
import { issueCertificate } from "../support/test-certificates.ts";

const cases = readdirSync(path.join(CHART, "ci")).sort();
const CRDS = ["ServiceMonitor", "PrometheusRule"].flatMap((kind) => [
  "--api-versions",
  `monitoring.coreos.com/v1/${kind}`,
]);

describeReal(["helm", "kubectl"], "the chart", () => {
  it.each([undefined, ...cases])("lints with %s", (values) => {
    const more = values === undefined ? [] : ["--values", path.join(CHART, "ci", values)];
    const { status, stdout } = helm("lint", "--strict", CHART, ...more);
    expect(stdout).toContain("1 chart(s) linted, 0 chart(s) failed");
    expect(status).toBe(0);
  });

  it("opens the ports that the configuration names", () => {
    const ports = [
      ...["gateway.config.listeners.apiServer.port=7443", "gateway.config.listeners.admin.port=9000"],
      ...[
        "ingress.config.listeners.ingress.httpPort=9080",
        "ingress.config.listeners.ingress.httpsPort=9443",
      ],
    ].flatMap((one) => ["--set", one]);
    const opened = renderChart("--set", "ingress.enabled=true", ...ports).flatMap(({ kind, spec }) =>
      kind === "Deployment" && spec ? [spec.template.spec.containers[0]?.ports] : [],
    );
    expect(opened).toEqual([
      [
        { name: "https-api", containerPort: 7443 },
        { name: "admin", containerPort: 9000 },
        { name: "peer", containerPort: 8444 },
      ],
      [
        { name: "http", containerPort: 9080 },
        { name: "https", containerPort: 9443 },
        { name: "admin", containerPort: 8081 },
      ],
    ]);
  });

  describe.each(
    [undefined, ...cases].filter((name) => !/^(node|load)-/.test(`${name}`)),
  )("with %s", (values) => {
    let objects: readonly Rendered[];
    beforeAll(() => {
      objects = renderChart(...(values === undefined ? [] : ["--values", path.join(CHART, "ci", values)]));
    });

    it("gives pods that meet the restricted standard, and time for their sessions", () => {
      const pods = objects.flatMap(({ kind, spec }) =>
        kind === "Deployment" && spec ? spec.template.spec : [],
      );
      expect(pods.length).toBeGreaterThan(0);
      for (const { securityContext, terminationGracePeriodSeconds, containers } of pods) {
        expect(securityContext).toMatchObject({
          runAsNonRoot: true,
          seccompProfile: { type: "RuntimeDefault" },
        });
        for (const { securityContext: own, lifecycle, resources } of containers) {
          expect(own).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          });
          expect(terminationGracePeriodSeconds).toBeGreaterThan(lifecycle.preStop.sleep.seconds);
          expect(Object.keys(resources.limits)).toEqual(["memory"]);
        }
      }
    });

    it("selects by what never changes", () => {
      for (const { kind, spec } of objects) {
        if (kind !== "Deployment") continue;
        expect(Object.keys(spec?.selector.matchLabels ?? {})).toEqual([
          "app.kubernetes.io/name",
          "app.kubernetes.io/instance",
          "app.kubernetes.io/component",
        ]);
      }
    });

    it("gives configurations that check-config accepts", async () => {
      const configurations = objects.flatMap(({ kind, data }) =>
        kind === "ConfigMap" && data?.["config.yaml"] ? data["config.yaml"] : [],
      );
      expect(configurations.length).toBeGreaterThan(0);
      const folder = mkdtempSync(path.join(tmpdir(), "sluice-chart-"));
      try {
        const { cert, key } = await issueCertificate({ commonName: "sluice" }, undefined, {
          notAfter: new Date(Date.now() + 90 * 86_400_000),
        });
        for (const [name, text] of Object.entries({
          "tls.crt": cert,
          "tls.key": key,
          "ca.crt": cert,
          "session.key": "k".repeat(44),
          password: "p",
          token: "t",
        })) {
          writeFileSync(path.join(folder, name), text);
        }
        for (const text of configurations) {
          const file = path.join(folder, "config.yaml");
          // Volumes of the pod are folders here.
          writeFileSync(
            file,
            text.replaceAll(/\/etc\/sluice-\w+|\/var\/run\/secrets\/[\w./]+(?=\/)/g, folder),
          );
          const { status, stderr } = spawnSync(
            process.execPath,
            [builtProgram(), "check-config", "-f", file],
            {
              encoding: "utf8",
            },
          );
          // Where the API server carries all sessions no kubelet is dialled.
          // The second is of an old Node.js alone.
          const known =
            /^Warning: .*(?:kubelet\.certificateAuthorityFile is absent|drops HTTP\/2 headers).*\n/gm;
          expect(stderr.replace(known, "")).toBe("");
          expect(status).toBe(0);
        }
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  });

  it.each([
    ["gateway.replicas=2", "additional properties 'replicas' not allowed"],
    ["gateway.replicaCount=two", "at '/gateway/replicaCount': got string, want integer"],
    [
      "gateway.config.timeouts.idel=1h",
      "at '/gateway/config/timeouts': additional properties 'idel' not allowed",
    ],
    ["ingress.config.limits.maxRequestHeaders=many", "at '/ingress/config/limits/maxRequestHeaders'"],
    ["gateway.service.type=ExternalName", "at '/gateway/service/type': value must be one of"],
    ["ingress.service.externalTrafficPolicy=local", "at '/ingress/service/externalTrafficPolicy'"],
    ["image.digest=latest", "at '/image/digest': 'latest' does not match pattern"],
    ["image.digest=sha256:abc", "at '/image/digest'"],
    ["gateway.rbac.impersonate=true", "at '/gateway/rbac/impersonate'"],
    ["node.enabled=true", "node.tls.hostPath is required"],
    [
      "node.enabled=true,node.tls.existingSecret=t",
      "node.clientCA.certificates or node.clientCA.existingConfigMap is",
    ],
    ["gateway.tls.generate=false", "gateway.tls needs existingSecret, certManager.enabled or generate"],
    ["gateway.tls.certManager.enabled=true", "gateway.tls.certManager.issuerRef.name is required"],
    ["gateway.peers.certManager.enabled=true", "gateway.peers.certManager.issuerRef.name is required"],
    ["gateway.quotaStore.existingSecret=valkey", "gateway.quotaStore needs gateway.config.quotaStore.url"],
    ["gateway.config.quotaStore.onFailure=open", "at '/gateway/config/quotaStore/onFailure'"],
    ["gateway.apiService.enabled=true", "gateway.apiService.frontProxy.clientCA is required"],
    [
      "gateway.apiService.enabled=true,gateway.apiService.frontProxy.clientCA=x",
      "gateway.apiService.frontProxy.allowedNames is required",
    ],
    ["gateway.serviceAccount.create=false", "gateway.serviceAccount.name is required"],
    ["node.runtimeSockets=/run/cri.sock", "at '/node': additional properties 'runtimeSockets' not allowed"],
    ["ingress.ingressClass.default=yes", "at '/ingress/ingressClass/default': got string, want boolean"],
    ["monitoring.serviceMonitor.enabled=true", "needs the CRDs of the Prometheus operator"],
    ["monitoring.prometheusRule.enabled=true", "needs the CRDs of the Prometheus operator"],
  ])("refuses %s, and says why", (value, message) => {
    const { status, stderr } = helm("template", "s", CHART, "--set", value);
    expect(stderr).toContain(message);
    expect(status).not.toBe(0);
  });

  it.each(["gateway", "bastion", "ingress", "node"])("is what sluice install prints for %s", (role) => {
    const options: Readonly<Record<string, readonly string[]>> = {
      gateway: [
        "--set",
        "gateway.tls.existingSecret=sluice-gateway-tls,gateway.peers.existingSecret=sluice-gateway-peers",
      ],
      bastion: ["--values", path.join(CHART, "ci/bastion-values.yaml")],
      ingress: ["--set", "gateway.enabled=false,ingress.enabled=true"],
      node: [
        "--set",
        "gateway.enabled=false,node.enabled=true,node.tls.hostPath=/var/lib/kubelet/pki,node.clientCA.existingConfigMap=sluice-node-client-ca",
      ],
    };
    const args = ["--namespace", "door", "--skip-tests", "--set", "image.repository=r/s,image.tag=t"];
    const { stdout: rendered } = helm("template", "sluice", CHART, ...args, ...(options[role] ?? []));
    const install = ["install", "--dry-run", "--role", role, "--namespace", "door", "--image", "r/s:t"];
    const { stdout: printed, stderr } = spawnSync(process.execPath, [builtProgram(), ...install], {
      encoding: "utf8",
    });
    expect(stderr).toBe("");
    const [namespace, ...objects] = parseAllDocuments(printed).map((document) => document.toJSON());
    expect(namespace).toMatchObject({ kind: "Namespace", metadata: { name: "door" } });
    const ofHelm = /^ *(helm\.sh\/chart|app\.kubernetes\.io\/managed-by): .*\n/gm;
    const expected = parseAllDocuments(rendered.replace(ofHelm, "")).map((document) => document.toJSON());
    // A sum of the configuration, which names the namespace of a Lease.
    const sums = /"checksum\/config":"\w+"/g;
    expect(JSON.parse(JSON.stringify(objects).replace(sums, '"a":1'))).toEqual(
      JSON.parse(JSON.stringify(expected).replace(sums, '"a":1')),
    );
  });

  it("is what kustomize builds", () => {
    const script = fileURLToPath(new URL("../../scripts/build-kustomize.mjs", import.meta.url));
    const env = { ...process.env, HELM: programOf("helm") };
    const { status, stderr } = spawnSync(process.execPath, [script, "--check"], { encoding: "utf8", env });
    expect(stderr).toBe("");
    expect(status).toBe(0);
    for (const [role, workload] of Object.entries({
      gateway: "Deployment",
      bastion: "Deployment",
      ingress: "Deployment",
      node: "DaemonSet",
      load: "Job",
    })) {
      const folder = path.join(CHART, "../kustomize", role);
      const kubectl = kubectlSample().at(-1)?.path ?? "kubectl";
      const built = spawnSync(kubectl, ["kustomize", folder], { encoding: "utf8" });
      expect(built.stderr).toBe("");
      const kinds = parseAllDocuments(built.stdout).map((document) => (document.toJSON() as Rendered).kind);
      expect(kinds).toContain(workload);
    }
  });

  it("hands the alerts to the Prometheus operator unchanged", () => {
    const [rule] = renderChart("--set", "monitoring.prometheusRule.enabled=true", ...CRDS).filter(
      ({ kind }) => kind === "PrometheusRule",
    );
    expect(JSON.stringify(rule)).toContain("{{ $labels.subresource }}");
  });

  it.each(["legacy", "constrained"])("gives the gateway the rights of %s impersonation", (impersonation) => {
    const set = ["--set", `gateway.config.cluster.impersonation=${impersonation}`];
    const objects = renderChart(
      ...set,
      "--set",
      "gateway.kubelet.existingSecret=kubelets,gateway.peers.enabled=false",
    );
    const { held, needed, missing } = rightsOf(objects);
    expect(needed.length).toBeGreaterThan(20);
    expect(missing).toEqual([]);
    expect([...held].some((grant) => /^impersonate:user-info /.test(grant))).toBe(
      impersonation === "constrained",
    );
    expect([...held].some((grant) => /^impersonate /.test(grant))).toBe(impersonation === "legacy");
  });
});
