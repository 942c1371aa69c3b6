import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { parseAllDocuments } from "yaml";
import { runCommand } from "../../../../src/cli/command-line.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";
import { upstreamApiServerOf } from "../../../../src/kubernetes/api-server-upstream.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";
import { testUpstreams } from "../../../support/test-upstreams.ts";

const example = path.resolve(import.meta.dirname, "../../../../deploy/examples/rbac.yaml");

/** A live cluster with every part that needs a permission. */
const EVERYTHING = {
  cluster: { inCluster: true, forwardAs: "impersonate", publishDeclaredFeatures: { nodes: ["a"] } },
  authentication: { tokenReview: { url: "https://a" } },
  authorization: { mode: ["RBAC", "Webhook"], webhook: { url: "https://a" } },
  listeners: { apiServer: {}, ingress: {} },
  podProbes: { nodeNames: ["a"] },
};

const HEAD = { apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration" };

/** A client certificate. */
async function filesIn(folder: string): Promise<object> {
  const { cert, key } = await issueCertificate({ commonName: "gateway" });
  writeFileSync(path.join(folder, "c.crt"), cert);
  writeFileSync(path.join(folder, "c.key"), key);
  return { clientCertificateFile: "c.crt", clientKeyFile: "c.key" };
}

describe("sluice rbac", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-rbac-"));
  let [out, err] = ["", ""];
  beforeEach(() => {
    [out, err] = ["", ""];
    vi.spyOn(process.stdout, "write").mockImplementation((text) => {
      out += text;
      return true;
    });
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      err += text;
      return true;
    });
    return () => vi.restoreAllMocks();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const rbac = (sections: object, ...flags: string[]): Promise<number> => {
    const file = path.join(folder, "sluice.json");
    writeFileSync(file, JSON.stringify({ ...HEAD, ...sections }));
    return runCommand("rbac", ["--config", file, ...flags]);
  };

  it("deploy/examples/rbac.yaml is what it prints for a gateway with everything", async () => {
    expect(await rbac(EVERYTHING)).toBe(0);
    const text = readFileSync(example, "utf8");
    expect(text.slice(text.indexOf("apiVersion"))).toBe(out);
  });

  it("a gateway that forwards as its caller and asks no admission needs to read pods, nodes, namespaces and API servers' endpoints", async () => {
    const cluster = { inCluster: true, admission: "none" };
    expect(await rbac({ cluster }, "--name", "gw", "--user", "sluice-gateway")).toBe(0);
    expect(out.match(/^ {4}resources: .*$/gm)).toEqual([
      "    resources: [pods, nodes, namespaces]",
      "    resources: [endpointslices]",
    ]);
    expect(out).toContain("kind: User\n    apiGroup: rbac.authorization.k8s.io\n    name: sluice-gateway\n");
    expect(out.match(/^ {2}name: gw$/gm)).toHaveLength(3);
  });

  it("serving Ingress alone needs no rights of sessions, unless sessions come through it", async () => {
    const cluster = { inCluster: true, forwardAs: "impersonate" };
    const ofSessions = /impersonate|admissionregistration/;
    expect(await rbac({ cluster, listeners: { ingress: {} } })).toBe(0);
    expect(out).not.toMatch(ofSessions);
    const own = { ingress: { streamingGateways: [{ name: "own" }] } };
    expect(await rbac({ cluster, listeners: own })).toBe(0);
    expect(out).toMatch(ofSessions);
  });

  it("a node needs what its kubelet is asked for others, and reviews of its callers", async () => {
    const kubelet = {
      runtime: { nodeName: "a" },
      authentication: { tokenReview: { url: "https://a" } },
      authorization: { mode: ["Webhook"], webhook: { url: "https://a" } },
    };
    const upstream = { url: "https://127.0.0.1:10260", tokenFile: "token" };
    expect(await rbac({ listeners: { kubelet: { ...kubelet, upstream } } })).toBe(0);
    expect(out.match(/^ {4}resources: .*$/gm)).toEqual([
      "    resources: [tokenreviews]",
      "    resources: [subjectaccessreviews]",
      "    resources: [nodes/metrics, nodes/stats, nodes/log, nodes/configz, nodes/healthz, nodes/pods, nodes/statusz]",
    ]);
    expect(await rbac({ listeners: { kubelet: { runtime: kubelet.runtime } } })).toBe(0);
    expect(err).toContain("No permissions are needed");
  });

  it.each([
    "legacy",
    "constrained",
  ])("a certificate for upstreamAPIServer impersonates by %s rights", async (impersonation) => {
    const files = { clientCertificateFile: "c.crt", clientKeyFile: "c.key" };
    const upstreamAPIServer = { url: "https://a", ...files, impersonation, nameRequester: false };
    expect(await rbac({ upstreamAPIServer })).toBe(0);
    expect(out).toMatch(/# upstreamAPIServer\./);
    expect(out.includes("[impersonate]")).toBe(impersonation === "legacy");
    expect(out.includes("[impersonate:user-info]")).toBe(impersonation === "constrained");
    expect(out).not.toContain("requested-by");
    const { upstreamAPIServer: section, timeouts } = parseConfiguration(
      JSON.stringify({ ...HEAD, upstreamAPIServer: { ...upstreamAPIServer, ...(await filesIn(folder)) } }),
      path.join(folder, "sluice.json"),
    );
    const server = await upstreamApiServerOf({ upstreamAPIServer: section, timeouts }, testUpstreams());
    server?.close();
    expect(server).toMatchObject({
      impersonates: true,
      isConstrained: impersonation === "constrained",
      namesRequester: false,
    });
  });

  it("prints the verbs of constrained impersonation where those are chosen", async () => {
    const cluster = { inCluster: true, forwardAs: "impersonate", impersonation: "constrained" };
    expect(await rbac({ cluster })).toBe(0);
    const [role] = parseAllDocuments(out).map((document) => document.toJSON());
    const verbs = (role.rules as { verbs: string[] }[]).flatMap((rule) => rule.verbs);
    expect(verbs).not.toContain("impersonate");
    expect(role.rules).toEqual(
      expect.arrayContaining([
        {
          apiGroups: ["authentication.k8s.io"],
          resources: ["serviceaccounts"],
          verbs: ["impersonate:serviceaccount"],
        },
        {
          apiGroups: ["authentication.k8s.io"],
          resources: ["userextras/sluice.dev/requested-by"],
          verbs: ["impersonate:user-info"],
        },
        {
          apiGroups: [""],
          resources: ["pods"],
          verbs: ["impersonate-on:user-info:get", "impersonate-on:serviceaccount:get"],
        },
        {
          apiGroups: ["*"],
          resources: ["*"],
          verbs: expect.arrayContaining(["impersonate-on:user-info:deletecollection"]),
        },
        {
          nonResourceURLs: ["*"],
          verbs: expect.arrayContaining(["impersonate-on:serviceaccount:post"]),
        },
      ]),
    );
    expect(out).toContain("  # cluster.impersonation: constrained; service accounts, by name alone\n");
    expect(await rbac({ cluster: { ...cluster, nameRequester: false } })).toBe(0);
    expect(out.lastIndexOf("requested-by")).toBeLessThan(out.lastIndexOf("kind: ClusterRole\n"));
  });

  it("manifests need nothing", async () => {
    expect([await rbac({}), out]).toEqual([0, ""]);
    expect(err).toContain("No permissions are needed");
  });

  it.each([
    [["--service-account", "one"]],
    [["--service-account", "a/b/c"]],
    [["--user", "a: b"]],
    [["--name", ""]],
  ])("refuses %j", async (flags) => {
    await expect(rbac(EVERYTHING, ...flags)).rejects.toThrow(/name|NAMESPACE\/NAME/);
  });
});
