import { readFile } from "node:fs/promises";
import path from "node:path";
import { ConfigurationError } from "../config/configuration-error.ts";
import { joinHostPort } from "../net/go-dial-error.ts";
import type { KubeconfigEntries } from "./kubeconfig-entries.ts";
import type { Environment } from "./kubeconfig-files.ts";

/** Where a pod finds its service account. */
export const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

export function isInCluster(environment: Environment): boolean {
  return Boolean(environment.KUBERNETES_SERVICE_HOST && environment.KUBERNETES_SERVICE_PORT);
}

/** The API server as a pod is told of it. Throws ConfigurationError outside of one. */
export async function inClusterEntries(
  environment: Environment,
  folder = SERVICE_ACCOUNT_FOLDER,
): Promise<KubeconfigEntries> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) {
    const message =
      "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined";
    throw new ConfigurationError([{ source: "in-cluster", line: 0, column: 0, path: "", message }]);
  }
  const namespace = await readFile(path.join(folder, "namespace"), "utf8").catch(() => "");
  return {
    server: `https://${joinHostPort(host, Number(port))}`,
    namespace: namespace.trim() || "default",
    certificateAuthority: { file: path.join(folder, "ca.crt") },
    insecureSkipTLSVerify: false,
    tlsServerName: undefined,
    proxyUrl: undefined,
    user: { tokenFile: path.join(folder, "token") },
  };
}
