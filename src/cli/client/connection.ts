import { kubeconfigTarget } from "../../client/kubeconfig-target.ts";
import type { ResumeOptions } from "../../client/resume-options.ts";
import type { Target } from "../../client/target.ts";
import { loadKubeconfig } from "../../kubernetes/kubeconfig.ts";
import { UsageError } from "../usage-error.ts";
import { type Verbosity, verbosityOf } from "./verbosity.ts";

export interface ConnectionValues {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  readonly v?: string | undefined;
}

export interface ClientConnection {
  readonly target: Target;
  readonly namespace: string;
  readonly verbosity: Verbosity;
}

/** Throws UsageError, and ConfigurationError for a kubeconfig that is wrong. */
export async function openConnection(values: ConnectionValues): Promise<ClientConnection> {
  const verbosity = verbosityOf(values.v);
  const kubeconfig = await loadKubeconfig(values.kubeconfig, values.context);
  const target = kubeconfigTarget(kubeconfig, {
    trace: verbosity.trace,
    headers: () => [["User-Agent", "sluice"]],
  });
  return { target, namespace: values.namespace ?? kubeconfig.namespace, verbosity };
}

/** kubectl's switch: WebSockets are off only where it is set to "false". */
export function webSocketsAreOn(variable: string): boolean {
  return (process.env[variable] ?? "").toLowerCase() !== "false";
}

/** Sessions survive lost connections where the server is a Sluice; "false" switches that off. What happens is told from -v 4 on. */
export function resumeOptions({ verbosity }: ClientConnection): ResumeOptions | false {
  return webSocketsAreOn("SLUICE_RESUME") && { note: (text) => verbosity.note(text) };
}

/** `NAME` is a pod; `TYPE/NAME` is what selects pods. */
export function parseResource(text: string | undefined): { type: string; name: string } {
  const [first = "", second, ...more] = (text ?? "").split("/");
  if (first === "" || second === "" || more.length > 0) {
    throw new UsageError(text ? `${text}: must be NAME or TYPE/NAME` : "pod or type/name must be specified");
  }
  return second === undefined ? { type: "pod", name: first } : { type: first.toLowerCase(), name: second };
}
