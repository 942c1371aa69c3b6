import { headerValue } from "@sluice/client/internal/http/header-list";
import type { RequestUser } from "../../access/authn/impersonation.ts";
import { type Attributes, requirePermission } from "../../access/authz/authorizer.ts";
import { requestAttributes } from "../../access/authz/request-attributes.ts";
import type { WantedSession } from "../../access/policy/evaluate-policy.ts";
import { REASON_HEADER, REASON_QUERY, reasonOf, requirePolicy } from "../../access/policy/require-policy.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { timesOf } from "../../sessions/admission.ts";
import type { ClusterContext, GatewayContext } from "../../sessions/context.ts";
import { countingRefusals } from "../../sessions/count-refusals.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { SessionStanding } from "../../sessions/reauthorizer.ts";
import type { SessionTimeouts } from "../../sessions/session.ts";
import type { ListedSession } from "../../sessions/session-info.ts";
import { identify, requesterCheckOf } from "./admit-streaming.ts";
import { type ProxiedSession, type ProxiedTarget, proxiedTargetOf } from "./proxied-session.ts";

/** The decisions about a session through a proxy subresource. */
export interface AdmittedProxied {
  readonly user: RequestUser;
  /** `pod`: or a Service; "" with only `node` if the URL does not name the pod. */
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
  const authorizer = incoming.trail?.watching(gateway.authorizer) ?? gateway.authorizer;
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
 * A session through the node needs no permission for its pod, so the pod's own permission is checked
 * as well; undefined for every other session.
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
 * Every pod that the session may reach. Throws StatusError 404 for an unknown pod, whose labels
 * could be anything.
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
  // A Service without a selector may lead anywhere, also to pods without labels.
  const candidates = selector === undefined || selected.length === 0 ? [...labels, {}] : selected;
  return candidates.map((each) => ({ name: to.service, labels: each }));
}
