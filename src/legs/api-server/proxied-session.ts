import { type KubeletPath, matchKubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { PolicySubresource } from "../../config/sections/policy.ts";
import { nonUtf8Parameter } from "../../http/request-url.ts";

/** A session with pods through a proxy subresource instead of the pod's own. */
export interface ProxiedSession {
  readonly subresource: PolicySubresource;
  readonly namespace: string;
  readonly to: { readonly pod: string } | { readonly service: string };
  readonly container: string | undefined;
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Undefined if the URL does not contain them. */
  readonly ports: readonly number[] | undefined;
}

/**
 * The target of a request through a proxy subresource; `unseen` if the URL does not show the pod or
 * the command.
 */
export type ProxiedTarget =
  | ProxiedSession
  | { readonly unseen: string; readonly subresource: PolicySubresource };

const PROXY = /^\/api\/v1\/(?:namespaces\/([^/]+)\/(pods|services)|nodes)\/([^/]+)\/proxy(\/.*)?$/;

/**
 * Undefined if the request opens no session: no proxy subresource, or plain HTTP through one. A
 * kubelet runs commands for plain requests, too. `path` has one spelling (request-path.ts).
 */
export function proxiedTargetOf(url: URL, isUpgrade: boolean): ProxiedTarget | undefined {
  const { pathname, searchParams } = url;
  const match = PROXY.exec(pathname);
  if (match === null) return undefined;
  const [, inNamespace = "", kind, encodedId = "", tail = ""] = match;
  const [namespace, id] = [decodeURIComponent(inNamespace), decodeURIComponent(encodedId)];
  if (kind === undefined) {
    const target = nodeTarget(id, tail, searchParams, isUpgrade);
    // Policy could not read a command that is not UTF-8, although its bytes would be forwarded.
    const isUnreadable = target !== undefined && !("unseen" in target) && nonUtf8Parameter(url) !== undefined;
    if (isUnreadable) throw WIRE_ERRORS["query-not-utf8"].forwarding();
    return target;
  }
  if (!isUpgrade) return undefined;
  const [name, port] = nameAndPort(id);
  return {
    subresource: "portforward",
    namespace,
    to: kind === "pods" ? { pod: name } : { service: name },
    container: undefined,
    command: [],
    tty: false,
    stdin: false,
    // A Service's port may differ from the pod's.
    ports: kind === "pods" && /^\d{1,5}$/.test(port) ? [Number(port)] : undefined,
  };
}

function nodeTarget(
  id: string,
  tail: string,
  query: URLSearchParams,
  isUpgrade: boolean,
): ProxiedTarget | undefined {
  const path = matchKubeletPath(tail);
  const runs = path !== undefined && path.action !== "containerLogs";
  if (!runs && !isUpgrade) return undefined;
  const subresource: PolicySubresource = path?.action === "run" ? "exec" : "portforward";
  const unseen = { unseen: `the node ${JSON.stringify(id)}`, subresource };
  // Any server may listen at `node:port`. `run` may carry its command in the body.
  if (!runs || id.includes(":") || path.action === "run") return unseen;
  return kubeletSession(path, query);
}

/** Parses the kubelet's options; the older WebSocket port-forward uses `port`. */
function kubeletSession(
  { action, namespace, pod, container }: KubeletPath,
  query: URLSearchParams,
): ProxiedSession {
  const subresource = action === "portForward" ? "portforward" : action === "attach" ? "attach" : "exec";
  const ports = query.getAll("port").flatMap((value) => value.split(",").map(Number));
  return {
    subresource,
    namespace,
    to: { pod },
    container: subresource === "portforward" ? undefined : container,
    command: subresource === "exec" ? query.getAll("command") : [],
    tty: query.get("tty") === "1",
    stdin: query.get("input") === "1",
    ports: ports.length === 0 ? undefined : ports,
  };
}

/** `name`, `name:port` or `scheme:name:port` (Kubernetes' SplitSchemeNamePort). */
function nameAndPort(id: string): [name: string, port: string] {
  const parts = id.split(":");
  return parts.length === 3 ? [parts[1] ?? "", parts[2] ?? ""] : [parts[0] ?? "", parts[1] ?? ""];
}
