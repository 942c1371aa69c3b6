import { expect, it, onTestFinished } from "vitest";
import { ConnectAdmission } from "../../../src/kubernetes/connect-admission.ts";
import { Backoff } from "../../../src/net/backoff.ts";
import type { TestApiServerOptions } from "../../support/api-server/test-api-server.ts";
import { eventually } from "../../support/eventually.ts";
import { startLive } from "./live.ts";

const ADMISSION = { apiVersion: "admissionregistration.k8s.io/v1" };
const rules = [{ operations: ["CONNECT"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods/exec"] }];
const policy = {
  ...ADMISSION,
  kind: "ValidatingAdmissionPolicy",
  metadata: { name: "no-exec" },
  spec: { matchConstraints: { resourceRules: rules } },
};
const binding = (matchLabels: object = {}) => ({
  ...ADMISSION,
  kind: "ValidatingAdmissionPolicyBinding",
  metadata: { name: "no-exec" },
  spec: {
    policyName: "no-exec",
    validationActions: ["Deny"],
    matchResources: { namespaceSelector: { matchLabels } },
  },
});

async function start(options: TestApiServerOptions & { maxStateAgeMs?: number } = {}) {
  const { maxStateAgeMs = 60_000, ...serverOptions } = options;
  const live = await startLive({ kinds: ["Namespace"], ...serverOptions });
  const { client, store, metrics, lines } = live;
  const log = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const admission = new ConnectAdmission({
    client,
    cluster: store,
    maxStateAgeMs,
    metrics: metrics.cluster,
    logger: { info: log, warn: log },
    discoverAgainMs: 20,
    reflector: { backoff: () => new Backoff({ firstMs: 10, maxMs: 50 }) },
  });
  onTestFinished(() => admission.stop());
  const reason = () => admission.judge({ namespace: "default", pod: "web", subresource: "exec" })?.reason;
  const first = reason();
  await live.synced();
  const becomes = (wanted: string | undefined) => eventually(`it is ${wanted}`, () => reason() === wanted);
  return { ...live, admission, first, becomes };
}

it("follows webhooks, policies and bindings, each in the version that is served", async () => {
  const { server, admission, first, becomes, metric } = await start();
  expect(first).toBe("admission-unknown");
  await becomes(undefined);
  server.apply(policy);
  server.apply(binding());
  await becomes("admission-judges-it");
  expect(admission.judge({ namespace: "default", pod: "web", subresource: "attach" })).toBeUndefined();
  server.remove("ValidatingAdmissionPolicyBinding", "", "no-exec");
  await becomes(undefined);
  const [kind, spec] = ["MutatingAdmissionPolicy", policy.spec];
  server.apply({ apiVersion: "admissionregistration.k8s.io/v1beta1", kind, metadata: { name: "m" }, spec });
  server.apply({
    apiVersion: "admissionregistration.k8s.io/v1beta1",
    kind: `${kind}Binding`,
    metadata: { name: "m" },
    spec: { policyName: "m" },
  });
  await becomes("admission-judges-it");
  expect(Number(await metric(/verdicts_total\{reason="admission-judges-it"\} (\d+)/))).toBeGreaterThan(0);
  expect(await metric(/sluice_cluster_objects\{kind="MutatingAdmissionPolicy"\} (\d)/)).toBe("1");
});

it("asks namespace selectors about the namespace as it is labelled now", async () => {
  const { server, becomes } = await start();
  server.apply(policy);
  server.apply(binding({ tier: "gold" }));
  await becomes(undefined);
  const namespace = (labels: object) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "default", labels },
  });
  server.apply(namespace({ tier: "gold" }));
  await becomes("admission-judges-it");
  server.apply(namespace({ tier: "silver" }));
  await becomes(undefined);
});

it("takes every session for judged while it may not read what judges them, and says so", async () => {
  const granted = { all: false };
  const { admission, becomes, lines } = await start({
    enforces: true,
    allows: ({ resource }) => granted.all || !resource.startsWith("validatingwebhook"),
  });
  await eventually("it is refused", () => admission.problem?.includes("may not read") === true);
  expect(admission.problem).toBe("the gateway's account may not read validatingwebhookconfigurations");
  await eventually("the others are read", () => admission.unsynced.length === 0);
  await becomes("admission-unknown");
  const loud = "admission of the cluster is not known: the API server carries every session";
  expect(lines.filter((line) => line.startsWith(loud))).toHaveLength(1);
  granted.all = true;
  await becomes(undefined);
  const again = "admission of the cluster is known again";
  await eventually("it is said", () => lines.some((line) => line.startsWith(again)));
});

/** It has read a policy about exec, and its API server then starts anew and knows no roles. */
async function startRefused(maxStateAgeMs: number) {
  const granted = { all: true };
  const started = await start({ enforces: true, allows: () => granted.all, maxStateAgeMs });
  const { server, becomes, metric } = started;
  server.apply(policy);
  server.apply(binding());
  await becomes("admission-judges-it");
  await server.stop();
  granted.all = false;
  await server.listen();
  const refusals = /sluice_cluster_watch_ends_total\{kind="ValidatingAdmissionPolicy",how="refused"\} (\d+)/;
  await eventually("it is refused", async () => Number(await metric(refusals)) > 0);
  return { ...started, granted };
}

it("counts what it has read while a restarted API server refuses it", async () => {
  const { admission, lines } = await startRefused(60_000);
  const asked = { namespace: "default", pod: "web" };
  expect(admission.judge({ ...asked, subresource: "exec" })?.reason).toBe("admission-judges-it");
  expect(admission.judge({ ...asked, subresource: "attach" })).toBeUndefined();
  expect(admission.problem).toBeUndefined();
  expect(lines.join("\n")).not.toContain("admission of the cluster is not known");
});

it("and no longer than remembered state counts: rights that were taken away look the same", async () => {
  const { admission, becomes, granted } = await startRefused(50);
  await eventually("it may not read", () => admission.problem?.includes("may not read") === true);
  await becomes("admission-unknown");
  granted.all = true;
  await becomes("admission-judges-it");
});

it("does not trust rules that are older than remembered state may be", async () => {
  const { server, becomes } = await start({ maxStateAgeMs: 50 });
  await becomes(undefined);
  await server.stop();
  await becomes("admission-unknown");
  await server.listen();
  await becomes(undefined);
});

it("takes what it cannot read for a rule about everything", async () => {
  const { server, becomes } = await start();
  await becomes(undefined);
  server.apply({
    ...ADMISSION,
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: "odd" },
    webhooks: { not: "a list" },
  });
  await becomes("admission-judges-it");
});
