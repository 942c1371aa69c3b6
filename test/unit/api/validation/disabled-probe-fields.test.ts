import { describe, expect, it } from "vitest";
import type { Pod, PodSpec } from "../../../../src/api/objects.ts";
import type { ProbeHandler } from "../../../../src/api/probe-objects.ts";
import { probeFieldOptions } from "../../../../src/api/validation/disabled-probe-fields.ts";
import { FeatureGates } from "../../../../src/config/feature-gates.ts";
import { bothGates, defaultedPod, main, noGates, podStrategy } from "../example-pod.ts";

const h2c: ProbeHandler = { httpGet: { port: 80, protocol: "HTTP2" } };
const tls: ProbeHandler = { grpc: { port: 80, mode: "TLS" } };
const http: ProbeHandler = { httpGet: { port: 80 } };
const grpc: ProbeHandler = { grpc: { port: 80 } };

const lists = ["containers", "initContainers", "ephemeralContainers"] as const;
const probes = ["livenessProbe", "readinessProbe", "startupProbe"] as const;
const places = lists.flatMap((list) => probes.map((probe) => ({ list, probe })));

type Place = (typeof places)[number];

function podAt({ list, probe }: Place, handler: ProbeHandler): Pod {
  const container = { ...main, name: "probed", [probe]: handler };
  return defaultedPod({
    [list]: list === "containers" ? [main, container] : [container],
  } as Partial<PodSpec>);
}

function created(pod: Pod, gates: FeatureGates): PodSpec {
  return podStrategy.prepareForCreate(pod, gates).spec;
}

function updated(next: Pod, old: Pod, gates: FeatureGates): PodSpec {
  return podStrategy.prepareForUpdate(next, old, gates).spec;
}

/** `dropped` is the same handler without its new field. */
describe.each([
  { test: "TestDropGRPCContainerProbeTLS", gate: "GRPCContainerProbeTLS", used: tls, dropped: grpc },
  { test: "TestDropDisabledH2CContainerProbe", gate: "H2CContainerProbe", used: h2c, dropped: http },
])("$test", ({ gate, used, dropped }) => {
  const on = FeatureGates.parse(`${gate}=true`);
  const off = FeatureGates.parse("AllAlpha=true").with(`${gate}=false`);

  describe.each(places)("$list $probe", (place) => {
    const using = podAt(place, used);
    const notUsing = podAt(place, dropped);
    it("gate on: kept on create and update", () => {
      expect(created(using, on)).toEqual(using.spec);
      expect(updated(using, notUsing, on)).toEqual(using.spec);
      expect(updated(using, using, on)).toEqual(using.spec);
    });

    it("gate off: cleared on create and where the old object did not use it", () => {
      expect(created(using, off)).toEqual(notUsing.spec);
      expect(updated(using, notUsing, off)).toEqual(notUsing.spec);
      expect(updated(using, defaultedPod({}), off)).toEqual(notUsing.spec);
    });

    it("gate off: kept where the old object used it", () => {
      expect(updated(using, using, off)).toEqual(using.spec);
      expect(updated(notUsing, using, off)).toEqual(notUsing.spec);
    });
  });

  it("gate off: one use anywhere in the old object keeps every use in the new one", () => {
    const old = podAt({ list: "initContainers", probe: "startupProbe" }, used);
    for (const place of places) {
      const next = podAt(place, used);
      expect(updated(next, old, off)).toEqual(next.spec);
    }
  });

  it("gate off: hooks are cleared like probes, and count as uses", () => {
    const hooked = (postStart: ProbeHandler, preStop: ProbeHandler) =>
      defaultedPod({ containers: [{ ...main, lifecycle: { postStart, preStop } }] });
    expect(created(hooked(used, used), off)).toEqual(hooked(dropped, dropped).spec);
    expect(updated(hooked(used, dropped), hooked(dropped, used), off)).toEqual(hooked(used, dropped).spec);
  });

  it("an object that does not use the field is not even copied", () => {
    const pod = podAt({ list: "containers", probe: "livenessProbe" }, dropped);
    expect(created(pod, off)).toBe(pod.spec);
  });

  it("gate off: a value that would be refused is cleared before anybody reads it", () => {
    const bad: ProbeHandler =
      used === tls
        ? { grpc: { port: 80, mode: "Verify" } }
        : { httpGet: { port: 80, protocol: "HTTP3", scheme: "HTTPS", host: "h" } };
    const pod = podStrategy.prepareForCreate(podAt({ list: "containers", probe: "livenessProbe" }, bad), off);
    expect(podStrategy.validateCreate(pod, off)).toEqual([]);
  });
});

it("each gate clears its own field alone", () => {
  const pod = defaultedPod({ containers: [{ ...main, livenessProbe: h2c, readinessProbe: tls }] });
  const [container] = created(pod, FeatureGates.parse("H2CContainerProbe=true")).containers;
  expect(container?.livenessProbe?.httpGet?.protocol).toBe("HTTP2");
  expect(container?.readinessProbe?.grpc).toEqual({ port: 80, service: "" });
});

describe("TestGRPCContainerProbeTLSValidationOptions", () => {
  const place = { list: "containers", probe: "livenessProbe" } as const;
  it.each([
    { gate: "on", old: "absent", gates: bothGates, spec: undefined, allowed: true },
    { gate: "on", old: "without", gates: bothGates, spec: podAt(place, grpc).spec, allowed: true },
    { gate: "off", old: "absent", gates: noGates, spec: undefined, allowed: false },
    { gate: "off", old: "without", gates: noGates, spec: podAt(place, grpc).spec, allowed: false },
    { gate: "off", old: "with", gates: noGates, spec: podAt(place, tls).spec, allowed: true },
  ])("gate $gate, old object $old: $allowed", ({ gates, spec, allowed }) => {
    expect(probeFieldOptions(gates, spec).allowsGRPCMode).toBe(allowed);
  });

  it("follows the use of protocol alike", () => {
    expect(probeFieldOptions(noGates, undefined).allowsHTTPProtocol).toBe(false);
    expect(probeFieldOptions(noGates, podAt(place, h2c).spec).allowsHTTPProtocol).toBe(true);
    expect(probeFieldOptions(bothGates, undefined).allowsHTTPProtocol).toBe(true);
  });
});
