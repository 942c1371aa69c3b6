import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { matchKubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { completeWithSocket } from "../../listeners/audit-request.ts";
import { createListener, type Listener, type ListenerOptions } from "../../listeners/listener.ts";
import { writeAnswer } from "../../listeners/write-answer.ts";
import { countingRefusals } from "../../sessions/count-refusals.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import { runResumable } from "../../sessions/resumption/run-resumable.ts";
import { admitCaller } from "./admit-caller.ts";
import { kubeletAttributes } from "./kubelet-authorization.ts";
import { kubeletLeg } from "./kubelet-leg.ts";
import { isNeverRelayed } from "./kubelet-upstream.ts";
import { podListOf } from "./list-pods.ts";
import type { NodeContext } from "./node-context.ts";
import { relayRequest, relayUpgrade } from "./relay-to-kubelet.ts";
import { runCommand } from "./run-command.ts";
import { serveLogs } from "./serve-logs.ts";
import { isSessionPath, requireUtf8 } from "./session-request.ts";
import { statsSummary } from "./stats-summary.ts";
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
