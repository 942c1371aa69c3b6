import type { Container, PodSpec } from "../objects.ts";
import { withLifecycleDefaults, withProbeDefaults } from "./default-probe.ts";

/** What the API server fills in of the fields that Sluice reads, in a pod or in a template of pods. */
export function withPodSpecDefaults(spec: PodSpec): PodSpec {
  const { containers, initContainers, ephemeralContainers } = spec;
  return {
    ...spec,
    ...(containers && { containers: containers.map(withContainerDefaults) }),
    ...(initContainers && { initContainers: initContainers.map(withContainerDefaults) }),
    ...(ephemeralContainers && { ephemeralContainers: ephemeralContainers.map(withContainerDefaults) }),
    restartPolicy: spec.restartPolicy || "Always",
  };
}

/** Expects a list as it was decoded, where an entry may be null. */
function withContainerDefaults(container: Container | null): Container {
  if (container === null) return {} as Container;
  const { ports, livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
  return {
    ...container,
    ...(ports && { ports: ports.map((port) => ({ ...port, protocol: port?.protocol || "TCP" })) }),
    ...(livenessProbe && { livenessProbe: withProbeDefaults(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: withProbeDefaults(readinessProbe) }),
    ...(startupProbe && { startupProbe: withProbeDefaults(startupProbe) }),
    ...(lifecycle && { lifecycle: withLifecycleDefaults(lifecycle) }),
  };
}
