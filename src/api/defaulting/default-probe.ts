import type { HTTPGetAction, Lifecycle, Probe } from "../probe-objects.ts";

/**
 * SetDefaults_Probe of k8s.io/kubernetes: zero counts as absent. `protocol` and `mode` have no
 * default.
 */
export function withProbeDefaults(probe: Probe): Probe {
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

export function withLifecycleDefaults(lifecycle: Lifecycle): Lifecycle {
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
