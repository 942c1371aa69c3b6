import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
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
  afterAll(() => doors?.stop());

  const run = async (kubeconfig: string, ...args: string[]) => {
    const { stdout, stderr } = await promisify(execFile)(kubectl, [
      "--kubeconfig",
      kubeconfig,
      ...args,
    ]).catch((error: { stdout: string; stderr: string }) => error);
    return stdout + stderr;
  };
  const exec = async (door: Doors["doors"][number]) => {
    const { kubeconfig } = await door.access("dev");
    return run(kubeconfig, "exec", "web", "-c", "main", "--", "echo", "hello");
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
  const expectEqualRefusals = async () => {
    const texts = await Promise.all(doors.doors.map(exec));
    expect(new Set(texts).size, texts.join("\n---\n")).toBe(1);
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
    expect(reasonsAt("gateway")?.at(-1)).toMatch(/^node-/);
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
      await expectEqualRefusals();
      expect(reasonsAt("gateway")?.at(-1)).toBe("admission-judges-it");
      // What the policy allows is carried all the same, by the API server.
      for (const door of doors.doors) {
        const { kubeconfig } = await door.access("dev");
        expect(await run(kubeconfig, "exec", "web", "-c", "side", "--", "echo", "aside")).toBe("aside\n");
      }
      expect(reasonsAt("gateway")?.at(-1)).toBe("admission-judges-it");
    } finally {
      await remove("validatingadmissionpolicybinding", metadata.name);
      await remove("validatingadmissionpolicy", metadata.name);
    }
    await allSay("hello");
    expect(reasonsAt("gateway")?.at(-1)).toMatch(/^node-/);
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
      await expectEqualRefusals();
      // Through each door the webhook gets the name of the user.
      expect(new Set(users)).toEqual(new Set(["dave"]));
    } finally {
      await remove("validatingwebhookconfiguration", "sluice-no-exec");
      server.closeAllConnections();
      server.close();
    }
    await allSay("hello");
  });
});
