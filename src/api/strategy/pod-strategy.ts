import type { FeatureGates } from "../../config/feature-gates.ts";
import { withPodSpecDefaults } from "../defaulting/default-pod-spec.ts";
import type { Pod } from "../objects.ts";
import { dropDisabledProbeFields, probeFieldOptions } from "../validation/disabled-probe-fields.ts";
import { podShape } from "../validation/object-shapes.ts";
import { validateMetadataUpdate } from "../validation/validate-metadata-update.ts";
import { validatePod } from "../validation/validate-pod.ts";
import { podSpecUpdateErrors } from "../validation/validate-pod-update.ts";
import { withFirstGeneration, withNextGeneration } from "./generation.ts";
import { keepingStatus } from "./plain-strategy.ts";
import type { Strategy } from "./strategy.ts";

export const podStrategy: Strategy<Pod> = {
  kind: "Pod",
  apiVersion: "v1",
  resource: "pods",
  isNamespaced: true,
  shape: podShape,
  otherVersions: {},
  withDefaults: (pod) => ({ ...pod, spec: withPodSpecDefaults(pod.spec) }),
  prepareForCreate: (pod, gates) => ({
    ...withFirstGeneration(withoutDisabledFields(pod, undefined, gates)),
    status: { phase: "Pending" },
  }),
  validateCreate: (pod, gates) => validatePod(pod, probeFieldOptions(gates, undefined)),
  prepareForUpdate: (next, old, gates) =>
    withNextGeneration(keepingStatus(withoutDisabledFields(next, old, gates), old), old),
  validateUpdate: (next, old, gates) => [
    ...validateMetadataUpdate(next.metadata, old.metadata),
    ...validatePod(next, probeFieldOptions(gates, old.spec)),
    ...podSpecUpdateErrors(next, old),
  ],
  warnings: () => [],
};

function withoutDisabledFields(next: Pod, old: Pod | undefined, gates: FeatureGates): Pod {
  return { ...next, spec: dropDisabledProbeFields(next.spec, old?.spec, gates) };
}
