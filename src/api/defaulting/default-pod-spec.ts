import type { Container, PodSpec } from "../objects.ts";
import { withLifecycleDefaults, withProbeDefaults } from "./default-probe.ts";

/**
 * Applies the API server's defaults to the fields that Sluice reads, in a pod or a pod template.
 */
export function withPodSpecDefaults(spec: PodSpec): PodSpec {
  const { containers = [], initContainers, ephemeralContainers } = spec;
  return {
    ...spec,
    containers: containers.map(withContainerDefaults),
    ...(initContainers && { initContainers: initContainers.map(withContainerDefaults) }),
    ...(ephemeralContainers && { ephemeralContainers: ephemeralContainers.map(withContainerDefaults) }),
    restartPolicy: spec.restartPolicy || "Always",
  };
}

function withContainerDefaults(container: Container): Container {
  const { ports, livenessProbe, readinessProbe, startupProbe, lifecycle } = container;
  return {
    ...container,
    ...(ports && { ports: ports.map((port) => ({ ...port, protocol: port.protocol || "TCP" })) }),
    ...(livenessProbe && { livenessProbe: withProbeDefaults(livenessProbe) }),
    ...(readinessProbe && { readinessProbe: withProbeDefaults(readinessProbe) }),
    ...(startupProbe && { startupProbe: withProbeDefaults(startupProbe) }),
    ...(lifecycle && { lifecycle: withLifecycleDefaults(lifecycle) }),
  };
}
