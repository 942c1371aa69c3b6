import { describe, expect, it } from "vitest";
import { readObject, unknownFields } from "../../../../src/api/strategy/read-object.ts";
import { strategies } from "../../../../src/api/strategy/strategies.ts";
import { kindShape } from "../../../../src/api/validation/kubernetes-shapes.ts";
import { type Shape, shapeProblem } from "../../../../src/api/validation/shape.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";

const kinds = strategies.flatMap(({ kind, apiVersion, shape, otherVersions }) => [
  { kind, apiVersion, shape },
  ...Object.entries(otherVersions).map(([version, { shape: other }]) => ({
    kind,
    apiVersion: version,
    shape: other,
  })),
]);

const INTENDED = [
  "Secret.data{}: string []uint8, not bytes []uint8",
  // Workloads share a shape.
  "DaemonSet.spec.replicas: unknown",
];

/** Where a shape written here differs from the type that Go has. */
function differences(ours: Shape, theirs: Shape, path: string): string[] {
  if (ours.json === "array" && theirs.json === "array")
    return differences(ours.items, theirs.items, `${path}[]`);
  if (ours.json === "map" && theirs.json === "map")
    return differences(ours.values, theirs.values, `${path}{}`);
  if (ours.json === "struct" && theirs.json === "struct") {
    return [
      ...(ours.go === theirs.go ? [] : [`${path}: ${ours.go}, not ${theirs.go}`]),
      ...Object.entries(ours.fields).flatMap(([name, field]) => {
        const known = Object.hasOwn(theirs.fields, name) ? theirs.fields[name] : undefined;
        return known === undefined
          ? [`${path}.${name}: unknown`]
          : differences(field, known, `${path}.${name}`);
      }),
    ];
  }
  return ours.json === theirs.json && ours.go === theirs.go
    ? []
    : [`${path}: ${ours.json} ${ours.go}, not ${theirs.json} ${theirs.go}`];
}

describe("shapes of Kubernetes' types", () => {
  it.each(kinds)("have each field that is read of a $kind of $apiVersion, with its type", ({
    kind,
    apiVersion,
    shape,
  }) => {
    const found = differences(shape, kindShape(apiVersion, kind), kind);
    expect(found.filter((line) => !INTENDED.includes(line))).toEqual([]);
  });

  it("leave maps alone, and end at a hundred", () => {
    const pod = kindShape("v1", "Pod");
    const labels = { anything: "goes" };
    expect(unknownFields({ metadata: { labels, annotations: labels } }, pod)).toEqual([]);
    const spec = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`f${index}`, 1]));
    expect(unknownFields({ spec }, pod)).toHaveLength(100);
  });

  it("find an unknown name in lists within lists", () => {
    const containers = [{ env: [{ name: "A", valueFrom: { fieldRef: { fieldpath: "x" } } }] }];
    expect(unknownFields({ spec: { containers } }, kindShape("v1", "Pod"))).toEqual([
      {
        path: ["spec", "containers", 0, "env", 0, "valueFrom", "fieldRef", "fieldpath"],
        message:
          'unknown field "spec.containers[0].env[0].valueFrom.fieldRef.fieldpath"; did you mean "fieldPath"?',
      },
    ]);
  });
});

const QUANTITY =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const into = (value: string, field: string, type: string): string =>
  `json: cannot unmarshal ${value} into Go struct field ${field} of type ${type}`;
const container = (fields: object): object => ({
  spec: { containers: [{ name: "main", image: "a", ...fields }] },
});

describe("fields that are not read here", () => {
  // Each text is the API server's: test/cluster/validation compares them.
  it.each([
    [container({ args: "serve" }), into("string", "Container.spec.containers.args", "[]string")],
    [container({ args: ["a", 5] }), into("number", "Container.spec.containers.args", "string")],
    [
      container({ imagePullPolicy: true }),
      into("bool", "Container.spec.containers.imagePullPolicy", "v1.PullPolicy"),
    ],
    [container({ resources: { limits: { cpu: "much" } } }), QUANTITY],
    [container({ resources: { limits: { cpu: "1Mb" } } }), QUANTITY],
    [container({ resources: { limits: { cpu: "1ki" } } }), "unable to parse quantity's suffix"],
    [container({ resources: { limits: { cpu: [] } } }), QUANTITY],
    [
      { spec: { volumes: [{ name: "a", hostPath: "/" }], containers: [] } },
      into("string", "VolumeSource.spec.volumes.VolumeSource.hostPath", "v1.HostPathVolumeSource").replace(
        "VolumeSource.spec",
        "Volume.spec",
      ),
    ],
    [{ spec: { tolerations: {} } }, into("object", "PodSpec.spec.tolerations", "[]v1.Toleration")],
    [
      { metadata: { managedFields: [{ time: "yesterday" }] } },
      'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ],
  ])("of a Pod are of their types: %j", (fields, message) => {
    const value = { apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, ...fields };
    expect(readObject(value, FeatureGates.defaults, "Strict")).toMatchObject({
      isValid: false,
      problems: [{ message: `Pod in version "v1" cannot be handled as a Pod: ${message}` }],
    });
  });

  it("are of no matter where they are ignored", () => {
    const value = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "web" },
      ...container({ args: "serve" }),
    };
    expect(readObject(value).isValid).toBe(true);
  });

  it.each(["", "1", "1.5Gi", "+", ".", "-1e3", "2E-3", "1E", 5, 1.5, null])("take the quantity %j", (cpu) => {
    const problem = shapeProblem(container({ resources: { limits: { cpu } } }), kindShape("v1", "Pod"));
    expect(problem).toEqual(cpu === "" ? { path: expect.anything(), message: QUANTITY } : undefined);
  });

  it.each([
    ["YWJj", undefined],
    ["YWI=\n", undefined],
    ["YW\nI=", undefined],
    ["YQ==", undefined],
    ["YQ=", 3],
    ["YQ", 0],
    ["YWJjYQ", 4],
    ["YQ=a", 2],
    ["Y=", 1],
    ["YQ==a", 4],
    ["Y Q=", 1],
    ["YWJjü", 4],
  ])("take base64 as Go's decoder does: %j", (text, at) => {
    const problem = shapeProblem({ data: { key: text } }, kindShape("v1", "Secret"));
    expect(problem?.message).toBe(at === undefined ? undefined : `illegal base64 data at input byte ${at}`);
  });

  it.each([
    ["2026-11-23T01:02:03.000001Z", undefined],
    ["2026-11-23T01:02:03Z", 'cannot parse "Z" as ".000000"'],
    ["2026-11-23T01:02:03.0000017Z", 'cannot parse "7Z" as "Z07:00"'],
  ])("take times of leases to six digits: %j", (acquireTime, message) => {
    const problem = shapeProblem({ spec: { acquireTime } }, kindShape("coordination.k8s.io/v1", "Lease"));
    expect(problem?.message).toBe(
      message &&
        `parsing time ${JSON.stringify(acquireTime)} as "2006-01-02T15:04:05.000000Z07:00": ${message}`,
    );
  });
});
