import { describe, expect, it } from "vitest";
import type { ApiObject } from "../../../../src/api/api-object.ts";
import { fieldErrorText } from "../../../../src/api/field-errors.ts";
import { decodeObject } from "../../../../src/api/strategy/decode-object.ts";
import { prepareUpdate, readObject } from "../../../../src/api/strategy/read-object.ts";
import { strategyOf } from "../../../../src/api/strategy/strategies.ts";
import type { Strategy } from "../../../../src/api/strategy/strategy.ts";
import type { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { prepareCreate } from "../../../support/api-server/prepare-write.ts";
import { bothGates, main, noGates } from "../example-pod.ts";

const labels = { app: "web" };
const selector = { matchLabels: labels };
const usesBoth = {
  livenessProbe: { httpGet: { port: 80, protocol: "HTTP2" } },
  readinessProbe: { grpc: { port: 80, mode: "TLS" } },
};

const templateOf = (container: object, spec: object = {}) => ({
  metadata: { labels },
  spec: { containers: [{ ...main, ...container }], ...spec },
});

/** Each kind with its template at its place. */
const kinds: readonly [
  kind: string,
  apiVersion: string,
  templatePath: string,
  fields: (template: object) => object,
][] = [
  ["Deployment", "apps/v1", "spec.template", (template) => ({ spec: { selector, template } })],
  ["ReplicaSet", "apps/v1", "spec.template", (template) => ({ spec: { selector, template } })],
  ["StatefulSet", "apps/v1", "spec.template", (template) => ({ spec: { selector, template } })],
  ["DaemonSet", "apps/v1", "spec.template", (template) => ({ spec: { selector, template } })],
  ["ReplicationController", "v1", "spec.template", (template) => ({ spec: { template } })],
  ["PodTemplate", "v1", "template", (template) => ({ template })],
  ["Job", "batch/v1", "spec.template", (template) => ({ spec: { template } })],
  [
    "CronJob",
    "batch/v1",
    "spec.jobTemplate.spec.template",
    (template) => ({ spec: { schedule: "* * * * *", jobTemplate: { spec: { template } } } }),
  ],
];

function objectOf(
  [kind, apiVersion, , fields]: (typeof kinds)[number],
  container: object,
  spec: object = {},
) {
  const policy = kind.endsWith("Job") ? { restartPolicy: "Never" } : {};
  return {
    apiVersion,
    kind,
    metadata: { name: "a", namespace: "default" },
    ...fields(templateOf(container, { ...policy, ...spec })),
  };
}

function decoded(value: object): { object: ApiObject; strategy: Strategy } {
  const decoding = decodeObject(value);
  if (!decoding.isDecoded) throw new Error(decoding.problem.message);
  return decoding;
}

const created = (value: object, gates: FeatureGates) => {
  const { object, strategy } = decoded(value);
  return prepareCreate(strategy, object, gates);
};

const updated = (next: object, old: object, gates: FeatureGates) => {
  const { object, strategy } = decoded(next);
  return prepareUpdate(strategy, object, decoded(old).object, gates);
};

const usesOf = (object: ApiObject) =>
  (JSON.stringify(object).match(/"protocol":"HTTP2"|"mode":"TLS"/g) ?? []).length;

describe.each(kinds)("%s", (...row) => {
  const [kind, , templatePath] = row;
  const using = objectOf(row, usesBoth);
  const notUsing = objectOf(row, {});

  it("is accepted, with defaults in its template", () => {
    const { object, errors } = created(objectOf(row, { livenessProbe: { httpGet: { port: 80 } } }), noGates);
    expect(errors).toEqual([]);
    expect(JSON.stringify(object)).toContain(
      '"livenessProbe":{"httpGet":{"port":80,"path":"/","scheme":"HTTP"}',
    );
    expect(object.metadata.generation).toBe(1);
  });

  it("keeps the new probe fields where their gates are on", () => {
    expect(usesOf(created(using, bothGates).object)).toBe(2);
    expect(usesOf(updated(using, notUsing, bothGates).object)).toBe(2);
  });

  it("loses them where the gates are off and the stored object does not use them", () => {
    expect(usesOf(created(using, noGates).object)).toBe(0);
    expect(usesOf(updated(using, notUsing, noGates).object)).toBe(0);
  });

  it("keeps them where the stored object uses them, and takes more of them", () => {
    expect(usesOf(updated(using, using, noGates).object)).toBe(2);
    const extra = { initContainers: [{ ...main, name: "i", restartPolicy: "Always", ...usesBoth }] };
    expect(usesOf(updated(objectOf(row, usesBoth, extra), using, noGates).object)).toBe(4);
    if (kind !== "Job") expect(updated(using, using, noGates).errors).toEqual([]);
  });

  it("is refused for a bad probe, at its path", () => {
    const { errors } = created(objectOf(row, { livenessProbe: { exec: {} } }), noGates);
    expect(errors.map(fieldErrorText)).toEqual([
      `${templatePath}.spec.containers[0].livenessProbe.exec.command: Required value`,
    ]);
  });

  it("refuses ephemeral containers in its template", () => {
    const spec = { ephemeralContainers: [{ ...main, name: "e" }] };
    expect(created(objectOf(row, {}, spec), noGates).errors.map(fieldErrorText)).toEqual([
      `${templatePath}.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template`,
    ]);
  });

  it("is checked by manifests, empty or not", () => {
    expect(readObject(using).isValid).toBe(true);
    expect(readObject({ ...using, spec: undefined, template: undefined }).isValid).toBe(false);
  });
});

describe("the rest of a workload", () => {
  const deployment = (spec: object) => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "a", namespace: "default" },
    spec: { selector, template: templateOf({}), ...spec },
  });
  const errorsOf = (value: object) => created(value, noGates).errors.map(fieldErrorText);

  it("a selector is there, says something, and chooses the template's pods", () => {
    expect(errorsOf(deployment({ selector: undefined }))).toEqual([
      "spec.selector: Required value",
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ]);
    expect(errorsOf(deployment({ selector: {} }))).toEqual([
      "spec.selector: Invalid value: {}: empty selector is invalid for deployment",
    ]);
    expect(errorsOf(deployment({ selector: { matchLabels: { app: "x" } } }))).toEqual([
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ]);
  });

  it.each([
    [{ key: "app", operator: "In", values: ["a", "web"] }, true],
    [{ key: "app", operator: "NotIn", values: ["web"] }, false],
    [{ key: "other", operator: "NotIn", values: ["web"] }, true],
    [{ key: "app", operator: "Exists" }, true],
    [{ key: "other", operator: "Exists" }, false],
    [{ key: "app", operator: "DoesNotExist" }, false],
    [{ key: "constructor", operator: "DoesNotExist" }, true],
  ])("the requirement %j chooses them: %s", (requirement, isMatch) => {
    expect(errorsOf(deployment({ selector: { matchExpressions: [requirement] } })).length === 0).toBe(
      isMatch,
    );
  });

  it("its pods run for ever, those of a Job do not", () => {
    const ending = templateOf({}, { restartPolicy: "Never", activeDeadlineSeconds: 1 });
    expect(errorsOf(deployment({ template: ending, replicas: -1 }))).toEqual([
      "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
    ]);
    const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "a", namespace: "default" } };
    expect(errorsOf({ ...job, spec: { template: templateOf({}) } })).toEqual([
      'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ]);
  });

  it("a CronJob has a schedule, a policy and a name that leaves room", () => {
    const template = templateOf({}, { restartPolicy: "Never" });
    const cronJob = {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "a".repeat(53), namespace: "default" },
      spec: { concurrencyPolicy: "Never", jobTemplate: { spec: { template } } },
    };
    expect(errorsOf(cronJob)).toEqual([
      'spec.concurrencyPolicy: Unsupported value: "Never": supported values: "Allow", "Forbid", "Replace"',
      `metadata.name: Invalid value: "${"a".repeat(53)}": must be no more than 52 characters`,
      "spec.schedule: Required value",
    ]);
  });

  it("selectors stay, and of a StatefulSet nearly everything", () => {
    const other = { matchLabels: { ...labels, tier: "x" } };
    const labelled = { ...templateOf({}), metadata: { labels: other.matchLabels } };
    const next = deployment({ selector: other, template: labelled });
    const old = deployment({ template: labelled });
    expect(updated(next, old, noGates).errors.map(fieldErrorText)).toEqual([
      'spec.selector: Invalid value: {"matchLabels":{"app":"web","tier":"x"}}: field is immutable',
    ]);
    const set = (value: object) => ({ ...value, kind: "StatefulSet" });
    expect(updated(set(next), set(old), noGates).errors.map(fieldErrorText)).toEqual([
      "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
    ]);
  });

  it("a ReplicationController selects by its template's labels, unless it says otherwise", () => {
    const controller = (spec: object) => ({
      apiVersion: "v1",
      kind: "ReplicationController",
      metadata: { name: "a", namespace: "default" },
      spec,
    });
    const { object } = created(controller({ template: templateOf({}) }), noGates);
    expect(object.spec).toMatchObject({ replicas: 1, selector: labels });
    expect(errorsOf(controller({}))).toEqual([
      "spec.selector: Required value",
      "spec.template: Required value",
    ]);
    expect(errorsOf(controller({ selector: { app: "x" }, template: templateOf({}) }))).toEqual([
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ]);
  });

  it("generation follows the spec", () => {
    const old = { ...deployment({}), metadata: { name: "a", namespace: "default", generation: 2 } };
    expect(updated(deployment({ replicas: 5 }), old, noGates).object.metadata.generation).toBe(3);
    expect(updated(deployment({}), old, noGates).object.metadata.generation).toBe(2);
  });
});

it("strategies exist for every kind with a template", () => {
  expect(kinds.filter(([kind]) => strategyOf(kind) === undefined)).toEqual([]);
});
