import type { Kubeconfig } from "./kubernetes/kubeconfig.ts";
import { Target, type TargetOptions } from "./target.ts";

/** A kubeconfig's API server, with its proxy and with credentials that renew as they expire. */
export function kubeconfigTarget(
  kubeconfig: Kubeconfig,
  options: Pick<TargetOptions, "headers" | "trace" | "environment"> = {},
): Target {
  const { server, proxyUrl } = kubeconfig;
  return new Target({
    ...options,
    url: server,
    tls: () => kubeconfig.tls,
    proxy: proxyUrl ?? "environment",
    headers: async () => [...(await kubeconfig.headers()), ...((await options.headers?.()) ?? [])],
  });
}
