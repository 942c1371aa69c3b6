import { headerValue } from "@sluice/client/internal/http/header-list";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import { type Attributes, authorizerFor, requirePermission } from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import {
  REASON_HEADER,
  REASON_QUERY,
  reasonOf,
  requirePolicy,
  type WantedSession,
} from "../../access/policy/evaluate-policy.ts";
import { type KubeletPath, matchKubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { PolicySubresource } from "../../config/sections/policy.ts";
import { nonUtf8Parameter } from "../../http/request-url.ts";
import type { ClusterContext, GatewayContext } from "../../sessions/context.ts";
import { countingRefusals } from "../../sessions/count-refusals.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { timesOf } from "../../sessions/leg.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import type { SessionTimeouts } from "../../sessions/session.ts";
import type { ListedSession } from "../../sessions/session-info.ts";
import { identify, requesterCheckOf } from "./admit-streaming.ts";

const PROXY = /^\/api\/v1\/(?:namespaces\/([^/]+)\/(pods|services)|nodes)\/([^/]+)\/proxy(\/.*)?$/;

/** The decisions about a session through a proxy subresource. */
export interface AdmittedProxied {
  readonly user: RequestUser;
  /** `pod`: a pod or a Service; "" with only `node` if the URL does not name the pod. */
  readonly target: Pick<ListedSession, "subresource" | "namespace" | "pod" | "node">;
  readonly timeouts: SessionTimeouts;
  readonly standing: SessionStanding<RequestUser>;
  /** Releases its seats. */
  release(): void;
}

/**
 * Authorizes a session through a proxy subresource of a node, pod or Service, and applies policy as
 * for exec. Undefined for every other request. Throws StatusError.
 */
export async function admitProxied(
  incoming: IncomingStreaming,
  isUpgrade: boolean,
  gateway: GatewayContext,
): Promise<AdmittedProxied | undefined> {
  const target = proxiedTargetOf(incoming.url, isUpgrade);
  if (target === undefined) return undefined;
  if ("unseen" in target) return await admit(target, incoming, gateway);
  const { subresource, namespace } = target;
  const path = { namespace, pod: nameOf(target), subresource };
  return await countingRefusals(path, incoming, gateway, () => admit(target, incoming, gateway));
}

async function admit(
  target: ProxiedTarget,
  incoming: IncomingStreaming,
  gateway: GatewayContext,
): Promise<AdmittedProxied> {
  const { method, url, headers } = incoming;
  const user = await identify(incoming, gateway);
  const authorizer = authorizerFor(incoming, gateway.authorizer);
  const line = { method, path: url.pathname, query: url.searchParams };
  const attributes = requestAttributes(user, line);
  await requirePermission(authorizer, attributes);
  const podAttributes = podAttributesOf(target, attributes);
  const standing = standingOf(attributes, podAttributes, incoming, user, gateway);
  const { policy, recordingRules, timeouts } = gateway;
  const rules = policy?.rules ?? [];
  if ("unseen" in target) {
    const { name: node } = attributes;
    const shown = { subresource: target.subresource, namespace: "", pod: "", node };
    const records = recordingRules?.recordAny === true;
    if (rules.length === 0 && !records) return { user, target: shown, timeouts, standing, release: () => {} };
    const blind = rules.length > 0 ? "policy-blind" : "recording-blind";
    throw WIRE_ERRORS[blind].forwarding({ ...attributes, place: target.unseen });
  }
  const { namespace, subresource } = target;
  if (podAttributes !== undefined) await requirePermission(authorizer, podAttributes);
  const reason = reasonOf(headerValue(headers, REASON_HEADER), url.searchParams.get(REASON_QUERY));
  const wanted = { ...target, user: user.name, groups: user.groups, reason };
  const isJudged = rules.length > 0 || recordingRules?.recordAny === true;
  const pods = isJudged ? await podsOf(target, gateway) : [];
  for (const { name, labels } of pods) {
    const rule = recordingRules?.nameFor({ ...wanted, podLabels: labels });
    if (rule !== undefined) throw WIRE_ERRORS["recording-undecoded"].forwarding({ pod: name, rule });
  }
  const granted = pods.map((pod) =>
    requirePolicy(rules, { ...wanted, podLabels: pod.labels }, pod.name, false),
  );
  const release = await policy?.quotas.take(user.name, namespace);
  const node = attributes.resource === "nodes" ? attributes.name : "";
  return {
    user,
    target: { subresource, namespace, pod: nameOf(target), node },
    timeouts: granted.reduce(
      (times, { rule }) => timesOf({ rule }, times),
      gateway.timeouts as SessionTimeouts,
    ),
    standing,
    release: release ?? (() => {}),
  };
}

function standingOf(
  attributes: Attributes,
  podAttributes: Attributes | undefined,
  incoming: IncomingStreaming,
  user: RequestUser,
  gateway: GatewayContext,
): SessionStanding<RequestUser> {
  const requireRequester = requesterCheckOf(incoming, user, gateway);
  return new SessionStanding(user, gateway.authorizer, async (current, authorizer) => {
    await requireRequester(current, authorizer);
    await requirePermission(authorizer, { ...attributes, user: current });
    if (podAttributes !== undefined) await requirePermission(authorizer, { ...podAttributes, user: current });
  });
}

/**
 * The pod's own permission, which is also checked, because a session through the node needs none
 * for its pod. Undefined for every other session.
 */
function podAttributesOf(target: ProxiedTarget, attributes: Attributes): Attributes | undefined {
  if ("unseen" in target || attributes.resource !== "nodes" || !("pod" in target.to)) return undefined;
  const { namespace, subresource } = target;
  return { ...attributes, verb: "create", namespace, resource: "pods", subresource, name: target.to.pod };
}

function nameOf({ to }: ProxiedSession): string {
  return "pod" in to ? to.pod : to.service;
}

interface KnownPod {
  readonly name: string;
  readonly labels: WantedSession["podLabels"];
}

/**
 * Every pod that the session may reach. Throws StatusError 404 for an unknown pod, since it could
 * have any labels.
 */
async function podsOf({ namespace, to }: ProxiedSession, gateway: ClusterContext): Promise<KnownPod[]> {
  if ("pod" in to) {
    await gateway.lookUp?.(namespace, to.pod);
    const pod = gateway.cluster.getPod(namespace, to.pod);
    if (pod === undefined) throw WIRE_ERRORS["pod-unknown"].streaming({ name: to.pod });
    return [{ name: to.pod, labels: pod.metadata.labels ?? {} }];
  }
  const selector = gateway.cluster.get("Service", namespace, to.service)?.spec?.selector;
  const labels = gateway.cluster.listPods(namespace).map(({ metadata }) => metadata.labels ?? {});
  const selected = labels.filter((each) =>
    Object.entries(selector ?? {}).every(([key, value]) => each[key] === value),
  );
  // A Service without a selector may lead anywhere, even to pods without labels.
  const candidates = selector === undefined || selected.length === 0 ? [...labels, {}] : selected;
  return candidates.map((each) => ({ name: to.service, labels: each }));
}

/** A session with pods through a proxy subresource instead of the pod's own. */
interface ProxiedSession {
  readonly subresource: PolicySubresource;
  readonly namespace: string;
  readonly to: { readonly pod: string } | { readonly service: string };
  readonly container: string | undefined;
  readonly command: readonly string[];
  readonly tty: boolean;
  readonly stdin: boolean;
  /** Undefined if the URL does not contain it. */
  readonly ports: readonly number[] | undefined;
}

/**
 * The target of a request through a proxy subresource; `unseen` if the URL does not show the pod or
 * the command.
 */
type ProxiedTarget = ProxiedSession | { readonly unseen: string; readonly subresource: PolicySubresource };

/**
 * Undefined if the request opens no session: no proxy subresource, or plain HTTP through one. A
 * kubelet runs commands for plain requests, too. `path` has one spelling (request-path.ts).
 */
function proxiedTargetOf(url: URL, isUpgrade: boolean): ProxiedTarget | undefined {
  const { pathname, searchParams } = url;
  const match = PROXY.exec(pathname);
  if (match === null) return undefined;
  const [, inNamespace = "", kind, encodedId = "", tail = ""] = match;
  const [namespace, id] = [decodeURIComponent(inNamespace), decodeURIComponent(encodedId)];
  if (kind === undefined) {
    const target = nodeTarget(id, tail, searchParams, isUpgrade);
    // Policy could not read a command that is not UTF-8, yet its bytes would be forwarded.
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

/** Parses the kubelet's options; the older WebSocket port-forward calls its ports `port`. */
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
