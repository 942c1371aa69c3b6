type KubeletSubresource = "exec" | "attach" | "portForward" | "containerLogs";

/** The parts of a kubelet's streaming URL. */
export interface KubeletRoute {
  readonly subresource: KubeletSubresource;
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string | undefined;
  /** Absent for portForward. */
  readonly container: string | undefined;
  readonly query: URLSearchParams;
}

/** /exec and /attach/{ns}/{pod}[/{uid}]/{container}, /portForward/{ns}/{pod}[/{uid}], /containerLogs/{ns}/{pod}/{container}; undefined for any other path. */
export function parseKubeletRoute(target: string): KubeletRoute | undefined {
  if (!target.startsWith("/") || !URL.canParse(target, "http://node")) return undefined;
  const { pathname, searchParams: query } = new URL(target, "http://node");
  const segments = pathname.slice(1).split("/").map(decodeSegment);
  if (segments.includes("")) return undefined;
  const [subresource, namespace, pod, third, fourth, ...rest] = segments;
  if (namespace === undefined || pod === undefined || rest.length > 0) return undefined;
  if (subresource === "portForward") {
    return fourth === undefined
      ? { subresource, namespace, pod, uid: third, container: undefined, query }
      : undefined;
  }
  if (subresource === "containerLogs") {
    return third !== undefined && fourth === undefined
      ? { subresource, namespace, pod, uid: undefined, container: third, query }
      : undefined;
  }
  if ((subresource !== "exec" && subresource !== "attach") || third === undefined) return undefined;
  return fourth === undefined
    ? { subresource, namespace, pod, uid: undefined, container: third, query }
    : { subresource, namespace, pod, uid: third, container: fourth, query };
}

/** An undecodable segment matches nothing. */
function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return "";
  }
}
