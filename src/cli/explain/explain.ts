import { StatusError } from "@sluice/client/internal/api/status";
import { nearestName } from "@sluice/client/internal/config/nearest-name";
import type { Pod } from "../../api/objects.ts";
import type { ClusterStore } from "../../cluster/cluster-store.ts";
import { locate } from "../../cluster/locate.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { type ClusterSnapshot, snapshotCluster } from "../../kubernetes/component.ts";
import { declaresWebSocket, modeOf } from "../../nodes/node-capability.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/explain.ts";
import { givenOf, refuseIgnored } from "../flag-readers.ts";
import { printText } from "../print-text.ts";
import { explainAuthorization, explainClients, type Transport } from "./explain-authorization.ts";
import { askAdmin, explainNode } from "./explain-node.ts";
import { explainPolicy } from "./explain-policy.ts";
import { explainUrl } from "./explain-url.ts";
import { callerOf, type ExplainedUser } from "./explain-user.ts";

type Values = Invocation<typeof command.flags>["values"];

/** Flags about a session; they have no meaning for nodes and URLs. */
const SESSION_FLAGS = [
  "container",
  "namespace",
  "kubeconfig",
  "context",
  "as",
  "as-group",
  "user",
  "group",
  "command",
  "tty",
  "stdin",
  "port",
  "reason",
] as const;

/** Flags that only policy rules read, so they need a user. */
const RULE_FLAGS = ["command", "tty", "stdin", "port", "reason"] as const;

/**
 * Prints the verdict for the named or current user, the destination of a request, and the path for
 * each kind of client with the reasons. Exit code 1 if it would be refused.
 */
export async function run({ values, operands }: Invocation<typeof command.flags>): Promise<number> {
  const [, nodeName] = /^node\/([^/]+)$/.exec(operands[0] ?? "") ?? [];
  const url = /^https?:\/\//i.test(operands[0] ?? "") && operands.length === 1 ? operands[0] : undefined;
  if (url !== undefined) {
    refuseIgnored(values, "a URL", ["admin", ...SESSION_FLAGS]);
    return await explainUrl(url, values.config);
  }
  if (nodeName !== undefined && operands.length === 1) {
    refuseIgnored(values, "a node", SESSION_FLAGS);
    return await explainNode(nodeName, values.config, values.admin);
  }
  const named = parseTarget(operands);
  const caller = await callerOf(values);
  const namespace = namespaceOf(named.namespace, values.namespace) ?? caller.namespace ?? "default";
  const request = { subresource: named.subresource, namespace, pod: named.pod };
  const configuration = await loadConfiguration(values.config);
  const explained = await caller.explained(configuration);
  if (explained.user === undefined && !explained.isRefused) {
    const [flag] = givenOf(values, RULE_FLAGS);
    if (flag !== undefined) throw new UsageError(`--${flag} needs a user: give --as (${explained.problem})`);
  }
  return await snapshotCluster(
    configuration,
    (live) => live.lookUp(namespace, request.pod),
    (cluster) => explain(request, values, configuration, cluster, explained),
  ).catch((error) => refusedWith(error));
}

function refusedWith(error: unknown): number {
  if (!(error instanceof StatusError)) throw error;
  printText(`refused with ${error.code}: ${error.message}\n`);
  return 1;
}

/** Throws UsageError if both name different namespaces. */
function namespaceOf(operand: string | undefined, flag: string | undefined): string | undefined {
  if (operand !== undefined && flag !== undefined && operand !== flag)
    throw new UsageError(`--namespace ${flag} and ${operand}/ name different namespaces`);
  return operand ?? flag;
}

async function explain(
  session: Parameters<typeof locate>[1] & { readonly subresource: Subresource },
  values: Values,
  configuration: GatewayConfiguration,
  { store, judgeConnect }: ClusterSnapshot,
  explained: ExplainedUser,
): Promise<number> {
  const { kubelet, featureGates } = configuration;
  const { subresource, namespace, pod } = session;
  const choice = values.container ?? defaultContainerOf(store.getPod(namespace, pod), subresource);
  const request = { ...session, container: choice };
  const access = accessBefore(explained) ?? (await accessOf(configuration, store, explained, session));
  printText(access.lead);
  const target = locateOrSay(store, request, configuration, access);
  if (target === undefined) return 1;
  let { isRefused } = access;
  if (!isRefused && explained.user !== undefined) {
    const podLabels = store.getPod(namespace, pod)?.metadata.labels ?? {};
    const { name, groups } = explained.user;
    const wanted = { ...values, ...request, user: name, groups, container: target.container, podLabels };
    const policy = explainPolicy(configuration.policy.rules, wanted);
    printText(policy.text.replace(/^(?=.)/gm, access.prefix));
    ({ isRefused } = policy);
  }
  printText(access.details);
  const { name, host, port, declaredFeatures } = target.node;
  const by = values.container === undefined ? ", kubectl's default" : "";
  const container = target.container === undefined ? "" : `, container ${target.container}${by}`;
  printText(
    `\n${subresource} ${namespace}/${pod}${container}\n` +
      `node ${name} at ${kubelet.scheme}://${host}:${port}, declares ${declaredFeatures.join(", ") || "nothing"}\n`,
  );
  const verdict = await judgeConnect(request);
  printText(verdict ? `admission: ${verdict.by}\n\n` : "\n");
  const { mode } = modeOf(target.node, kubelet.streaming);
  const declared = { declaresWebSocket: declaresWebSocket(target.node), mode, avoidedPaths: [] };
  const learned = values.admin === undefined ? undefined : await askAdmin(values.admin, name);
  const capability = learned?.capability ?? declared;
  printText(
    explainClients(subresource, capability, featureGates, {
      admission: verdict?.reason,
      refused: access.refusedTransports,
    }),
  );
  return isRefused ? 1 : 0;
}

/** The result of authorization, before policy and the pod are examined. */
interface Access {
  /** The first lines. If empty, policy gives the verdict. */
  readonly lead: string;
  /** The text before each line about policy: what the line applies to. */
  readonly prefix: string;
  readonly details: string;
  readonly isRefused: boolean;
  /** The refused transports, if others are allowed. */
  readonly refusedTransports: readonly Transport[];
}

const UNDECIDED: Access = { lead: "", prefix: "", details: "", isRefused: false, refusedTransports: [] };

/** The gateway's answer before it authorizes; undefined if it knows the user. */
function accessBefore(explained: ExplainedUser): Access | undefined {
  if (explained.user !== undefined) return undefined;
  const { problem, isRefused, isUnanswered } = explained;
  if (isRefused && !isUnanswered) return { ...UNDECIDED, lead: `refused with 401: ${problem}\n`, isRefused };
  const lead = `no verdict: ${problem}; --as NAME evaluates the rules for a user\n`;
  return { ...UNDECIDED, lead, isRefused };
}

async function accessOf(
  configuration: GatewayConfiguration,
  store: ClusterStore,
  explained: ExplainedUser,
  session: { readonly namespace: string; readonly pod: string; readonly subresource: Subresource },
): Promise<Access> {
  if (explained.user === undefined) throw new Error("a user is known here");
  const verdict = await explainAuthorization(configuration, store, explained.user, session);
  const { name, groups } = explained.user;
  const by = `user ${name} in ${groups.join(", ")}, by ${explained.source}\n`;
  if (verdict.type === "elsewhere")
    return { ...UNDECIDED, prefix: "by policy alone: ", details: `${verdict.text}\n${by}` };
  const refused = verdict.transports.filter(({ refusal }) => refusal !== undefined);
  const refusedTransports = refused.map(({ transport }) => transport);
  const lines = refused.map(({ transport, refusal }) => ({
    transport,
    text: `refused with ${refusal?.code}: ${refusal?.message}`,
  }));
  if (refused.length === verdict.transports.length) {
    const [first, ...others] = lines;
    const more = others.filter(({ text }) => text !== first?.text);
    const lead = `${first?.text}\n${more.map(({ transport, text }) => `over ${transport}: ${text}\n`).join("")}`;
    return { ...UNDECIDED, lead, details: `\n${by}`, isRefused: true };
  }
  const allowed = verdict.transports.filter(({ refusal }) => refusal === undefined);
  return {
    lead: lines.map(({ transport, text }) => `over ${transport}: ${text}\n`).join(""),
    prefix: lines.length === 0 ? "" : `over ${allowed.map(({ transport }) => transport).join()}: `,
    details: `authorization: ${verdict.reason}\n${by}`,
    isRefused: false,
    refusedTransports,
  };
}

/**
 * The session's destination. If the session is refused and the pod has none, prints that and
 * returns undefined. Throws StatusError.
 */
function locateOrSay(
  store: ClusterStore,
  request: Parameters<typeof locate>[1],
  { kubelet }: GatewayConfiguration,
  { isRefused, details }: Access,
): ReturnType<typeof locate> | undefined {
  try {
    return locate(store, request, {
      preferredAddressTypes: kubelet.preferredAddressTypes,
      defaultKubeletPort: kubelet.port,
    });
  } catch (error) {
    if (!isRefused || !(error instanceof StatusError)) throw error;
    printText(`${details}\n${error.message}\n`);
    return undefined;
  }
}

/**
 * kubectl always names a container: the annotated one, otherwise the first. The API server requires
 * a name if there are several.
 */
function defaultContainerOf(pod: Pod | undefined, subresource: Subresource): string | undefined {
  if (pod === undefined || subresource === "portforward") return undefined;
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  const annotated = pod.metadata.annotations?.[DEFAULT_CONTAINER];
  const all = [...containers, ...initContainers, ...ephemeralContainers];
  return (all.find(({ name }) => name === annotated) ?? containers[0])?.name;
}

const DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container";

/** Streaming subresources by the words that people use for them. */
const VERBS: Readonly<Record<string, Subresource>> = {
  exec: "exec",
  attach: "attach",
  portforward: "portforward",
  "port-forward": "portforward",
  cp: "exec",
};

function parseTarget(operands: readonly string[]): {
  readonly subresource: Subresource;
  readonly namespace: string | undefined;
  readonly pod: string;
} {
  const [verb = "", target = "", ...more] = operands;
  const parts = target.split("/");
  const [pod = "", namespace] = parts.toReversed();
  const subresource = VERBS[verb];
  if (verb !== "" && subresource === undefined) {
    const nearest = nearestName(verb, Object.keys(VERBS));
    const advice =
      nearest === undefined ? "use exec, attach or portforward" : `did you mean ${JSON.stringify(nearest)}?`;
    throw new UsageError(`unknown subresource ${JSON.stringify(verb)}; ${advice}`, { showsUsage: true });
  }
  if (subresource === undefined || pod === "" || namespace === "" || more.length > 0 || parts.length > 2)
    throw new UsageError("SUBRESOURCE and [NAMESPACE/]POD, or node/NAME, or a URL, are needed");
  return { subresource, namespace, pod };
}
