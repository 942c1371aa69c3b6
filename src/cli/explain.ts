import { StatusError } from "../api/status.ts";
import { locate } from "../cluster/locate.ts";
import { loadConfiguration } from "../config/load-configuration.ts";
import { snapshotCluster } from "../kubernetes/component.ts";
import { declaresWebSocket, modeOf } from "../nodes/streaming-mode.ts";
import type { Subresource } from "../sessions/streaming-request.ts";
import { explainClients } from "./explain-clients.ts";
import { askAdmin, explainNode } from "./explain-node.ts";
import { explainPolicy } from "./explain-policy.ts";
import { helpText, parseFlags } from "./flags.ts";
import { UsageError } from "./usage-error.ts";

const HELP = helpText("sluice explain --config FILE (SUBRESOURCE NAMESPACE/POD | node/NAME) [flags]", [
  ["SUBRESOURCE", "exec, attach or portforward"],
  ["node/NAME", "how sessions reach a node, instead of one session"],
  ["--config FILE", "GatewayConfiguration"],
  ["--admin URL", "a running gateway's admin listener, to count what it learned of the node"],
  ["--container NAME", "as kubectl -c"],
  ["--user NAME", "who asks, for the policy's rules; without it no rule is evaluated"],
  ["--group NAME", "a group of the user; may be given several times"],
  ["--command ARG", "an argument of the command; once for each, the program first"],
  ["--tty, --stdin", "as kubectl -t and -i"],
  ["--port NUMBER", "a port to forward; may be given several times"],
  ["--reason TEXT", "as the header Sluice-Reason"],
]);

/** Says where a request would go, by which path for each kind of client, and why. Exit code 1 when it would be refused. */
export async function run(args: string[]): Promise<number> {
  const { values, positionals } = parseFlags({
    args,
    allowPositionals: true,
    options: {
      config: { type: "string" },
      admin: { type: "string" },
      container: { type: "string" },
      user: { type: "string" },
      group: { type: "string", multiple: true },
      command: { type: "string", multiple: true },
      tty: { type: "boolean" },
      stdin: { type: "boolean" },
      port: { type: "string", multiple: true },
      reason: { type: "string" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (values.config === undefined) throw new UsageError(`--config FILE is required\n\n${HELP}`);
  const [, nodeName] = /^node\/([^/]+)$/.exec(positionals[0] ?? "") ?? [];
  if (nodeName !== undefined && positionals.length === 1) {
    return await explainNode(nodeName, values.config, values.admin);
  }
  const { subresource, namespace, pod } = parseTarget(positionals);
  const configuration = await loadConfiguration(values.config);
  const { kubelet, featureGates, policy } = configuration;
  try {
    const store = await snapshotCluster(configuration, (live) => live.lookUp(namespace, pod));
    const request = { subresource, namespace, pod, container: values.container };
    const locateOptions = {
      preferredAddressTypes: kubelet.preferredAddressTypes,
      defaultKubeletPort: kubelet.port,
    };
    const target = locate(store, request, locateOptions);
    const { name, host, port, declaredFeatures } = target.node;
    const container = target.container === undefined ? "" : `, container ${target.container}`;
    process.stdout.write(
      `${subresource} ${namespace}/${pod}${container}\n` +
        `node ${name} at ${kubelet.scheme}://${host}:${port}, declares ${declaredFeatures.join(", ") || "nothing"}\n\n`,
    );
    const { mode } = modeOf(target.node, kubelet.streaming);
    const declared = { declaresWebSocket: declaresWebSocket(target.node), mode, avoidedPaths: [] };
    const learned = values.admin === undefined ? undefined : await askAdmin(values.admin, name);
    const capability = learned?.capability ?? declared;
    process.stdout.write(explainClients(subresource, capability, featureGates));
    if (values.user === undefined) return 0;
    const podLabels = store.getPod(namespace, pod)?.metadata.labels ?? {};
    const session = { ...request, ...values, user: values.user, container: target.container, podLabels };
    const { text, isRefused } = explainPolicy(policy.rules, session);
    process.stdout.write(`\n${text}`);
    return isRefused ? 1 : 0;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    process.stdout.write(`refused with ${error.code}: ${error.message}\n`);
    return 1;
  }
}

function parseTarget(positionals: readonly string[]): {
  subresource: Subresource;
  namespace: string;
  pod: string;
} {
  const [subresource, target, ...more] = positionals;
  const [namespace, pod, ...rest] = (target ?? "").split("/");
  const isKnown = subresource === "exec" || subresource === "attach" || subresource === "portforward";
  if (!isKnown || !namespace || !pod || more.length > 0 || rest.length > 0) {
    throw new UsageError(`SUBRESOURCE and NAMESPACE/POD, or node/NAME, are needed\n\n${HELP}`);
  }
  return { subresource, namespace, pod };
}
