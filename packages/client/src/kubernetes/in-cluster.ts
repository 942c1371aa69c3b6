import { readFile } from "node:fs/promises";
import path from "node:path";
import { inClusterServer, SERVICE_ACCOUNT_FOLDER } from "../net/in-cluster-server.ts";
import type { KubeconfigEntries } from "./kubeconfig-entries.ts";
import type { Environment } from "./kubeconfig-files.ts";

export function isInCluster(environment: Environment): boolean {
  return Boolean(environment.KUBERNETES_SERVICE_HOST && environment.KUBERNETES_SERVICE_PORT);
}

/**
 * The API server from the pod's environment and service account. Throws ConfigurationError outside
 * a pod.
 */
export async function inClusterEntries(
  environment: Environment,
  folder = SERVICE_ACCOUNT_FOLDER,
): Promise<KubeconfigEntries> {
  const { url, certificateAuthorityFile, tokenFile } = inClusterServer(environment, folder);
  const namespace = await readFile(path.join(folder, "namespace"), "utf8").catch(() => "");
  return {
    server: url,
    namespace: namespace.trim() || "default",
    certificateAuthority: { file: certificateAuthorityFile },
    insecureSkipTLSVerify: false,
    tlsServerName: undefined,
    proxyUrl: undefined,
    user: { tokenFile },
  };
}
