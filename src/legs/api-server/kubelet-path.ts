import type { StreamingRequest } from "../../sessions/streaming-request.ts";

/** Builds the kubelet's URL like kube-apiserver: only true flags, command repeated, ports joined. */
export function kubeletPath(request: StreamingRequest, container: string | undefined): string {
  const { namespace, pod, subresource, streams } = request;
  const query = new URLSearchParams();
  if (subresource === "portforward") {
    if (request.ports.length > 0) query.set("port", request.ports.join(","));
    return withQuery(`/portForward/${encodeURIComponent(namespace)}/${encodeURIComponent(pod)}`, query);
  }
  for (const argument of request.command) query.append("command", argument);
  if (streams.stderr) query.set("error", "1");
  if (streams.stdin) query.set("input", "1");
  if (streams.stdout) query.set("output", "1");
  if (streams.tty) query.set("tty", "1");
  const segments = [subresource, namespace, pod, container ?? ""].map(encodeURIComponent);
  return withQuery(`/${segments.join("/")}`, query);
}

function withQuery(path: string, query: URLSearchParams): string {
  return query.size === 0 ? path : `${path}?${query}`;
}
