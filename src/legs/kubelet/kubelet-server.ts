import { type PodLogOptions, parsePodLogOptions } from "@sluice/client/internal/api/pod-log-options";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { type KubeletPath, matchKubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { CONTAINER_STATE, type CriRuntime, type RuntimeContainer } from "../../cri/cri-runtime.ts";
import { findRunningContainer, findSandbox, listAttempts } from "../../cri/pods.ts";
import { RuntimeError } from "../../cri/runtime-error.ts";
import { waitForDrain, writeAnswer } from "../../listeners/answer.ts";
import { completeWithSocket } from "../../listeners/audit-request.ts";
import { createListener, type Listener, type ListenerOptions } from "../../listeners/listener.ts";
import { countingRefusals } from "../../sessions/count-refusals.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { runResumable } from "../../sessions/resumption/run-resumable.ts";
import { admitCaller, kubeletAttributes, type NodeContext } from "./admit-caller.ts";
import { isSessionPath, kubeletLeg, requireUtf8 } from "./kubelet-leg.ts";
import { type LogSource, openLog, readLog } from "./logs/read-log.ts";
import { relayRequest, relayUpgrade } from "./relay-to-kubelet.ts";
import { podListOf, statsSummary } from "./stats-summary.ts";
import { refusalOfRuntime, refuseUpgradeInText, writeTextRefusal } from "./text-refusal.ts";

/** Creates the node's listener, not yet listening: the kubelet's HTTP API over a container runtime. */
export function createKubeletServer(node: NodeContext, options: ListenerOptions): Listener {
  return createListener(
    node.gateway,
    {
      takesAnyOrigin: true,
      handleRequest: async (incoming, downstream) => {
        try {
          await answer(incoming, downstream, node);
        } catch (error) {
          throw refusalOfRuntime(error);
        }
      },
      handleUpgrade: async (incoming, client) => {
        const path = matchKubeletPath(incoming.url.pathname);
        if (path !== undefined && isSessionPath(path))
          return await runResumable(kubeletLeg(path, node), incoming, client, node.gateway);
        const { upstream } = node;
        const isRelayed = upstream !== undefined && !isNeverRelayed(incoming.url.pathname);
        await admitCaller(incoming, isRelayed, node);
        if (!isRelayed) throw WIRE_ERRORS["path-unknown"].kubelet();
        await relayUpgrade(incoming, client, upstream, node.gateway);
        if (incoming.trail !== undefined) completeWithSocket(incoming.trail, client.socket);
      },
      refuse: writeTextRefusal,
      refuseUpgrade: refuseUpgradeInText,
      attributesOf: (user, { method, url }) =>
        kubeletAttributes(user, node.nodeName, method, url.pathname)[0],
      isLongRunning: ({ pathname }) => matchKubeletPath(pathname) !== undefined,
    },
    options,
  );
}

async function answer(
  incoming: IncomingStreaming,
  downstream: HttpDownstream,
  node: NodeContext,
): Promise<void> {
  const { method, url } = incoming;
  const path = matchKubeletPath(url.pathname);
  const { runtime, nodeName, upstream } = node;
  if (upstream !== undefined && !isNeverRelayed(url.pathname)) {
    await admitCaller(incoming, false, node);
    return await relayRequest(incoming, downstream, upstream, node.gateway);
  }
  downstream.body.resume();
  if (path !== undefined && isSessionPath(path)) {
    // Refuses the first fault in order, and a missing upgrade last.
    const leg = kubeletLeg(path, node);
    await countingRefusals(leg.path, incoming, node.gateway, () => leg.admit(incoming));
    throw WIRE_ERRORS["no-upgrade"].kubelet();
  }
  await admitCaller(incoming, false, node);
  if (path?.action === "run") {
    requireMethod("POST", method);
    requireUtf8(url);
    return await runCommand(path, url.searchParams, downstream, runtime);
  }
  if (path?.action === "containerLogs") {
    requireMethod("GET", method);
    return await serveLogs(path, url.searchParams, downstream, runtime);
  }
  switch (url.pathname.replace(/(.)\/$/, "$1")) {
    case "/healthz":
      requireMethod("GET", method);
      await runtime.version();
      return send(downstream, "text/plain; charset=utf-8", "ok");
    case "/pods":
      requireMethod("GET", method);
      return send(downstream, "application/json", JSON.stringify(await podListOf(runtime, nodeName)));
    case "/stats/summary":
      requireMethod("GET", method);
      return send(downstream, "application/json", JSON.stringify(await statsSummary(runtime, nodeName)));
    default:
      throw WIRE_ERRORS["path-unknown"].kubelet();
  }
}

function requireMethod(wanted: string, method: string): void {
  if (method !== wanted) throw WIRE_ERRORS["method-not-allowed"].kubelet();
}

function send(downstream: HttpDownstream, contentType: string, body: string): void {
  writeAnswer(downstream, 200, [["Content-Type", contentType]], Buffer.from(body));
}

/**
 * Answers `/run`: runs `cmd`, split at single blanks, and returns its output, stdout first, labelled JSON as
 * by the kubelet. Throws the kubelet's refusals; 500 with a failed command's output.
 */
async function runCommand(
  path: KubeletPath,
  query: URLSearchParams,
  downstream: HttpDownstream,
  runtime: CriRuntime,
): Promise<void> {
  const sandbox = await findSandbox(runtime, path);
  const container = await findRunningContainer(runtime, sandbox, path.container);
  const command = (query.get("cmd") ?? "").split(" ");
  const { stdout, stderr, exitCode } = await runtime.execSync(container.id, command, 0);
  const output = Buffer.concat([stdout, stderr]);
  if (exitCode !== 0) {
    const facts = { command: command.join(" "), exitCode, output: output.toString() };
    throw WIRE_ERRORS["command-failed"].kubelet(facts);
  }
  writeAnswer(downstream, 200, [["Content-Type", "application/json"]], output);
}

/**
 * Answers `/containerLogs`. Throws the kubelet's refusals; resolves when the log ends or the client
 * leaves.
 */
async function serveLogs(
  path: KubeletPath,
  query: URLSearchParams,
  downstream: HttpDownstream,
  runtime: CriRuntime,
): Promise<void> {
  const options = parsePodLogOptions(query, Date.now());
  const container = await findLogged(path, options, runtime);
  const source = await sourceOf(container, runtime);
  const file = await openLog(source.path).catch((error: unknown) => {
    throw unreadable(container, error);
  });
  const abort = new AbortController();
  // Aborts at once if the client left while the log was looked up.
  downstream.onClose(() => abort.abort());
  // A followed log may be silent for long, so the head does not wait for its first line.
  const sink = downstream.respond(200, "OK", [
    ["Content-Type", "text/plain; charset=utf-8"],
    ["Date", new Date().toUTCString()],
  ]);
  for await (const part of readLog(file, source, options, abort.signal)) {
    if (!sink.write(part)) await waitForDrain(sink);
  }
  downstream.finish([]);
}

async function findLogged(
  path: KubeletPath,
  { previous }: PodLogOptions,
  runtime: CriRuntime,
): Promise<RuntimeContainer> {
  const { pod, container: name } = path;
  const sandbox = await findSandbox(runtime, path).catch((error: unknown) => {
    if (error instanceof RuntimeError) throw error;
    throw WIRE_ERRORS["log-pod-unknown"].kubelet({ pod: JSON.stringify(pod) });
  });
  const attempts = await listAttempts(runtime, sandbox, name);
  const quoted = { container: JSON.stringify(name), pod: JSON.stringify(pod) };
  const [present, ...earlier] = attempts;
  if (present === undefined) {
    throw WIRE_ERRORS["log-container-unknown"].kubelet(quoted);
  }
  if (previous) {
    // A restarted container that exited is about to restart again: like the kubelet, treats this
    // attempt as the last one and the next as waiting.
    const isWaiting = present.state === CONTAINER_STATE.exited && present.metadata.attempt > 0;
    const last = isWaiting ? present : earlier.find(({ state }) => state === CONTAINER_STATE.exited);
    if (last === undefined) throw WIRE_ERRORS["log-not-previous"].kubelet(quoted);
    return last;
  }
  if (present.state === CONTAINER_STATE.created) {
    throw WIRE_ERRORS["log-not-started"].kubelet(quoted);
  }
  return present;
}

async function sourceOf({ id }: RuntimeContainer, runtime: CriRuntime): Promise<LogSource> {
  const { logPath } = await runtime.containerStatus(id);
  return {
    path: logPath,
    isRunning: async () => {
      try {
        return (await runtime.containerStatus(id)).state === CONTAINER_STATE.running;
      } catch (error) {
        // A restarting runtime leaves its containers running.
        return !(error instanceof RuntimeError) || error.code !== "NotFound";
      }
    },
  };
}

/** Uses the kubelet's words; the file system's error stays on the node. */
function unreadable({ id }: RuntimeContainer, cause: unknown): Error {
  const refusal = WIRE_ERRORS["log-unreadable"].kubelet({ id });
  refusal.cause = cause;
  return refusal;
}

/**
 * Sluice serves these itself and never relays them: a session with the kubelet would escape the
 * listener's limits and its `create` check.
 */
const NEVER_RELAYED = /^\/(?:exec|attach|portForward|run|containerLogs|cri)(?:\/|$)/;

function isNeverRelayed(pathname: string): boolean {
  return NEVER_RELAYED.test(pathname);
}
