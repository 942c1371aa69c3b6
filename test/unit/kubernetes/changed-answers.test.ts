import { onFault } from "@sluice/client/internal/observability/faults";
import { describe, expect, it, onTestFinished } from "vitest";
import type { AdmissionObjects } from "../../../src/api/admission/connect-rules.ts";
import type { Pod } from "../../../src/api/objects.ts";
import { judgeOnce, rulesIn, servedPaths } from "../../../src/kubernetes/admission-verdict.ts";
import { listPages } from "../../../src/kubernetes/list-pages.ts";
import { decodedObject, liveObject } from "../../../src/kubernetes/live-object.ts";
import { publishPodStatus } from "../../../src/kubernetes/publish-pod-status.ts";
import { changedValues } from "../../support/changed-values.ts";

const RULE = {
  operations: ["CONNECT"],
  apiGroups: [""],
  apiVersions: ["v1"],
  resources: ["pods/exec"],
  resourceNames: ["web"],
  scope: "*",
};
const SELECTOR = { matchLabels: { a: "b" }, matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] };
const WEBHOOKS = {
  metadata: { name: "hooks" },
  webhooks: [{ name: "w", rules: [RULE], namespaceSelector: SELECTOR, objectSelector: {} }],
};
const BINDING = {
  metadata: { name: "binding" },
  spec: { policyName: "policy", matchResources: { excludeResourceRules: [RULE] } },
};
const POLICY = {
  metadata: { name: "policy" },
  spec: { matchConstraints: { namespaceSelector: SELECTOR, resourceRules: [RULE] } },
};
const POD = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "default", uid: "u1", resourceVersion: "1", annotations: { a: "b" } },
  spec: { containers: [{ name: "main", ports: [{ name: "http", containerPort: 80 }] }] },
  status: { containerStatuses: [{ name: "main", ready: true, state: { running: {} } }] },
};
const STATUS = {
  conditions: [],
  containerStatuses: [{ name: "main", image: "i", imageID: "", ready: true, restartCount: 0 }],
};
const CLUSTER = { getNamespace: () => ({ metadata: { labels: { a: "b" } } }) as never };
const REQUEST = { namespace: "default", pod: "web", subresource: "exec", namespaceLabels: { a: "b" } };

/** Answers of an API server with one part changed: what it says is refused by its name, never by a TypeError. */
describe("a changed answer", () => {
  const problemOf = (work: () => unknown) => {
    try {
      work();
      return undefined;
    } catch (error) {
      return (error as Error).name;
    }
  };
  const rejectionOf = async (work: () => Promise<unknown>) =>
    work().then(
      () => undefined,
      (error: Error) => error.name,
    );

  it("of a list is a list or malformed", async () => {
    const list = { kind: "PodList", metadata: { resourceVersion: "1", continue: "" }, items: [POD] };
    for (const answer of changedValues(list)) {
      const rejection = await rejectionOf(async () => {
        let calls = 0;
        for await (const items of listPages(async () => (calls++ === 0 ? answer : list)))
          for (const _ of items);
      });
      expect([undefined, "MalformedAnswerError"], JSON.stringify(answer)).toContain(rejection);
    }
  });

  it("of a pod is a pod or a bad object", () => {
    for (const answer of changedValues(POD)) {
      for (const read of [liveObject, decodedObject]) {
        const problem = problemOf(() => read("Pod", answer));
        expect([undefined, "BadObjectError"], JSON.stringify(answer)).toContain(problem);
      }
    }
  });

  it("of a pod whose status is written harms no other", async () => {
    for (const answer of changedValues(POD)) {
      const rejection = await rejectionOf(() =>
        publishPodStatus({ json: async () => answer }, POD as unknown as Pod, STATUS),
      );
      expect([undefined, "BadObjectError"], JSON.stringify(answer)).toContain(rejection);
    }
  });

  it("of discovery or of rules is understood or malformed", async () => {
    onTestFinished(onFault(() => {}));
    const lists = {
      resources: [{ name: "validatingwebhookconfigurations" }],
      items: [WEBHOOKS],
    };
    for (const answer of changedValues(lists)) {
      const client = { json: async () => answer };
      for (const work of [() => servedPaths(client), () => judgeOnce(client, CLUSTER, REQUEST)]) {
        const rejection = await rejectionOf(work);
        expect([undefined, "MalformedAnswerError"], JSON.stringify(answer)).toContain(rejection);
      }
    }
  });

  it("of a webhook or policy may judge any session, and breaks none", () => {
    onTestFinished(onFault(() => {}));
    const matches = (objects: AdmissionObjects) => rulesIn(objects).map((rule) => rule.matches(REQUEST));
    for (const hooks of changedValues(WEBHOOKS))
      matches({ validatingwebhookconfigurations: new Map([["hooks", hooks]]) });
    for (const [policies, bindings] of [
      ...Array.from(changedValues(POLICY), (policy) => [policy, BINDING]),
      ...Array.from(changedValues(BINDING), (binding) => [POLICY, binding]),
    ])
      matches({
        validatingadmissionpolicies: new Map([["policy", policies]]),
        validatingadmissionpolicybindings: new Map([["binding", bindings]]),
      });
    const [unreadable] = rulesIn({
      validatingwebhookconfigurations: new Map([
        [
          "hooks",
          { webhooks: [{ name: "w", rules: [RULE], namespaceSelector: { matchExpressions: [null] } }] },
        ],
      ]),
    });
    expect(unreadable?.matches(REQUEST)).toBe(true);
  });
});
