import { describe, expect, it } from "vitest";
import { readObject } from "../../../../src/api/strategy/read-object.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";

// The bounds under test.
const MAX_SECRET_BYTES = 1024 * 1024;
const MAX_ENDPOINTS_OF_SLICE = 1_000;

const read = (object: object) => readObject({ metadata: { name: "x", ...metadataOf(object) }, ...object });
const metadataOf = (object: object) => (object as { metadata?: object }).metadata;
const problemsOf = (object: object): string[] => {
  const reading = read(object);
  return reading.isValid
    ? []
    : reading.problems.map(({ message }) => message.replace(/^.*? is invalid: /, ""));
};
const objectOf = (object: object) => {
  const reading = read(object);
  if (!reading.isValid) throw new Error(reading.problems[0]?.message);
  return reading.object;
};

const service = (spec: object = {}) => ({
  apiVersion: "v1",
  kind: "Service",
  spec: { ports: [{ port: 80 }], ...spec },
});
const slice = (more: object = {}) => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  addressType: "IPv4",
  endpoints: [{ addresses: ["10.0.0.1"] }],
  ...more,
});
const secret = (more: object) => ({ apiVersion: "v1", kind: "Secret", ...more });
const lease = (spec: object) => ({ apiVersion: "coordination.k8s.io/v1", kind: "Lease", spec });

it("a Service's name begins with a letter where RelaxedServiceNameValidation is off", () => {
  const named = { ...service(), metadata: { name: "1x" } };
  const strict = readObject(named, FeatureGates.parse("RelaxedServiceNameValidation=false"));
  expect(readObject(named).isValid).toBe(true);
  expect(strict.isValid ? [] : strict.problems.map(({ message }) => message)).toEqual([
    expect.stringContaining('metadata.name: Invalid value: "1x": a DNS-1035 label must'),
  ]);
});

describe("Services and what belongs to them", () => {
  it.each([
    service({
      ports: [
        { name: "a", port: 80, targetPort: "http" },
        { name: "b", port: 443, targetPort: 8443 },
      ],
    }),
    service({ clusterIP: "None", ports: [] }),
    service({ type: "ExternalName", externalName: "db.example.com.", ports: [] }),
    slice({ ports: [{ port: 8080 }, { name: "b" }] }),
    slice({ addressType: "FQDN", endpoints: [{ addresses: ["a.example"] }] }),
    slice({ addressType: "IPv6", endpoints: [{ addresses: ["fd00::1"] }] }),
    secret({ type: "kubernetes.io/tls", data: { "tls.crt": "", "tls.key": "QQ==" } }),
    lease({ holderIdentity: "a", leaseDurationSeconds: 15, leaseTransitions: 0 }),
  ])("%j is valid", (object) => {
    expect(problemsOf(object)).toEqual([]);
  });

  it.each<[object, (string | RegExp)[]]>([
    [service({ ports: [] }), ["spec.ports: Required value"]],
    [service({ type: "Other" }), [/^spec\.type: Unsupported value: "Other": supported values: "ClusterIP"/]],
    [service({ type: "ExternalName", ports: [] }), ["spec.externalName: Required value"]],
    [
      service({ ports: [{ port: 0 }, { name: "b", port: 1, protocol: "X", targetPort: "-" }] }),
      [
        "spec.ports[0].name: Required value",
        "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive",
        "spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive",
        'spec.ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        'spec.ports[1].targetPort: Invalid value: "-": must contain at least one letter (a-z)',
        'spec.ports[1].targetPort: Invalid value: "-": must not begin or end with a hyphen',
      ],
    ],
    [
      service({
        ports: [
          { name: "a", port: 1 },
          { name: "a", port: 2 },
        ],
      }),
      ['spec.ports[1].name: Duplicate value: "a"'],
    ],
    [
      { ...service(), metadata: { name: "-x" } },
      [/^metadata\.name: Invalid value: "-x": a lowercase RFC 1123 label must/],
    ],
    [
      service({ ports: [{ port: "80" }] }),
      [/cannot unmarshal string into Go struct field ServicePort\.spec\.ports\.port of type int32/],
    ],
    [slice({ addressType: "" }), ["addressType: Required value"]],
    [slice({ addressType: "X" }), [/^addressType: Unsupported value: "X"/]],
    [slice({ endpoints: [{}] }), ["endpoints[0].addresses: Required value"]],
    [
      slice({ endpoints: [{ addresses: ["fd00::1"] }], ports: [{}, {}] }),
      [
        'ports[1].name: Duplicate value: ""',
        'endpoints[0].addresses: Invalid value: "fd00::1": must be an IPv4 address',
      ],
    ],
    [
      slice({ endpoints: Array(MAX_ENDPOINTS_OF_SLICE + 1).fill({ addresses: ["10.0.0.1"] }) }),
      ["endpoints: Invalid value: 1001: must have at most 1000 items"],
    ],
    [
      secret({ type: "kubernetes.io/tls" }),
      ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
    ],
    [
      secret({ data: { a: "a secret" } }),
      ['data[a]: Invalid value: "<secret contents omitted>": must be base64'],
    ],
    [secret({ data: { "a b": "" } }), [/^data\[a b\]: Invalid value: "a b": a valid config key must/]],
    [
      secret({ data: { a: Buffer.alloc(MAX_SECRET_BYTES + 1).toString("base64") } }),
      ["data: Too long: may not be more than 1048576 bytes"],
    ],
    [
      lease({ leaseDurationSeconds: 0, leaseTransitions: -1 }),
      [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
      ],
    ],
  ])("refuses %#", (object, messages) => {
    expect(problemsOf(object)).toEqual(
      messages.map((message) => (typeof message === "string" ? message : expect.stringMatching(message))),
    );
  });

  it("fills in what is absent", () => {
    expect(objectOf(service()).spec).toEqual({
      type: "ClusterIP",
      sessionAffinity: "None",
      ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
    });
    expect(objectOf(slice({ ports: [{ port: 1 }] })).ports).toEqual([{ port: 1, name: "", protocol: "TCP" }]);
    const read = objectOf(secret({ data: { a: "QQ==", b: "Qg==" }, stringData: { a: "new" } }));
    expect(read).toMatchObject({
      type: "Opaque",
      data: { a: Buffer.from("new").toString("base64"), b: "Qg==" },
    });
    expect(read).not.toHaveProperty("stringData");
  });
});
