import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { eventually } from "../support/eventually.ts";
import { describeReal } from "../support/real-parts.ts";
import { type Doors, openDoors } from "./doors.ts";
import { ADDRESSES } from "./kubernetes/credentials.ts";
import { applyObjects, type ClusterAddresses } from "./kubernetes/start-cluster.ts";

const document = path.resolve(import.meta.dirname, "../../docs/evidence/admission.md");
/** Of a whole run. */
const ROWS = 6;
const API_VERSION = "admissionregistration.k8s.io/v1";
const rules = [{ operations: ["CONNECT"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/exec"] }];
const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": "default" } };

describeReal("cluster", "admission on CONNECT", () => {
  let cluster: ClusterAddresses;
  let kubectl: string;
  let doors: Doors;

  beforeAll(async () => {
    cluster = inject("cluster") as ClusterAddresses;
    kubectl = path.join(cluster.programs, "kubectl");
    doors = await openDoors(cluster, ["straight", "gateway", "caller"]);
  });
  const rows: string[] = [];
  afterAll(async () => {
    await doors?.stop();
    if (process.env.SLUICE_WRITE_DOCS === "1" && rows.length === ROWS)
      writeFileSync(document, pageOf(cluster.version, rows));
  });

  const run = async (kubeconfig: string, ...args: string[]) => {
    const { stdout, stderr } = await promisify(execFile)(kubectl, [
      "--kubeconfig",
      kubeconfig,
      ...args,
    ]).catch((error: { stdout: string; stderr: string }) => error);
    return stdout + stderr;
  };
  const exec = async (door: Doors["doors"][number], container = "main") => {
    const { kubeconfig } = await door.access("dev");
    return run(kubeconfig, "exec", "web", "-c", container, "--", "echo", "hello");
  };
  const remove = (kind: string, name: string) => run(cluster.adminKubeconfig, "delete", kind, name);
  const allSay = (text: string) =>
    eventually(
      `every door says ${text}`,
      async () => {
        for (const door of doors.doors) if (!(await exec(door)).includes(text)) return false;
        return true;
      },
      { timeoutMs: 30_000 },
    );
  /** A row of the page: kubectl prints the same at every door, and both gateways take the path. */
  const expectEqual = async (title: string, container: string, text: string, path_: RegExp) => {
    const texts = await Promise.all(doors.doors.map((door) => exec(door, container)));
    expect(new Set(texts).size, texts.join("\n---\n")).toBe(1);
    expect(texts[0]).toContain(text);
    const reasons = ["gateway", "caller"].map((name) => reasonsAt(name)?.at(-1) ?? "");
    for (const reason of reasons) expect(reason).toMatch(path_);
    const [reason = ""] = new Set(reasons);
    const carrier = reason.startsWith("admission-") ? "the API server" : "the gateway, to the node";
    rows.push(`| ${title} | \`${texts[0]?.trim()}\` | ${carrier} (\`${reason}\`) |`);
  };
  /** Of the newest session that the door's gateway logged. */
  const reasonsAt = (name: string) =>
    doors.doors
      .find((door) => door.name === name)
      ?.log()
      .split("\n")
      .filter((line) => line.includes("session started") || line.includes("session refused"))
      .map((line) => JSON.parse(line).session.reason as string);

  it("of a ValidatingAdmissionPolicy refuses exec with the same text straight and through Sluice", async () => {
    await allSay("hello");
    await expectEqual("nothing judges CONNECT", "main", "hello", /^node-/);
    const metadata = { name: "sluice-no-exec" };
    await applyObjects(kubectl, cluster.adminKubeconfig, [
      {
        apiVersion: API_VERSION,
        kind: "ValidatingAdmissionPolicy",
        metadata,
        spec: {
          failurePolicy: "Fail",
          matchConstraints: { namespaceSelector, resourceRules: rules },
          validations: [{ expression: "object.container != 'main'", message: "no exec in main, please" }],
        },
      },
      {
        apiVersion: API_VERSION,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata,
        spec: { policyName: metadata.name, validationActions: ["Deny"] },
      },
    ]);
    try {
      await allSay("no exec in main, please");
      const judged = /^admission-judges-it$/;
      await expectEqual("a ValidatingAdmissionPolicy denies it", "main", "no exec in main, please", judged);
      // What the policy allows is carried all the same, by the API server.
      await expectEqual("the same policy allows it (another container)", "side", "hello", judged);
    } finally {
      await remove("validatingadmissionpolicybinding", metadata.name);
      await remove("validatingadmissionpolicy", metadata.name);
    }
    await allSay("hello");
    await expectEqual("the policy and its binding are deleted", "main", "hello", /^node-/);
  });

  it("of a webhook refuses exec with the same text straight and through Sluice", async () => {
    const file = (name: string) => readFileSync(path.join(cluster.credentials, name));
    const users: string[] = [];
    const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      let text = "";
      for await (const chunk of request) text += chunk;
      const review = JSON.parse(text);
      users.push(review.request.userInfo.username);
      const status = { code: 403, message: "not on a Monday" };
      response.setHeader("Content-Type", "application/json");
      response.end(
        JSON.stringify({
          ...review,
          request: undefined,
          response: { uid: review.request.uid, allowed: false, status },
        }),
      );
    };
    const server = createServer(
      { cert: file("sluice-serving.crt"), key: file("sluice-serving.key") },
      (request, response) => void answer(request, response),
    );
    server.listen(0, ADDRESSES.controlPlane);
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
      await applyObjects(kubectl, cluster.adminKubeconfig, [
        {
          apiVersion: API_VERSION,
          kind: "ValidatingWebhookConfiguration",
          metadata: { name: "sluice-no-exec" },
          webhooks: [
            {
              name: "exec.sluice.example",
              clientConfig: {
                url: `https://${ADDRESSES.controlPlane}:${port}/`,
                caBundle: file("ca.crt").toString("base64"),
              },
              rules,
              namespaceSelector,
              sideEffects: "None",
              admissionReviewVersions: ["v1"],
              timeoutSeconds: 5,
            },
          ],
        },
      ]);
      await allSay("not on a Monday");
      const denial = "a ValidatingWebhookConfiguration denies it";
      await expectEqual(denial, "main", "not on a Monday", /^admission-judges-it$/);
      // Through each door the webhook gets the name of the user.
      expect(new Set(users)).toEqual(new Set(["dave"]));
    } finally {
      await remove("validatingwebhookconfiguration", "sluice-no-exec");
      server.closeAllConnections();
      server.close();
    }
    await allSay("hello");
    await expectEqual("the webhook is deleted", "main", "hello", /^node-/);
  });
});

function pageOf(version: string, rows: readonly string[]): string {
  return `# Admission on CONNECT: straight and through Sluice

kubectl prints the same straight at the API server and through gateways with \`forwardAs: impersonate\` and
\`forwardAs: caller\`; webhooks get the user's own name. Default \`cluster.admission: apiServer\`, Kubernetes
${version}, a user with \`create pods/exec\`. Written by
\`SLUICE_WRITE_DOCS=1 npm run test:cluster -- test/cluster/admission.test.ts\`.

| the cluster | kubectl exec prints | the session runs through |
|---|---|---|
${rows.join("\n")}

What decides the path: [decision 44](../decisions/0044-admission-on-connect.md).
`;
}
