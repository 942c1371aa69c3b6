import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { loadConfiguration } from "../../config/load-configuration.ts";
import { formatDuration } from "../../config/number-fields.ts";
import { snapshotCluster } from "../../kubernetes/component.ts";
import { type DescribedNode, describeNode } from "../../nodes/describe-nodes.ts";
import type { LearnedPath } from "../../nodes/known-nodes.ts";
import { flag, listOf, number, object, optional, text } from "../client/answer-shape.ts";
import { UsageError } from "../command.ts";
import { printText } from "../print-text.ts";
import { explainClients } from "./explain-authorization.ts";

const ADMIN_TIMEOUT_MS = 10_000;

const learnedPath = object({
  successes: number,
  failures: number,
  lastFailure: optional(text),
  retryInMs: number,
});
const areNodes = listOf(
  object({
    name: text,
    address: optional(text),
    problem: optional(text),
    declaredFeatures: listOf(text),
    modeSource: text,
    capability: object({ declaresWebSocket: flag, mode: text, avoidedPaths: listOf(text) }),
    learned: optional(
      object({
        circuit: object({ state: text, failures: number, reason: optional(text), retryInMs: number }),
        paths: object({ command: learnedPath, tunnel: learnedPath }),
      }),
    ),
  }),
);

/**
 * Prints how sessions reach a node and why. With `admin`, also asks a gateway's admin listener what
 * it has observed.
 */
export async function explainNode(
  name: string,
  configFile: string,
  admin: string | undefined,
): Promise<number> {
  const configuration = await loadConfiguration(configFile);
  const { kubelet, featureGates } = configuration;
  let node: DescribedNode | undefined;
  if (admin === undefined) {
    const found = await snapshotCluster(
      configuration,
      (live) => live.lookUpNode(name),
      ({ store }) => store.getNode(name),
    );
    const locate = {
      preferredAddressTypes: kubelet.preferredAddressTypes,
      defaultKubeletPort: kubelet.port,
    };
    node = found && describeNode(found, { locate, streaming: kubelet.streaming });
  } else {
    node = await askAdmin(admin, name);
  }
  if (node === undefined) {
    printText(`nodes ${JSON.stringify(name)} not found\n`);
    return 1;
  }
  printText(describe(node, admin !== undefined));
  printText(`\nexec and attach\n${explainClients("exec", node.capability, featureGates)}`);
  printText(`\nport-forward\n${explainClients("portforward", node.capability, featureGates)}`);
  const isDead = node.learned !== undefined && node.learned.circuit.state !== "closed";
  return node.problem !== undefined || isDead ? 1 : 0;
}

/** Requests a node's state from a gateway's admin listener. Throws UsageError if that is not a URL. */
export async function askAdmin(admin: string, name: string): Promise<DescribedNode | undefined> {
  if (!URL.canParse(admin)) throw new UsageError(`--admin must be a URL, got ${JSON.stringify(admin)}`);
  const url = new URL("/debug/nodes", admin);
  url.searchParams.set("name", name);
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(ADMIN_TIMEOUT_MS), redirect: "error" });
  } catch (error) {
    const { cause = error } = error as Error;
    throw new UsageError(`--admin ${url.origin} does not answer: ${systemErrorText(cause)}`);
  }
  if (!response.ok)
    throw new UsageError(`--admin ${url.origin} answered ${response.status}: is it an admin listener?`);
  const answer: unknown = await response.json().catch(() => undefined);
  if (!areNodes(answer))
    throw new UsageError(`--admin ${url.origin} answered no nodes: is it an admin listener?`);
  return (answer as readonly DescribedNode[])[0];
}

function describe(node: DescribedNode, isRunning: boolean): string {
  const { capability, learned } = node;
  const lines = [
    `node ${node.name} ${node.address === undefined ? `cannot be reached: ${node.problem}` : `at ${node.address}`}`,
    `declares ${node.declaredFeatures.join(", ") || "nothing"}`,
    `mode ${capability.mode} (${node.modeSource})`,
  ];
  if (learned !== undefined) {
    const { state, failures, reason, retryInMs } = learned.circuit;
    const failed = failures > 0 ? `, ${failures} dials in a row failed: ${reason}` : "";
    const retry = retryInMs > 0 ? `, tried again in ${duration(retryInMs)}` : "";
    lines.push(`circuit ${state}${failed}${retry}`);
    lines.push(describePath("exec and attach over WebSocket", learned.paths.command));
    lines.push(describePath("port-forward over WebSocket", learned.paths.tunnel));
  } else {
    lines.push(
      isRunning ? "nothing was learned of it lately" : "what a running gateway learned: --admin URL",
    );
  }
  return `${lines.join("\n")}\n`;
}

function describePath(name: string, { successes, failures, lastFailure, retryInMs }: LearnedPath): string {
  const last = lastFailure === undefined ? "" : `, last by ${lastFailure}`;
  const avoided = retryInMs > 0 ? `; left out for ${duration(retryInMs)}` : "";
  return `${name}: worked ${successes} times, failed ${failures} times${last}${avoided}`;
}

/** Whole seconds, at least one. */
function duration(milliseconds: number): string {
  return formatDuration(Math.max(1, Math.ceil(milliseconds / 1_000)) * 1_000);
}
