import path from "node:path";
import { ConfigurationError } from "../config/configuration-error.ts";
import { joinHostPort } from "./go-dial-error.ts";

/** The folder in which a pod finds its service account. */
export const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The API server and credentials that Kubernetes gives to a pod. Throws ConfigurationError outside a pod. */
export function inClusterServer(environment: NodeJS.ProcessEnv, folder = SERVICE_ACCOUNT_FOLDER) {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) {
    const message =
      "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined";
    throw new ConfigurationError([{ source: "in-cluster", line: 0, column: 0, path: "", message }]);
  }
  return {
    url: `https://${joinHostPort(host, Number(port))}`,
    certificateAuthorityFile: path.join(folder, "ca.crt"),
    tokenFile: path.join(folder, "token"),
    insecureSkipTLSVerify: false,
    clientCertificateFile: undefined,
    clientKeyFile: undefined,
  };
}
