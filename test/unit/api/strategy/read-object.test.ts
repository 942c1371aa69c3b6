import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readObject } from "../../../../src/api/strategy/read-object.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";

const subdomain =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const labelValue =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const namePart =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

const main = { name: "main", image: "web:1" };
const pod = (spec: object = {}, metadata: object = {}, rest: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", ...metadata },
  spec: { containers: [main], ...spec },
  ...rest,
});
const node = (status: object, metadata: object = {}) => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "n", ...metadata },
  status,
});
const port = (fields: object) => pod({ containers: [{ ...main, ports: [fields] }] });
const invalidPod = (text: string) => `Pod "web" is invalid: ${text}`;
const misshapenPod = (text: string) =>
  `Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal ${text}`;
const known =
  "known here: Pod, Node, Namespace, Ingress, IngressClass, Role, ClusterRole, RoleBinding, ClusterRoleBinding, " +
  "Service, EndpointSlice, Secret, Lease, ReplicationController, PodTemplate, Deployment, ReplicaSet, StatefulSet, " +
  "DaemonSet, Job, CronJob, List";

const refused: readonly [what: string, value: unknown, path: string, message: string][] = [
  ["no object", 7, "", "a Kubernetes object is expected: a mapping with apiVersion and kind"],
  ["no kind", { apiVersion: "v1" }, "kind", "Object 'Kind' is missing"],
  ["no version", { kind: "Pod" }, "apiVersion", "Object 'apiVersion' is missing"],
  [
    "unknown kind",
    { apiVersion: "v1", kind: "Widget" },
    "kind",
    `no matches for kind "Widget" in version "v1"; ${known}`,
  ],
  [
    "kind that is a property",
    { apiVersion: "v1", kind: "constructor" },
    "kind",
    `no matches for kind "constructor" in version "v1"; ${known}`,
  ],
  [
    "other version",
    { apiVersion: "apps/v1", kind: "Pod" },
    "kind",
    'no matches for kind "Pod" in version "apps/v1"; known here in version "v1"',
  ],
  [
    "other version of a kind with two",
    { apiVersion: "extensions/v1beta1", kind: "Ingress" },
    "kind",
    'no matches for kind "Ingress" in version "extensions/v1beta1"; known here in version "networking.k8s.io/v1" and "networking.k8s.io/v1beta1"',
  ],
  [
    "no name",
    pod({}, { name: null }),
    "metadata.name",
    'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
  ],
  [
    "name",
    pod({}, { name: "A_b" }),
    "metadata.name",
    `Pod "A_b" is invalid: metadata.name: Invalid value: "A_b": ${subdomain}`,
  ],
  [
    "long name",
    pod({}, { name: "a".repeat(254) }),
    "metadata.name",
    `Pod "${"a".repeat(254)}" is invalid: metadata.name: Invalid value: "${"a".repeat(254)}": must be no more than 253 characters`,
  ],
  [
    "namespace",
    pod({}, { namespace: "a.b" }),
    "metadata.namespace",
    invalidPod('metadata.namespace: Invalid value: "a.b": must not contain dots'),
  ],
  [
    "label value",
    pod({}, { labels: { a: "-" } }),
    "metadata.labels",
    invalidPod(`metadata.labels: Invalid value: "-": ${labelValue}`),
  ],
  [
    "label key",
    pod({}, { labels: { "a b": "x" } }),
    "metadata.labels",
    invalidPod(`metadata.labels: Invalid value: "a b": ${namePart}`),
  ],
  [
    "label prefix",
    pod({}, { labels: { "/a": "x" } }),
    "metadata.labels",
    invalidPod('metadata.labels: Invalid value: "/a": prefix part must be non-empty'),
  ],
  [
    "time",
    pod({}, { creationTimestamp: "now" }),
    "metadata.creationTimestamp",
    'Pod in version "v1" cannot be handled as a Pod: parsing time "now" as "2006-01-02T15:04:05Z07:00": cannot parse "now" as "2006"',
  ],
  [
    "no spec",
    { apiVersion: "v1", kind: "Pod", metadata: { name: "web" } },
    "spec.containers",
    invalidPod("spec.containers: Required value"),
  ],
  [
    "no containers",
    pod({ containers: [] }),
    "spec.containers",
    invalidPod("spec.containers: Required value"),
  ],
  [
    "container without name",
    pod({ containers: [{ ...main, name: "" }] }),
    "spec.containers[0].name",
    invalidPod("spec.containers[0].name: Required value"),
  ],
  [
    "container name",
    pod({ containers: [{ ...main, name: "A" }] }),
    "spec.containers[0].name",
    invalidPod(`spec.containers[0].name: Invalid value: "A": ${label}`),
  ],
  [
    "same container",
    pod({ containers: [main, main] }),
    "spec.containers[1].name",
    invalidPod('spec.containers[1].name: Duplicate value: "main"'),
  ],
  [
    "same init container",
    pod({ initContainers: [main] }),
    "spec.initContainers[0].name",
    invalidPod('spec.initContainers[0].name: Duplicate value: "main"'),
  ],
  [
    "no image",
    pod({ containers: [{ name: "main" }] }),
    "spec.containers[0].image",
    invalidPod("spec.containers[0].image: Required value"),
  ],
  [
    "blank image",
    pod({ containers: [{ name: "main", image: " a" }] }),
    "spec.containers[0].image",
    invalidPod('spec.containers[0].image: Invalid value: " a": must not have leading or trailing whitespace'),
  ],
  [
    "no port",
    port({}),
    "spec.containers[0].ports[0].containerPort",
    invalidPod("spec.containers[0].ports[0].containerPort: Required value"),
  ],
  [
    "port",
    port({ containerPort: 65_536 }),
    "spec.containers[0].ports[0].containerPort",
    invalidPod(
      "spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive",
    ),
  ],
  [
    "host port",
    port({ containerPort: 1, hostPort: -1 }),
    "spec.containers[0].ports[0].hostPort",
    invalidPod(
      "spec.containers[0].ports[0].hostPort: Invalid value: -1: must be between 1 and 65535, inclusive",
    ),
  ],
  [
    "protocol",
    port({ containerPort: 1, protocol: "tcp" }),
    "spec.containers[0].ports[0].protocol",
    invalidPod(
      'spec.containers[0].ports[0].protocol: Unsupported value: "tcp": supported values: "SCTP", "TCP", "UDP"',
    ),
  ],
  [
    "port name",
    port({ containerPort: 1, name: "0-9" }),
    "spec.containers[0].ports[0].name",
    invalidPod(
      'spec.containers[0].ports[0].name: Invalid value: "0-9": must contain at least one letter (a-z)',
    ),
  ],
  [
    "node name",
    pod({ nodeName: "N" }),
    "spec.nodeName",
    invalidPod(`spec.nodeName: Invalid value: "N": ${subdomain}`),
  ],
  [
    "restart policy",
    pod({ restartPolicy: "No" }),
    "spec.restartPolicy",
    invalidPod(
      'spec.restartPolicy: Unsupported value: "No": supported values: "Always", "OnFailure", "Never"',
    ),
  ],
  [
    "text for a list",
    pod({ containers: "main" }),
    "spec.containers",
    misshapenPod("string into Go struct field PodSpec.spec.containers of type []v1.Container"),
  ],
  [
    "number for a text",
    pod({}, { name: 1 }),
    "metadata.name",
    misshapenPod("number into Go struct field ObjectMeta.metadata.name of type string"),
  ],
  [
    "text for a number",
    port({ containerPort: "http" }),
    "spec.containers[0].ports[0].containerPort",
    misshapenPod(
      "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    ),
  ],
  [
    "fraction",
    port({ containerPort: 80.5 }),
    "spec.containers[0].ports[0].containerPort",
    misshapenPod(
      "number 80.5 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    ),
  ],
  [
    "list for a mapping",
    pod({}, {}, { metadata: [] }),
    "metadata",
    misshapenPod("array into Go struct field Pod.metadata of type v1.ObjectMeta"),
  ],
  [
    "boolean label",
    pod({}, { labels: { a: true } }),
    "metadata.labels.a",
    misshapenPod("bool into Go struct field ObjectMeta.metadata.labels of type string"),
  ],
  [
    "same address",
    node({
      addresses: [
        { type: "T", address: "a" },
        { type: "T", address: "a" },
      ],
    }),
    "status.addresses[1]",
    'Node "n" is invalid: status.addresses[1]: Duplicate value: {"type":"T","address":"a"}',
  ],
  [
    "address without text",
    node({ addresses: [{ type: "T" }] }),
    "status.addresses[0].address",
    'Node "n" is invalid: status.addresses[0].address: Required value',
  ],
  [
    "kubelet port",
    node({ daemonEndpoints: { kubeletEndpoint: { Port: 70_000 } } }),
    "status.daemonEndpoints.kubeletEndpoint.Port",
    'Node "n" is invalid: status.daemonEndpoints.kubeletEndpoint.Port: Invalid value: 70000: must be between 0 and 65535, inclusive',
  ],
  [
    "features",
    node({ declaredFeatures: [1] }),
    "status.declaredFeatures[0]",
    'Node in version "v1" cannot be handled as a Node: json: cannot unmarshal number into Go struct field NodeStatus.status.declaredFeatures of type string',
  ],
  [
    "port of a probe",
    pod({ containers: [{ ...main, livenessProbe: { httpGet: { port: 1.5 } } }] }),
    "spec.containers[0].livenessProbe.httpGet.port",
    misshapenPod(
      "number 1.5 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
    ),
  ],
  [
    "port of a gRPC probe by name",
    pod({ containers: [{ ...main, livenessProbe: { grpc: { port: "grpc" } } }] }),
    "spec.containers[0].livenessProbe.grpc.port",
    misshapenPod(
      "string into Go struct field GRPCAction.spec.containers.livenessProbe.ProbeHandler.grpc.port of type int32",
    ),
  ],
  [
    "namespace name",
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "a.b" } },
    "metadata.name",
    'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
  ],
];

describe("readObject refuses", () => {
  it.each(refused)("%s", (_, value, path, message) => {
    const reading = readObject(value);
    expect(reading.isValid).toBe(false);
    const problems = reading.isValid ? [] : reading.problems;
    expect(problems.map((problem) => [pathText(problem.path), problem.message])).toEqual([[path, message]]);
  });

  it("everything that is wrong at once", () => {
    const reading = readObject(pod({ containers: [{ name: "A" }] }, { name: "" }));
    expect(reading.isValid ? [] : reading.problems.map(({ path }) => pathText(path))).toEqual([
      "metadata.name",
      "spec.containers[0].name",
      "spec.containers[0].image",
    ]);
  });
});

describe("readObject", () => {
  it("sets the default namespace, drops nulls and keeps what it does not know", () => {
    const value = pod(
      { extra: { a: [null, { b: null, c: 1 }] }, nodeName: null },
      { creationTimestamp: null },
    );
    expect(readObject(value)).toEqual({
      isValid: true,
      warnings: [],
      unjudged: [],
      object: pod(
        { extra: { a: [null, { c: 1 }] }, restartPolicy: "Always" },
        { namespace: "default", generation: 1 },
      ),
    });
  });

  it("gives an object or problems for any data, and never throws", () => {
    const field = fc.oneof(fc.jsonValue(), fc.constant([main]));
    const anyObject = fc.record({
      apiVersion: fc.constant("v1"),
      kind: fc.constantFrom("Pod", "Node", "Namespace"),
      metadata: fc.oneof(
        fc.jsonValue(),
        fc.record({ name: field, labels: field, annotations: field }, { requiredKeys: [] }),
      ),
      spec: fc.oneof(
        fc.jsonValue(),
        fc.record({ containers: field, initContainers: field, nodeName: field }, { requiredKeys: [] }),
      ),
      status: fc.oneof(
        fc.jsonValue(),
        fc.record({ addresses: field, daemonEndpoints: field }, { requiredKeys: [] }),
      ),
    });
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), anyObject), (value) => {
        const reading = readObject(value);
        expect(reading.isValid || reading.problems.length > 0).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});

function pathText(path: readonly (string | number)[]): string {
  return path.reduce<string>(
    (text, part) => (typeof part === "number" ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`),
    "",
  );
}

describe("what an API server says of rarer fields", () => {
  // Each was found by test/cluster/validation/all-fields.test.ts.
  const template = {
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "main", image: "web:1" }], activeDeadlineSeconds: 1 },
  };
  const workload = (matchExpressions: unknown): object => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web" },
    spec: { selector: { matchLabels: { app: "web" }, ...(matchExpressions as object) }, template },
  });
  const textsOf = (object: object): string[] => {
    const reading = readObject(object, FeatureGates.defaults, "Strict");
    return reading.isValid ? [] : reading.problems.map(({ message }) => message);
  };

  it("calls a Deployment's template one of its ReplicaSet", () => {
    expect(textsOf(workload({}))).toEqual([
      'Deployment.apps "web" is invalid: spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
    ]);
  });

  it("prints a selector's requirements with key and operator", () => {
    expect(textsOf(workload({ matchExpressions: [{ values: [] }] }))).toContain(
      'Deployment.apps "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"web"},"matchExpressions":[{"key":"","operator":""}]}: invalid label selector',
    );
  });

  it.each([
    [{ resources: {} }, []],
    [{ lifecycle: { stopSignal: "SIGTERM" } }, []],
    [{ lifecycle: {} }, ["lifecycle"]],
    [{ resources: { limits: {} } }, ["resources"]],
    [{ livenessProbe: {} }, ["livenessProbe"]],
  ])("takes for absent in a debugging container what Go does: %j", (fields, forbidden) => {
    const ephemeralContainers = [{ name: "debug", image: "web:1", ...fields }];
    const texts = textsOf({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web" },
      spec: { containers: [{ name: "main", image: "web:1" }], ephemeralContainers },
    });
    const named = texts.flatMap(
      (text) => /\[0\]\.(\w+): Forbidden: cannot be set for an Ephemeral/.exec(text)?.[1] ?? [],
    );
    expect(named).toEqual(forbidden);
  });
});
