import { type KubeletPath, matchKubeletPath } from "../../api/kubelet-path.ts";
import { badRequest } from "../../api/status.ts";
import type { PolicySubresource } from "../../config/sections/policy.ts";
import { nonUtf8Parameter } from "../../http/request-url.ts";

/** A session with pods that is opened through a proxy subresource, not through one of its own. */
export interface ProxiedSession {
  readonly subresource: PolicySubresource;
  readonly namespace: string;
  readonly to: { readonly pod: string } | { readonly service: string };
  readonly container: string | undefined;
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Undefined where they are not in the URL. */
  readonly ports: readonly number[] | undefined;
}

/** What a request through a proxy subresource reaches; `unseen` where its URL does not tell which pod, or what is run there. */
export type ProxiedTarget =
  | ProxiedSession
  | { readonly unseen: string; readonly subresource: PolicySubresource };

const PROXY = /^\/api\/v1\/(?:namespaces\/([^/]+)\/(pods|services)|nodes)\/([^/]+)\/proxy(\/.*)?$/;

/**
 * Undefined for a request that opens no session: no proxy subresource, or plain HTTP through one. A kubelet runs commands for plain
 * requests, too. `path` has one spelling (request-path.ts).
 */
export function proxiedTargetOf(url: URL, isUpgrade: boolean): ProxiedTarget | undefined {
  const { pathname, searchParams } = url;
  const match = PROXY.exec(pathname);
  if (match === null) return undefined;
  const [, inNamespace = "", kind, encodedId = "", tail = ""] = match;
  const [namespace, id] = [decodeURIComponent(inNamespace), decodeURIComponent(encodedId)];
  if (kind === undefined) {
    const target = nodeTarget(id, tail, searchParams, isUpgrade);
    // Its command is forwarded in bytes that its policy could not read.
    const isUnreadable = target !== undefined && !("unseen" in target) && nonUtf8Parameter(url) !== undefined;
    if (isUnreadable) throw badRequest("the query is not valid UTF-8");
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
    // A Service's port is not the pod's.
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
  // `node:port` is whatever listens there. `run` may have its command in the body.
  if (!runs || id.includes(":") || path.action === "run") return unseen;
  return kubeletSession(path, query);
}

/** The kubelet's options; `port` is the older WebSocket port-forward's. */
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
