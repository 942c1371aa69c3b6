import fc from "fast-check";
import {
  type Edit,
  edited,
  metadataEdits,
  type Pool,
  pools,
} from "../../fixtures/kubernetes-1.37.2/validation-objects.mjs";

/** The same objects in every run; another seed finds others: SLUICE_SEED=2. */
const seed = Number(process.env.SLUICE_SEED ?? 1);
const OBJECTS_PER_KIND = 40;

const long = (length: number): string => "a".repeat(length);
const template = {
  metadata: { labels: { app: "web" } },
  spec: { containers: [{ name: "main", image: "web:1", readinessProbe: { httpGet: { port: 80 } } }] },
};
const apps = (kind: string, spec: object = {}): object => ({
  apiVersion: "apps/v1",
  kind,
  metadata: { name: "web" },
  spec: { selector: { matchLabels: { app: "web" } }, template, ...spec },
});
const jobSpec = { template: { spec: { ...template.spec, restartPolicy: "Never" } } };

/** Edits of a pod's template at a path. */
function templateEdits(at: string): Edit[] {
  const container = `${at}.spec.containers.0`;
  return [
    [`${at}.spec.containers`, []],
    [`${at}.spec.containers`, undefined],
    [`${container}.name`, "Main"],
    [`${container}.image`, ""],
    [`${container}.image`, undefined],
    [`${container}.ports`, [{ containerPort: 0 }]],
    [`${container}.ports`, [{ containerPort: 70_000, name: "Web" }]],
    [`${container}.livenessProbe`, {}],
    [`${container}.livenessProbe`, { exec: { command: [] } }],
    [`${container}.readinessProbe.httpGet.port`, 0],
    [`${container}.readinessProbe.httpGet.port`, "a_b"],
    [`${container}.readinessProbe.httpGet.path`, 5],
    [`${container}.readinessProbe.httpget`, {}],
    [`${container}.readinessProbe.timeoutSeconds`, -1],
    [`${container}.readinessProbe.tcpSocket`, { port: 1 }],
    [`${at}.spec.nosuch`, true],
    [`${at}.spec.restartPolicy`, "Sometimes"],
    [`${at}.spec.terminationGracePeriodSeconds`, -1],
  ];
}
const countEdits = (at: string): Edit[] => [-1, "2", 1.5, null, 2 ** 31].map((value) => [at, value]);
const selectorEdits: Edit[] = [
  ["spec.selector", undefined],
  ["spec.selector", {}],
  ["spec.selector.matchLabels", { app: "other" }],
  ["spec.selector.matchLabels", { "a b": "x y" }],
  ["spec.selector.matchExpressions", [{ key: "app", operator: "Near", values: ["web"] }]],
  ["spec.selector.matchExpressions", [{ key: "app", operator: "In" }]],
  ["spec.selector.matchExpressions", [{ key: "app", operator: "Exists", values: ["web"] }]],
  ["spec.selector.matchlabels", { app: "web" }],
];
const workloadEdits: Edit[] = [
  ...countEdits("spec.replicas"),
  ...selectorEdits,
  ...templateEdits("spec.template"),
  ["spec.template.metadata.labels", { app: "else" }],
  ["spec.template.metadata.labels", { app: "web", "a/b/c": "x" }],
  ["spec.template", undefined],
];
const jobEdits = (at: string): Edit[] => [
  ...["parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"].flatMap((name) =>
    countEdits(`${at}.${name}`),
  ),
  ...templateEdits(`${at}.template`),
  [`${at}.template.spec.restartPolicy`, "Always"],
  [`${at}.template.metadata`, { labels: { app: "x y" } }],
  [`${at}.template.spec.restartPolicy`, undefined],
];

/** Kinds that the recorded objects leave out. */
const morePools: Readonly<Record<string, Pool>> = {
  Service: {
    good: {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "web" },
      spec: { selector: { app: "web" }, ports: [{ port: 80 }] },
    },
    edits: [
      ["metadata.name", "1web"],
      ["metadata.name", long(64)],
      ["spec.type", "Tunnel"],
      ["spec.type", "NodePort"],
      ["spec.type", "ExternalName"],
      ["spec.type", "ExternalName", "spec.externalName", "a_b"],
      ["spec.type", "ExternalName", "spec.externalName", "example.com"],
      ["spec.clusterIP", "None"],
      ["spec.ports", []],
      ["spec.ports", undefined],
      ["spec.ports", {}],
      ["spec.ports", [null]],
      ["spec.ports", [{ port: 80 }, { port: 81 }]],
      [
        "spec.ports",
        [
          { name: "a", port: 80 },
          { name: "a", port: 81 },
        ],
      ],
      ["spec.ports.0.port", 0],
      ["spec.ports.0.port", 65_536],
      ["spec.ports.0.port", "80"],
      ["spec.ports.0.port", undefined],
      ["spec.ports.0.name", "A b"],
      ["spec.ports.0.name", long(64)],
      ["spec.ports.0.protocol", "ICMP"],
      ["spec.ports.0.protocol", "SCTP"],
      ["spec.ports.0.targetPort", 0],
      ["spec.ports.0.targetPort", 65_536],
      ["spec.ports.0.targetPort", "web"],
      ["spec.ports.0.targetPort", "a_b"],
      ["spec.ports.0.targetPort", "1234567890123456"],
      ["spec.ports.0.targetport", 80],
      ["spec.selector", ["app"]],
      ["spec.selector", { app: 1 }],
      ["spec.nosuch", 1],
    ],
  },
  EndpointSlice: {
    good: {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "web" },
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.0.0.1"] }],
      ports: [{ name: "http", port: 80 }],
    },
    edits: [
      ["addressType", undefined],
      ["addressType", "IPv5"],
      ["addressType", "FQDN"],
      ["addressType", "IPv6"],
      ["endpoints", null],
      ["endpoints", {}],
      ["endpoints", [{}]],
      ["endpoints.0.addresses", []],
      ["endpoints.0.addresses", ["10.0.0.300"]],
      ["endpoints.0.addresses", ["a b"]],
      ["endpoints.0.addresses", ["example.com"]],
      ["endpoints.0.addresses", ["fd00::1"]],
      ["endpoints.0.addresses", ["127.0.0.1"]],
      ["endpoints.0.conditions", { ready: "yes" }],
      ["endpoints.0.nosuch", 1],
      ["ports", null],
      ["ports", [{ name: "a" }, { name: "a" }]],
      ["ports.0.name", "A"],
      ["ports.0.name", long(64)],
      ["ports.0.port", 0],
      ["ports.0.port", 65_536],
      ["ports.0.port", "80"],
      ["ports.0.protocol", "ICMP"],
      ["ports.0.Port", 80],
    ],
  },
  Secret: {
    good: { apiVersion: "v1", kind: "Secret", metadata: { name: "web" }, data: { key: "dmFsdWU=" } },
    edits: [
      ["type", "kubernetes.io/tls"],
      ["type", "kubernetes.io/tls", "data", { "tls.crt": "" }],
      ["type", "example.com/own"],
      ["type", 5],
      ["data", { "a b": "dmFsdWU=" }],
      ["data", { ".": "dmFsdWU=" }],
      ["data", { [long(254)]: "dmFsdWU=" }],
      ["data", []],
      ["data", undefined],
      ["data.key", 5],
      ["data.key", null],
      ["stringData", { key: "text" }],
      ["stringData", { "a/b": "text" }],
      ["stringData", { key: true }],
      ["immutable", "yes"],
      ["immutable", true],
      ["stringdata", {}],
    ],
  },
  Node: {
    good: { apiVersion: "v1", kind: "Node", metadata: { name: "worker-9" } },
    edits: [
      ["spec", { unschedulable: true }],
      ["spec", { unschedulable: "no" }],
      ["spec", { nosuch: 1 }],
      ["spec", []],
      ["metadata.namespace", "default"],
    ],
  },
  Namespace: {
    good: { apiVersion: "v1", kind: "Namespace", metadata: { name: "web" } },
    edits: [
      ["metadata.name", long(64)],
      ["metadata.name", "a.b"],
      ["metadata.namespace", "default"],
      ["nosuch", 1],
    ],
  },
  Lease: {
    good: { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { name: "web" }, spec: {} },
    edits: [
      ["spec.holderIdentity", "a"],
      ["spec.holderIdentity", 1],
      ["spec.leaseDurationSeconds", 0],
      ["spec.leaseDurationSeconds", "1"],
      ["spec.leaseDurationSeconds", 15],
      ["spec.leaseTransitions", -1],
      ["spec.leaseTransitions", 3],
      ["spec.holderidentity", "a"],
      ["spec", undefined],
    ],
  },
  Deployment: { good: apps("Deployment"), edits: workloadEdits },
  ReplicaSet: { good: apps("ReplicaSet"), edits: workloadEdits },
  StatefulSet: { good: apps("StatefulSet"), edits: workloadEdits },
  DaemonSet: {
    good: apps("DaemonSet"),
    edits: workloadEdits.filter(([path]) => path !== "spec.replicas"),
  },
  ReplicationController: {
    good: {
      apiVersion: "v1",
      kind: "ReplicationController",
      metadata: { name: "web" },
      spec: { selector: { app: "web" }, template },
    },
    edits: [
      ...countEdits("spec.replicas"),
      ...templateEdits("spec.template"),
      ["spec.selector", {}],
      ["spec.selector", { app: "other" }],
      ["spec.selector", { app: 5 }],
      ["spec.template.metadata.labels", { app: "x y" }],
      ["spec.template", undefined],
    ],
  },
  Job: {
    good: { apiVersion: "batch/v1", kind: "Job", metadata: { name: "web" }, spec: jobSpec },
    edits: jobEdits("spec"),
  },
  CronJob: {
    good: {
      apiVersion: "batch/v1",
      kind: "CronJob",
      metadata: { name: "web" },
      spec: { schedule: "* * * * *", jobTemplate: { spec: jobSpec } },
    },
    edits: [
      ...jobEdits("spec.jobTemplate.spec"),
      ["metadata.name", long(53)],
      ["spec.schedule", ""],
      ["spec.schedule", undefined],
      ["spec.concurrencyPolicy", "Sometimes"],
      ["spec.concurrencyPolicy", "Forbid"],
    ],
  },
  PodTemplate: {
    good: { apiVersion: "v1", kind: "PodTemplate", metadata: { name: "web" }, template },
    edits: templateEdits("template"),
  },
};

export interface GeneratedObject {
  readonly kind: string;
  readonly edits: readonly Edit[];
  readonly object: object;
}

/** A valid object of every kind. */
export const goodObjects: Readonly<Record<string, object>> = Object.fromEntries(
  Object.entries({ ...pools, ...morePools }).map(([kind, { good }]) => [kind, good]),
);

/** Objects of every kind with one to three edits each. */
export function generatedObjects(): GeneratedObject[] {
  const all: Record<string, Pool> = { ...pools };
  for (const [kind, { good, edits }] of Object.entries(morePools))
    all[kind] = { good, edits: [...metadataEdits, ...edits] };
  return Object.entries(all).flatMap(([kind, { good, edits }]) => {
    const some = fc.shuffledSubarray([...edits], { minLength: 1, maxLength: 3 });
    return fc.sample(some, { seed, numRuns: OBJECTS_PER_KIND }).flatMap((chosen) => {
      const object = withEdits(good, chosen);
      return object === undefined ? [] : [{ kind, edits: chosen, object }];
    });
  });
}

/** Undefined where one edit removes what another is about. */
function withEdits(good: object, edits: readonly Edit[]): object | undefined {
  try {
    const object = edits.reduce((changed, edit) => edited(changed, edit), good);
    return JSON.parse(JSON.stringify(object));
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
