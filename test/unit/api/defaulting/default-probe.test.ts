import { describe, expect, it } from "vitest";
import type { Probe } from "../../../../src/api/probe-objects.ts";
import { defaultedPod, main, podWith } from "../example-pod.ts";

const completed = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

function defaulted(livenessProbe: Probe): Probe | undefined {
  return podWith({ livenessProbe }).spec.containers[0]?.livenessProbe;
}

/** After pkg/apis/core/v1/defaults_test.go. */
describe("defaults of probes", () => {
  it("TestSetDefaultProbe: seconds and thresholds, zero counting as absent", () => {
    const zeros = { timeoutSeconds: 0, periodSeconds: 0, successThreshold: 0, failureThreshold: 0 };
    const exec = { command: ["true"] };
    expect(defaulted({ exec })).toEqual({ exec, ...completed });
    expect(defaulted({ exec, ...zeros })).toEqual({ exec, ...completed });
    const given = { exec, timeoutSeconds: 2, periodSeconds: 3, successThreshold: 4, failureThreshold: 5 };
    expect(defaulted(given)).toEqual(given);
    expect(defaulted({ exec, initialDelaySeconds: 0 })).toEqual({
      exec,
      initialDelaySeconds: 0,
      ...completed,
    });
  });

  it("httpGet: path and scheme, and no protocol", () => {
    expect(defaulted({ httpGet: { port: 80 } })?.httpGet).toEqual({ port: 80, path: "/", scheme: "HTTP" });
    const given = { port: "http", path: "?x", scheme: "HTTPS", host: "h", protocol: "HTTP2" };
    expect(defaulted({ httpGet: given })?.httpGet).toEqual(given);
  });

  it("grpc: an empty service", () => {
    expect(defaulted({ grpc: { port: 1 } })?.grpc).toEqual({ port: 1, service: "" });
    expect(defaulted({ grpc: { port: 1, service: "s" } })?.grpc).toEqual({ port: 1, service: "s" });
  });

  it.each([["TLS"], ["Plaintext"]])("TestSetDefaultProbeGRPCMode: %s stays", (mode) => {
    expect(defaulted({ grpc: { port: 1, mode } })?.grpc).toEqual({ port: 1, mode, service: "" });
  });

  it("TestSetDefaultProbeGRPCMode: an absent mode stays absent", () => {
    expect(defaulted({ grpc: { port: 1 } })?.grpc).not.toHaveProperty("mode");
  });

  it("hold for probes and hooks of every container", () => {
    const sidecar = {
      ...main,
      readinessProbe: { tcpSocket: { port: 1 } },
      startupProbe: { tcpSocket: { port: 1 } },
      lifecycle: { postStart: { httpGet: { port: 1 } }, preStop: { sleep: { seconds: 1 } } },
    };
    const { initContainers, ephemeralContainers } = defaultedPod({
      initContainers: [sidecar],
      ephemeralContainers: [sidecar],
    }).spec;
    for (const [container] of [initContainers ?? [], ephemeralContainers ?? []]) {
      expect(container?.readinessProbe).toMatchObject(completed);
      expect(container?.startupProbe).toMatchObject(completed);
      expect(container?.lifecycle).toEqual({
        postStart: { httpGet: { port: 1, path: "/", scheme: "HTTP" } },
        preStop: { sleep: { seconds: 1 } },
      });
    }
  });
});
