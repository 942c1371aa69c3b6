import type { CommandPath, PodReference } from "./pod-paths.ts";

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
