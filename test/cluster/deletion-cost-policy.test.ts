import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import path from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { describeReal } from "../support/real-parts.ts";
import { renderChart } from "../support/rendered-chart.ts";
import { TOKENS } from "./kubernetes/credentials.ts";
import { pod } from "./kubernetes/objects.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

const COST = "controller.kubernetes.io/pod-deletion-cost";

const NAMESPACE = "deletion-cost";
const ACCOUNT = "s-sluice-gateway";
const KINDS =
  /^(?:Role|RoleBinding|ServiceAccount|ValidatingAdmissionPolicy|ValidatingAdmissionPolicyBinding)$/;
/** Of a pod, what a patch may change. */
const CHANGEABLE = ["labels", "annotations", "finalizers", "ownerReferences"]
  .map((field) => `{.metadata.${field}}`)
  .concat("{.spec}")
  .join("");
const NOT_ITS_OWN = "a replica of Sluice annotates its own pod alone";
const NOT_THE_COST = `a replica of Sluice changes nothing of its pod but ${COST}`;

const annotations = (values: object): object => ({ metadata: { annotations: values } });

describeReal(["cluster", "helm"], "the chart's policy for cluster.podDeletionCost", () => {
  const cluster = inject("cluster") as ClusterAddresses;
  const tokens = new Map<string, string>([["admin", TOKENS.admin.token]]);
  const objects = () =>
    renderChart("--namespace", NAMESPACE, "--set", "gateway.config.cluster.podDeletionCost=true").filter(
      ({ kind, metadata }) => KINDS.test(kind) && metadata.name.includes(ACCOUNT),
    );

  const admin = async (...args: string[]): Promise<string> => {
    const all = ["--kubeconfig", cluster.adminKubeconfig, "--namespace", NAMESPACE, ...args];
    const { stdout } = await promisify(execFile)(path.join(cluster.programs, "kubectl"), all);
    return stdout;
  };
  /** kubectl would read the pod first, which replicas may not: the patch alone, and the answer's message. */
  const patch = async (user: string, name: string, body: object, type = "merge"): Promise<string> => {
    const url = `${cluster.url}/api/v1/namespaces/${NAMESPACE}/pods/${name}`;
    const sent = request(url, {
      method: "PATCH",
      ca: readFileSync(path.join(cluster.credentials, "ca.crt")),
      headers: {
        Authorization: `Bearer ${tokens.get(user)}`,
        "Content-Type": `application/${type}-patch+json`,
      },
    });
    sent.end(JSON.stringify(body));
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const answer = JSON.parse(await text(response));
    return response.statusCode === 200 ? "patched" : `${response.statusCode} ${answer.message}`;
  };

  beforeAll(async () => {
    const kubectl = path.join(cluster.programs, "kubectl");
    const metadata = { name: NAMESPACE };
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata };
    await applyObjects(kubectl, cluster.adminKubeconfig, [namespace, ...objects()]);
    const replica = (name: string): object => {
      const base = pod(name, [{ name: "main", command: ["sleep", "infinity"] }]) as { spec: object };
      const own = annotations({ "example.com/owner": "chart" }) as { metadata: object };
      const spec = { ...base.spec, serviceAccountName: ACCOUNT };
      return {
        ...base,
        metadata: { ...own.metadata, name, namespace: NAMESPACE, labels: { app: "s" } },
        spec,
      };
    };
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/service-account-token",
      metadata: {
        name: "lasting",
        namespace: NAMESPACE,
        annotations: { "kubernetes.io/service-account.name": ACCOUNT },
      },
    };
    await applyObjects(kubectl, cluster.adminKubeconfig, [replica("one"), replica("other"), secret]);
    const bound = ["--bound-object-kind=Pod", "--bound-object-name=one"];
    tokens.set("one", (await admin("create", "token", ACCOUNT, ...bound)).trim());
    tokens.set("nowhere", (await admin("create", "token", ACCOUNT)).trim());
    const lasting = await eventually("the Secret has its token", () =>
      admin("get", "secret", "lasting", "-o", "jsonpath={.data.token}"),
    );
    tokens.set("lasting", Buffer.from(lasting, "base64").toString());
    await eventually(
      "the API server judges by the policy",
      async () => (await patch("one", "other", annotations({ [COST]: "1" }))).includes(NOT_ITS_OWN),
      { timeoutMs: 60_000 },
    );
  });
  afterAll(async () => {
    for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"])
      await admin("delete", "--ignore-not-found", kind, `${NAMESPACE}-${ACCOUNT}-deletion-cost`);
    await admin("delete", "namespace", "--ignore-not-found", "--wait=false", NAMESPACE);
  });

  const costOf = (name: string): Promise<string> =>
    admin("get", "pod", name, "-o", `jsonpath={.metadata.annotations.${COST.replaceAll(".", "\\.")}}`);

  it("lets a replica write the cost of its own pod, change it and take it away", async () => {
    for (const cost of ["4", "8", null]) {
      expect(await patch("one", "one", annotations({ [COST]: cost }))).toBe("patched");
      expect(await costOf("one")).toBe(cost ?? "");
    }
  });

  describe.each([
    ["another pod's cost", "one", "other", annotations({ [COST]: "1" }), NOT_ITS_OWN],
    ["with a token of no pod", "nowhere", "one", annotations({ [COST]: "1" }), NOT_ITS_OWN],
    ["with a lasting token", "lasting", "one", annotations({ [COST]: "1" }), NOT_ITS_OWN],
    ["another annotation", "one", "one", annotations({ other: "x" }), NOT_THE_COST],
    ["a changed annotation", "one", "one", annotations({ "example.com/owner": "x" }), NOT_THE_COST],
    ["no annotation of others", "one", "one", annotations({ "example.com/owner": null }), NOT_THE_COST],
    ["a label", "one", "one", { metadata: { labels: { app: "mine" } } }, NOT_THE_COST],
    ["a finalizer", "one", "one", { metadata: { finalizers: ["example.com/stay"] } }, NOT_THE_COST],
    ["no owner", "one", "one", { metadata: { ownerReferences: ownedBy("stranger") } }, NOT_THE_COST],
    ["an image", "one", "one", { spec: { containers: [{ name: "main", image: "evil" }] } }, NOT_THE_COST],
    ["a deadline", "one", "one", { spec: { activeDeadlineSeconds: 1 } }, NOT_THE_COST],
  ] as const)("refuses %s", (_what, user, name, body, message) => {
    it("and changes nothing", async () => {
      // A list of containers is merged by name, as kubectl set image does.
      const type = "spec" in body ? "strategic-merge" : "merge";
      const read = () => admin("get", "pod", name, "-o", `jsonpath=${CHANGEABLE}`);
      const before = await read();
      const answer = await patch(user, name, body, type);
      expect(answer).toMatch(/^422 pods "\w+" is forbidden: ValidatingAdmissionPolicy/);
      expect(answer).toContain(message);
      expect(await read()).toBe(before);
    });
  });

  it("lets others change what they may", async () => {
    expect(await patch("admin", "other", { metadata: { labels: { app: "t" } } })).toBe("patched");
    expect(await patch("admin", "other", annotations({ [COST]: "3" }))).toBe("patched");
  });
});

function ownedBy(name: string): object[] {
  return [{ apiVersion: "v1", kind: "ConfigMap", name, uid: "0b0e8bdc-31a7-4ef5-8cf5-0a9c1c7f1111" }];
}
