import { describe, expect, it } from "vitest";
import { fieldErrorText } from "../../../../src/api/field-errors.ts";
import type { Container, Pod } from "../../../../src/api/objects.ts";
import type { LifecycleHandler, Probe, ProbeHandler } from "../../../../src/api/probe-objects.ts";
import { bothGates, defaultedPod, main, noGates, podStrategy, podWith } from "../example-pod.ts";

const exec = { command: ["true"] };
const portRange = "must be between 1 and 65535, inclusive";
const notNegative = "must be greater than or equal to 0";
const oneHandler = "Forbidden: may not specify more than 1 handler type";

function errorsOf(pod: Pod): string[] {
  return podStrategy.validateCreate(pod, bothGates).map(fieldErrorText);
}

/** Without the container's path. */
function probeErrors(name: "livenessProbe" | "readinessProbe" | "startupProbe", probe: Probe): string[] {
  return errorsOf(podWith({ [name]: probe })).map((text) => text.replace(`spec.containers[0].${name}`, "p"));
}

function handlerErrors(handler: object): string[] {
  return probeErrors("readinessProbe", handler as Probe);
}

/** After pkg/apis/core/validation/validation_test.go. */
describe("TestValidateHandler", () => {
  const accepted: ProbeHandler[] = [
    { exec },
    { httpGet: { port: 1 } },
    { httpGet: { port: 65_535, path: "no/slash?q=%zz", host: "anything at all", scheme: "HTTPS" } },
    {
      httpGet: {
        port: "http",
        httpHeaders: [
          { name: "X-A", value: "\n" },
          { name: "x-a", value: "" },
        ],
      },
    },
    { tcpSocket: { port: "a-1", host: "h" } },
    { grpc: { port: 1 } },
    { grpc: { port: 1, service: "s", mode: "TLS" } },
  ];
  it.each(accepted.map((handler) => [handler]))("accepts %j", (handler) => {
    expect(handlerErrors(handler)).toEqual([]);
  });

  const letters = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
  const oneLetter = "must contain at least one letter (a-z)";
  const header =
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
  const refused: [handler: object, ...errors: string[]][] = [
    [{}, "p: Required value: must specify a handler type"],
    [{ exec, httpGet: { port: 0 } }, `p.httpGet: ${oneHandler}`],
    [
      { exec: {}, httpGet: { port: 0 }, tcpSocket: { port: 0 }, grpc: { port: 0 } },
      "p.exec.command: Required value",
      `p.httpGet: ${oneHandler}`,
      `p.tcpSocket: ${oneHandler}`,
      `p.grpc: ${oneHandler}`,
    ],
    [{ exec: { command: [] } }, "p.exec.command: Required value"],
    [{ httpGet: {} }, `p.httpGet.port: Invalid value: 0: ${portRange}`],
    [{ httpGet: { port: 65_536 } }, `p.httpGet.port: Invalid value: 65536: ${portRange}`],
    [{ httpGet: { port: -1 } }, `p.httpGet.port: Invalid value: -1: ${portRange}`],
    [
      { httpGet: { port: "" } },
      `p.httpGet.port: Invalid value: "": ${letters}`,
      `p.httpGet.port: Invalid value: "": ${oneLetter}`,
    ],
    [{ httpGet: { port: "80" } }, `p.httpGet.port: Invalid value: "80": ${oneLetter}`],
    [
      { httpGet: { port: "a--b" } },
      'p.httpGet.port: Invalid value: "a--b": must not contain consecutive hyphens',
    ],
    [{ httpGet: { port: "-a" } }, 'p.httpGet.port: Invalid value: "-a": must not begin or end with a hyphen'],
    [
      { httpGet: { port: "a".repeat(16) } },
      `p.httpGet.port: Invalid value: "${"a".repeat(16)}": must be no more than 15 characters`,
    ],
    [
      { httpGet: { port: 1, scheme: "http" } },
      'p.httpGet.scheme: Unsupported value: "http": supported values: "HTTP", "HTTPS"',
    ],
    [
      { httpGet: { port: 1, httpHeaders: [{ name: "X_A", value: "" }, { name: "A" }, {}] } },
      `p.httpGet.httpHeaders: Invalid value: "X_A": ${header}`,
      `p.httpGet.httpHeaders: Invalid value: "": ${header}`,
    ],
    [{ tcpSocket: { port: 0 } }, `p.tcpSocket.port: Invalid value: 0: ${portRange}`],
    [
      { tcpSocket: { port: "A" } },
      `p.tcpSocket.port: Invalid value: "A": ${letters}`,
      `p.tcpSocket.port: Invalid value: "A": ${oneLetter}`,
    ],
  ];
  it.each(refused)("refuses %j", (handler, ...errors) => {
    expect(handlerErrors(handler)).toEqual(errors);
  });

  it("says that a path is missing where nothing was defaulted", () => {
    const bare = { ...main, readinessProbe: { httpGet: { port: 1 } } };
    const pod = { ...defaultedPod({}), spec: { containers: [bare] } };
    expect(errorsOf(pod)).toEqual([
      "spec.containers[0].readinessProbe.httpGet.path: Required value",
      'spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "": supported values: "HTTP", "HTTPS"',
    ]);
  });
});

describe("TestValidateGRPCAction", () => {
  const validate = (grpc: object, gates = bothGates) =>
    podStrategy
      .validateCreate(podWith({ livenessProbe: { grpc } as Probe }), gates)
      .map((error) => fieldErrorText(error).replace("spec.containers[0].livenessProbe.grpc", "grpc"));

  it.each([
    { port: 1 },
    { port: 65_535, mode: "TLS" },
    { port: 1, mode: "Plaintext" },
  ])("accepts %j", (grpc) => {
    expect(validate(grpc)).toEqual([]);
  });

  it.each([
    [{}, `grpc.port: Invalid value: 0: ${portRange}`],
    [{ port: 0 }, `grpc.port: Invalid value: 0: ${portRange}`],
    [{ port: 65_536 }, `grpc.port: Invalid value: 65536: ${portRange}`],
    [
      { port: 1, mode: "Verify" },
      'grpc.mode: Unsupported value: "Verify": supported values: "Plaintext", "TLS"',
    ],
    [{ port: 1, mode: "" }, 'grpc.mode: Unsupported value: "": supported values: "Plaintext", "TLS"'],
  ])("refuses %j", (grpc, error) => {
    expect(validate(grpc)).toEqual([error]);
  });

  it.each([
    "TLS",
    "Plaintext",
    "Verify",
  ])("forbids %s where the gate is off and nothing dropped it", (mode) => {
    expect(validate({ port: 1, mode }, noGates)).toEqual([
      "grpc.mode: Forbidden: only supported when the GRPCContainerProbeTLS feature gate is enabled",
    ]);
  });
});

describe("validation of httpGet.protocol (KEP-5999)", () => {
  const validate = (httpGet: object, gates = bothGates) =>
    podStrategy
      .validateCreate(podWith({ livenessProbe: { httpGet } as Probe }), gates)
      .map((error) => fieldErrorText(error).replace("spec.containers[0].livenessProbe.httpGet", "httpGet"));
  const headers = [
    { name: "Host", value: "a" },
    { name: "X-A", value: "1" },
    { name: "X-A", value: "2" },
  ];

  it.each([
    { port: 8080, path: "/readyz", protocol: "HTTP2", httpHeaders: headers },
    { port: "http", protocol: "HTTP2", scheme: "HTTP", host: "" },
    { port: 1, protocol: "HTTP1", scheme: "HTTPS", host: "h" },
    { port: 1, scheme: "HTTPS", host: "h" },
    { port: 1, host: "h" },
  ])("accepts %j", (httpGet) => {
    expect(validate(httpGet)).toEqual([]);
  });

  it.each([
    [{ protocol: "HTTP2", scheme: "HTTPS" }, '"HTTP2": HTTP2 cannot be combined with scheme HTTPS'],
    [{ protocol: "HTTP2", host: "h" }, '"HTTP2": HTTP2 cannot be combined with host'],
  ])("refuses %j", (fields, text) => {
    expect(validate({ port: 1, ...fields })).toEqual([`httpGet.protocol: Invalid value: ${text}`]);
  });

  it.each(["HTTP3", "http2", "h2c", ""])("does not know %j", (protocol) => {
    expect(validate({ port: 1, protocol })).toEqual([
      `httpGet.protocol: Unsupported value: "${protocol}": supported values: "HTTP1", "HTTP2"`,
    ]);
  });

  it("forbids it where the gate is off and nothing dropped it", () => {
    expect(validate({ port: 1, protocol: "HTTP1" }, noGates)).toEqual([
      "httpGet.protocol: Forbidden: only supported when the H2CContainerProbe feature gate is enabled",
    ]);
  });
});

describe("TestValidateProbe", () => {
  const negative = ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold"] as const;
  it.each(negative)("%s is not negative", (name) => {
    expect(probeErrors("livenessProbe", { exec, [name]: -1 })).toEqual([
      `p.${name}: Invalid value: -1: ${notNegative}`,
    ]);
  });

  it("readiness may want several successes, and no negative number of them", () => {
    expect(probeErrors("readinessProbe", { exec, successThreshold: 3 })).toEqual([]);
    expect(probeErrors("readinessProbe", { exec, successThreshold: -1 })).toEqual([
      `p.successThreshold: Invalid value: -1: ${notNegative}`,
    ]);
  });

  it.each(["livenessProbe", "startupProbe"] as const)("the first success of a %s counts", (name) => {
    expect(probeErrors(name, { exec, successThreshold: 1 })).toEqual([]);
    expect(probeErrors(name, { exec, successThreshold: 2 })).toEqual([
      "p.successThreshold: Invalid value: 2: must be 1",
    ]);
    expect(probeErrors(name, { exec, successThreshold: -1 })).toEqual([
      `p.successThreshold: Invalid value: -1: ${notNegative}`,
      "p.successThreshold: Invalid value: -1: must be 1",
    ]);
  });

  it.each(["livenessProbe", "startupProbe"] as const)("a %s may set the grace period, above 0", (name) => {
    expect(probeErrors(name, { exec, terminationGracePeriodSeconds: 1 })).toEqual([]);
    for (const seconds of [0, -1]) {
      expect(probeErrors(name, { exec, terminationGracePeriodSeconds: seconds })).toEqual([
        `p.terminationGracePeriodSeconds: Invalid value: ${seconds}: must be greater than 0`,
      ]);
    }
  });

  it("a readiness probe ends nothing, so it sets no grace period", () => {
    expect(probeErrors("readinessProbe", { exec, terminationGracePeriodSeconds: 1 })).toEqual([
      "p.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
    ]);
  });
});

describe("probes and hooks by sort of container", () => {
  const probed: Partial<Container> = {
    livenessProbe: { exec },
    readinessProbe: { exec },
    startupProbe: { exec },
    lifecycle: { preStop: { exec } },
  };
  const other = { ...main, name: "other", ...probed };
  const four = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

  it("TestValidateContainers: any container may have them", () => {
    expect(errorsOf(podWith(probed))).toEqual([]);
  });

  it("TestValidateInitContainers: an init container only with restartPolicy Always", () => {
    expect(errorsOf(defaultedPod({ initContainers: [{ ...other, restartPolicy: "Always" }] }))).toEqual([]);
    expect(errorsOf(defaultedPod({ initContainers: [other] }))).toEqual(
      four.map(
        (name) =>
          `spec.initContainers[0].${name}: Forbidden: may not be set for init containers without restartPolicy=Always`,
      ),
    );
  });

  it("TestValidateInitContainers: those of a sidecar are checked as any", () => {
    const sidecar = { ...main, name: "s", restartPolicy: "Always", startupProbe: { exec: {} } };
    expect(errorsOf(defaultedPod({ initContainers: [sidecar] }))).toEqual([
      "spec.initContainers[0].startupProbe.exec.command: Required value",
    ]);
  });

  it("TestValidateEphemeralContainers: an ephemeral container never", () => {
    const ephemeral = { ...other, ports: [{ containerPort: 1 }] };
    const names = ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle"];
    expect(errorsOf(defaultedPod({ ephemeralContainers: [ephemeral] }))).toEqual(
      names.map(
        (name) => `spec.ephemeralContainers[0].${name}: Forbidden: cannot be set for an Ephemeral Container`,
      ),
    );
  });
});

describe("hooks", () => {
  const hookErrors = (postStart: LifecycleHandler) => errorsOf(podWith({ lifecycle: { postStart } }));
  it("hold one of exec, httpGet, tcpSocket and sleep", () => {
    const handlers = [
      { exec },
      { httpGet: { port: 1 } },
      { tcpSocket: { port: 1 } },
      { sleep: { seconds: 30 } },
    ];
    expect(handlers.flatMap(hookErrors)).toEqual([]);
    expect(hookErrors({})).toEqual([
      "spec.containers[0].lifecycle.postStart: Required value: must specify a handler type",
    ]);
    expect(hookErrors({ exec, sleep: { seconds: -1 } })).toEqual([
      `spec.containers[0].lifecycle.postStart.sleep: ${oneHandler}`,
    ]);
  });

  it("sleep within the pod's grace period", () => {
    expect(hookErrors({ sleep: { seconds: 31 } })).toEqual([
      "spec.containers[0].lifecycle.postStart.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
    ]);
  });
});
