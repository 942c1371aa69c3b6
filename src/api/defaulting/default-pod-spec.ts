import type { Container, PodSpec } from "../objects.ts";
import type { HTTPGetAction, Lifecycle, Probe } from "../probe-objects.ts";

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

/**
 * SetDefaults_Probe of k8s.io/kubernetes: zero counts as absent. `protocol` and `mode` have no
 * default.
 */
function withProbeDefaults(probe: Probe): Probe {
  const { httpGet, grpc } = probe;
  return {
    ...probe,
    ...(httpGet && { httpGet: withHTTPGetDefaults(httpGet) }),
    ...(grpc && { grpc: { ...grpc, service: grpc.service ?? "" } }),
    timeoutSeconds: probe.timeoutSeconds || 1,
    periodSeconds: probe.periodSeconds || 10,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

function withLifecycleDefaults(lifecycle: Lifecycle): Lifecycle {
  const { postStart, preStop } = lifecycle;
  const completed = (handler: typeof postStart) =>
    handler?.httpGet === undefined ? handler : { ...handler, httpGet: withHTTPGetDefaults(handler.httpGet) };
  return {
    ...lifecycle,
    ...(postStart && { postStart: completed(postStart) }),
    ...(preStop && { preStop: completed(preStop) }),
  } as Lifecycle;
}

function withHTTPGetDefaults(action: HTTPGetAction): HTTPGetAction {
  return { ...action, path: action.path || "/", scheme: action.scheme || "HTTP" };
}
