import type { RequestedStreams } from "@sluice/protocols/remotecommand";

export interface PodReference {
  readonly namespace: string;
  readonly pod: string;
  /** Defaults to the pod's default container. */
  readonly container?: string | undefined;
}

/** A session's path on its server, for the requested streams. */
export type CommandPath = (requested: RequestedStreams) => string;

/** An API server's `pods/exec`. */
export function execPath(reference: PodReference, command: readonly string[]): CommandPath {
  return (requested) => `${podPath(reference)}/exec?${commandQuery(reference, command, requested)}`;
}

/** An API server's `pods/attach`. */
export function attachPath(reference: PodReference): CommandPath {
  return (requested) => `${podPath(reference)}/attach?${commandQuery(reference, [], requested)}`;
}

/** An API server's `pods/portforward`. */
export function portForwardPath(reference: PodReference): string {
  return `${podPath(reference)}/portforward`;
}

function podPath({ namespace, pod }: PodReference): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(pod)}`;
}

/** Sorted by name, as Go encodes a query; false values are omitted. */
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

/** An API server's `pods/log`, with PodLogOptions; those that are absent or false are omitted. */
export function logPath(
  reference: PodReference,
  options: Readonly<Record<string, string | number | boolean | undefined>>,
): string {
  const query = new URLSearchParams();
  if (reference.container !== undefined) query.set("container", reference.container);
  for (const [name, value] of Object.entries(options))
    if (value !== undefined && value !== false) query.set(name, String(value));
  query.sort();
  return `${podPath(reference)}/log?${query}`;
}

/** A kubelet's `/exec` or `/attach`: the value "1" means true, any other false. */
export function kubeletCommandPath(
  kind: "exec" | "attach",
  { namespace, pod, container }: PodReference & { readonly container: string },
  command: readonly string[],
): CommandPath {
  const path = [namespace, pod, container].map(encodeURIComponent).join("/");
  return (requested) => {
    const query = new URLSearchParams(command.map((argument): [string, string] => ["command", argument]));
    if (requested.stdin) query.append("input", "1");
    if (requested.stdout) query.append("output", "1");
    if (requested.stderr) query.append("error", "1");
    if (requested.tty) query.append("tty", "1");
    return `/${kind}/${path}?${query}`;
  };
}

/**
 * A kubelet's `/portForward`. `legacyPort`: only the WebSocket protocol without SPDY names the port
 * in the query.
 */
export function kubeletPortForwardPath(
  { namespace, pod }: PodReference,
  legacyPort: number | undefined,
): string {
  const query = legacyPort === undefined ? "" : `?port=${legacyPort}`;
  return `/portForward/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}${query}`;
}
