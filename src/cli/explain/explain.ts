import { StatusError } from "@sluice/client/internal/api/status";
import { evaluatePolicy, type WantedSession } from "../../access/policy/evaluate-policy.ts";
import { passingSpellings } from "../../access/policy/other-spellings.ts";
import { refusalText } from "../../access/policy/require-policy.ts";
import type { Pod } from "../../api/objects.ts";
import { locate } from "../../cluster/locate.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { formatDuration } from "../../config/duration.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import type { PolicyRule, PolicySubresource } from "../../config/sections/policy.ts";
import { type ClusterSnapshot, snapshotCluster } from "../../kubernetes/component.ts";
import { declaresWebSocket, modeOf } from "../../nodes/streaming-mode.ts";
import type { Subresource } from "../../sessions/streaming-request.ts";
import type { Invocation } from "../command.ts";
import type { explainFlags } from "../commands/explain.ts";
import { UsageError } from "../usage-error.ts";
import { explainClients } from "./explain-clients.ts";
import { askAdmin, explainNode } from "./explain-node.ts";
import { explainUrl } from "./explain-url.ts";

type Values = Invocation<typeof explainFlags>["values"];

/** Flags that policy rules refer to. */
const SESSION_FLAGS = ["user", "group", "command", "tty", "stdin", "port", "reason"] as const;

/**
 * Prints the destination of a request, the path for each kind of client, and the reasons. Exit code
 * 1 if it would be refused.
 */
export async function run({ values, operands }: Invocation<typeof explainFlags>): Promise<number> {
  const [, nodeName] = /^node\/([^/]+)$/.exec(operands[0] ?? "") ?? [];
  const url = /^https?:\/\//i.test(operands[0] ?? "") && operands.length === 1 ? operands[0] : undefined;
  if (url !== undefined) {
    refuseIgnored(values, "a URL");
    return await explainUrl(url, values.config);
  }
  refuseIgnored(values, nodeName === undefined ? undefined : "a node");
  if (nodeName !== undefined && operands.length === 1) {
    return await explainNode(nodeName, values.config, values.admin);
  }
  const { subresource, namespace, pod } = parseTarget(operands);
  const configuration = await loadConfiguration(values.config);
  const request = { subresource, namespace, pod };
  try {
    return await snapshotCluster(
      configuration,
      (live) => live.lookUp(namespace, pod),
      (cluster) => explain(request, values, configuration, cluster),
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    process.stdout.write(`refused with ${error.code}: ${error.message}\n`);
    return 1;
  }
}

/** Refuses flags without effect, because the user meant something by them. Throws UsageError. */
function refuseIgnored(values: Values, about: "a node" | "a URL" | undefined): void {
  const others = about === "a URL" ? (["admin", "container"] as const) : (["container"] as const);
  const given = [...others, ...SESSION_FLAGS].filter((name) => {
    const value = values[name];
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
  });
  const [first] = about === undefined ? given.filter((name) => name !== "container") : given;
  if (first === undefined) return;
  if (about !== undefined)
    throw new UsageError(`--${first} says nothing about ${about}`, { showsUsage: true });
  if (values.user === undefined)
    throw new UsageError(`--${first} needs --user: without it no rule is evaluated`);
}

async function explain(
  session: Parameters<typeof locate>[1],
  values: Values,
  { kubelet, featureGates, policy }: GatewayConfiguration,
  { store, judgeConnect }: ClusterSnapshot,
): Promise<number> {
  const { subresource, namespace, pod } = session;
  const choice = values.container ?? defaultContainerOf(store.getPod(namespace, pod), subresource);
  const request = { ...session, container: choice };
  const target = locate(store, request, {
    preferredAddressTypes: kubelet.preferredAddressTypes,
    defaultKubeletPort: kubelet.port,
  });
  const { name, host, port, declaredFeatures } = target.node;
  const by = values.container === undefined ? ", kubectl's default" : "";
  const container = target.container === undefined ? "" : `, container ${target.container}${by}`;
  process.stdout.write(
    `${subresource} ${namespace}/${pod}${container}\n` +
      `node ${name} at ${kubelet.scheme}://${host}:${port}, declares ${declaredFeatures.join(", ") || "nothing"}\n`,
  );
  const verdict = await judgeConnect(request);
  process.stdout.write(verdict ? `admission: ${verdict.by}\n\n` : "\n");
  const { mode } = modeOf(target.node, kubelet.streaming);
  const declared = { declaresWebSocket: declaresWebSocket(target.node), mode, avoidedPaths: [] };
  const learned = values.admin === undefined ? undefined : await askAdmin(values.admin, name);
  const capability = learned?.capability ?? declared;
  process.stdout.write(explainClients(subresource, capability, featureGates, verdict?.reason));
  if (values.user === undefined) return 0;
  const podLabels = store.getPod(namespace, pod)?.metadata.labels ?? {};
  const wanted = { ...request, ...values, user: values.user, container: target.container, podLabels };
  const { text, isRefused } = explainPolicy(policy.rules, wanted);
  process.stdout.write(`\n${text}`);
  return isRefused ? 1 : 0;
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

function parseTarget(operands: readonly string[]): {
  subresource: Subresource;
  namespace: string;
  pod: string;
} {
  const [subresource, target, ...more] = operands;
  const [namespace, pod, ...rest] = (target ?? "").split("/");
  const isKnown = subresource === "exec" || subresource === "attach" || subresource === "portforward";
  if (!isKnown || !namespace || !pod || more.length > 0 || rest.length > 0) {
    throw new UsageError("SUBRESOURCE and NAMESPACE/POD, or node/NAME, or a URL, are needed");
  }
  return { subresource, namespace, pod };
}

/** A session as the command line describes it. */
export interface DescribedSession {
  readonly user: string;
  readonly group?: readonly string[] | undefined;
  readonly namespace: string;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly container: string | undefined;
  readonly subresource: PolicySubresource;
  readonly command?: readonly string[] | undefined;
  readonly tty?: boolean | undefined;
  readonly stdin?: boolean | undefined;
  readonly port?: readonly number[] | undefined;
  readonly reason?: string | undefined;
}

/** Names the policy rule that decides about the session, and its verdict. */
export function explainPolicy(
  rules: readonly PolicyRule[],
  described: DescribedSession,
): { readonly text: string; readonly isRefused: boolean } {
  const { group = [], command = [], tty = false, stdin = false, port, reason = "" } = described;
  const base = { ...described, groups: ["system:authenticated", ...group], command, tty, stdin, reason };
  const wanted = base;
  // kubectl requests each port separately while it runs, so policy judges each one.
  const ports = port ?? [];
  const lines =
    ports.length === 0
      ? [lineFor(rules, { ...wanted, ports: undefined })]
      : ports.map((port) => lineFor(rules, { ...wanted, ports: [port] }, `port ${port}: `));
  return {
    text: lines.map(({ text }) => `${text}\n`).join(""),
    isRefused: lines.some(({ isRefused }) => isRefused),
  };
}

function lineFor(rules: readonly PolicyRule[], wanted: WantedSession, prefix = "") {
  const verdict = evaluatePolicy(rules, wanted);
  if (verdict.type === "refused") {
    const text = `${prefix}refused with 403: ${refusalText(verdict.rule, verdict.cause)}`;
    const passing = passingSpellings(rules, wanted).map((command) => JSON.stringify(command));
    if (passing.length === 0) return { isRefused: true, text };
    return {
      isRefused: true,
      text: `${text}\nthe same by another spelling is allowed: ${passing.join(", ")}`,
    };
  }
  const { rule } = verdict;
  if (verdict.type === "by-port") {
    const text = `${prefix}policy rule ${JSON.stringify(verdict.rule.name)} decides by port: give --port`;
    return { isRefused: false, text };
  }
  if (rule === undefined) return { isRefused: false, text: `${prefix}allowed: no policy rule matches` };
  const { maxDurationMs, idleTimeoutMs } = rule;
  const limits = [
    ...(maxDurationMs === undefined ? [] : [`for at most ${formatDuration(maxDurationMs)}`]),
    ...(idleTimeoutMs === undefined ? [] : [`idle for at most ${formatDuration(idleTimeoutMs)}`]),
  ];
  return {
    isRefused: false,
    text: `${prefix}allowed: ${[`policy rule ${JSON.stringify(rule.name)} decides`, ...limits].join(", ")}`,
  };
}
