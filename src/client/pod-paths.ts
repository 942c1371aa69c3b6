import type { RequestedStreams } from "../../protocols/remotecommand/index.ts";

export interface PodReference {
  readonly namespace: string;
  readonly pod: string;
  /** Absent: the pod's default container. */
  readonly container?: string | undefined;
}

/** The path of a session below its server, for the streams that it is asked for. */
export type CommandPath = (requested: RequestedStreams) => string;

/** `pods/exec` of an API server. */
export function execPath(reference: PodReference, command: readonly string[]): CommandPath {
  return (requested) => `${podPath(reference)}/exec?${commandQuery(reference, command, requested)}`;
}

/** `pods/attach` of an API server. */
export function attachPath(reference: PodReference): CommandPath {
  return (requested) => `${podPath(reference)}/attach?${commandQuery(reference, [], requested)}`;
}

/** `pods/portforward` of an API server. */
export function portForwardPath(reference: PodReference): string {
  return `${podPath(reference)}/portforward`;
}

function podPath({ namespace, pod }: PodReference): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`;
}

/** Sorted by name, as Go encodes a query; what is false is left out. */
function commandQuery(
  { container }: PodReference,
  command: readonly string[],
  requested: RequestedStreams,
): URLSearchParams {
  const query = new URLSearchParams();
  for (const argument of command) query.append("command", argument);
  if (container !== undefined) query.append("container", container);
  for (const name of ["stderr", "stdin", "stdout", "tty"] as const) {
    if (requested[name]) query.append(name, "true");
  }
  return query;
}
