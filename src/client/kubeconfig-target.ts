import type { Kubeconfig } from "../kubernetes/kubeconfig.ts";
import { Target, type TargetOptions } from "./target.ts";

/** The API server of a kubeconfig, with its credentials, which are renewed as they expire, and its proxy. */
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
