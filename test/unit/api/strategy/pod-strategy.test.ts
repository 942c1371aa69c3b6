import { describe, expect, it } from "vitest";
import { fieldErrorText } from "../../../../src/api/field-errors.ts";
import type { Pod, PodSpec } from "../../../../src/api/objects.ts";
import { prepareUpdate } from "../../../../src/api/strategy/read-object.ts";
import type { Strategy } from "../../../../src/api/strategy/strategy.ts";
import { prepareStatusUpdate } from "../../../support/api-server/prepare-write.ts";
import { bothGates, defaultedPod, main, noGates, podStrategy, podWith } from "../example-pod.ts";

const otherFields =
  "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";

function update(next: Pod, old: Pod, gates = noGates): string[] {
  return prepareUpdate(podStrategy as Strategy, next, old, gates).errors.map(fieldErrorText);
}

const specs = (next: Partial<PodSpec>, old: Partial<PodSpec>) =>
  update(defaultedPod(next), defaultedPod(old));

/** After TestValidatePodUpdate of pkg/apis/core/validation/validation_test.go. */
describe("a pod update", () => {
  it("may change images", () => {
    const image = { ...main, image: "web:2" };
    expect(specs({ containers: [image] }, {})).toEqual([]);
    const init = (value: string) => ({ initContainers: [{ ...main, name: "i", image: value }] });
    expect(specs(init("b"), init("a"))).toEqual([]);
  });

  it("may set the deadline, and bring it nearer", () => {
    expect(specs({ activeDeadlineSeconds: 9 }, {})).toEqual([]);
    expect(specs({ activeDeadlineSeconds: 9 }, { activeDeadlineSeconds: 10 })).toEqual([]);
    expect(specs({ activeDeadlineSeconds: 10 }, { activeDeadlineSeconds: 9 })).toEqual([
      "spec.activeDeadlineSeconds: Invalid value: 10: must be less than or equal to previous value",
    ]);
    expect(specs({}, { activeDeadlineSeconds: 9 })).toEqual([
      "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value",
    ]);
    expect(specs({ activeDeadlineSeconds: -1 }, {})).toEqual([
      "spec.activeDeadlineSeconds: Invalid value: -1: must be between 1 and 2147483647, inclusive",
      "spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    ]);
  });

  it("may add tolerations and change their seconds", () => {
    const one = { key: "a", operator: "Exists", tolerationSeconds: 1 };
    expect(
      specs({ tolerations: [{ ...one, tolerationSeconds: 2 }, { key: "b" }] }, { tolerations: [one] }),
    ).toEqual([]);
    expect(specs({ tolerations: [] }, { tolerations: [one] })).toEqual([
      "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
    ]);
  });

  it("may end a negative grace period with 1", () => {
    expect(specs({ terminationGracePeriodSeconds: 1 }, { terminationGracePeriodSeconds: -1 })).toEqual([]);
    expect(specs({ terminationGracePeriodSeconds: 2 }, { terminationGracePeriodSeconds: -1 })).toEqual([
      otherFields,
    ]);
  });

  it("may not add or remove containers", () => {
    expect(specs({ containers: [main, { ...main, name: "b" }] }, {})).toEqual([
      "spec.containers: Forbidden: pod updates may not add or remove containers",
    ]);
    expect(specs({ initContainers: [{ ...main, name: "b" }] }, {})).toEqual([
      "spec.initContainers: Forbidden: pod updates may not add or remove containers",
    ]);
  });

  it("may change nothing else: no probe, no node", () => {
    expect(specs({ nodeName: "n" }, {})).toEqual([otherFields]);
    const probe = (port: number) => podWith({ livenessProbe: { tcpSocket: { port } } });
    expect(update(probe(2), probe(1))).toEqual([otherFields]);
  });

  it("KEP-5999: an object with protocol HTTP2 keeps it, with the gate on and off", () => {
    const pod = podWith({ livenessProbe: { httpGet: { port: 1, protocol: "HTTP2" } } });
    const labelled = { ...pod, metadata: { ...pod.metadata, labels: { a: "b" } } };
    for (const gates of [bothGates, noGates]) {
      const { object, errors } = prepareUpdate(podStrategy as Strategy, labelled, pod, gates);
      expect(errors).toEqual([]);
      expect(object.spec).toEqual(pod.spec);
    }
  });

  it("leaves the status, and an update of the status leaves the rest", () => {
    const old = { ...defaultedPod({}), status: { phase: "Running" } };
    const next = { ...old, status: { phase: "Failed" } };
    expect(prepareUpdate(podStrategy as Strategy, next, old, noGates).object).toEqual(old);
    const moved = { ...next, spec: { ...next.spec, nodeName: "n" } };
    expect(prepareStatusUpdate(podStrategy as Strategy, moved, old)).toMatchObject({
      object: { spec: old.spec, status: { phase: "Failed" } },
      errors: [],
    });
    const bad = { ...old, status: { phase: "Odd" } };
    expect(prepareStatusUpdate(podStrategy as Strategy, bad, old)?.errors.map(fieldErrorText)).toEqual([
      'status.phase: Unsupported value: "Odd": supported values: "Failed", "Pending", "Running", "Succeeded", "Unknown"',
    ]);
  });
});
