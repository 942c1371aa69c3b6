import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { IncomingStreaming } from "../gateway/incoming-request.ts";
import { createListener, type ListenerOptions } from "../gateway/listener.ts";
import { admitCaller } from "./admit-caller.ts";
import { kubeletAttributes } from "./kubelet-authorization.ts";
import { matchKubeletPath } from "./kubelet-path.ts";
import type { NodeContext } from "./node-context.ts";
import { prepareSession, serveSession } from "./serve-session.ts";
import { isSessionPath } from "./session-request.ts";
import { refusalOfRuntime, refuseUpgradeInText, textRefusal, writeTextRefusal } from "./text-refusal.ts";

/** The listener of the node: the kubelet's HTTP API over a container runtime. Not yet listening. */
export function createKubeletServer(node: NodeContext, options: ListenerOptions): Server {
  return createListener(
    node.gateway,
    {
      handleRequest: async (incoming, request, response) => {
        try {
          await answer(incoming, request, response, node);
        } catch (error) {
          throw refusalOfRuntime(error);
        }
      },
      handleUpgrade: async (incoming, _request, client) => {
        const path = matchKubeletPath(incoming.url.pathname);
        if (path !== undefined && isSessionPath(path))
          return await serveSession(path, incoming, client, node);
        await admitCaller(incoming, false, node);
        throw textRefusal(404, "404 page not found\n");
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
  request: IncomingMessage,
  response: ServerResponse,
  node: NodeContext,
): Promise<void> {
  request.resume();
  const path = matchKubeletPath(incoming.url.pathname);
  if (path !== undefined && isSessionPath(path)) {
    // Refused for whatever is wrong first, and at last for not being an upgrade.
    await prepareSession(path, incoming, node);
    throw textRefusal(500, "Upgrade request required");
  }
  await admitCaller(incoming, false, node);
  const page = incoming.url.pathname.replace(/(.)\/$/, "$1");
  if (page !== "/healthz") throw textRefusal(404, "404 page not found\n");
  if (incoming.method !== "GET") throw textRefusal(405, "405: Method Not Allowed");
  await node.runtime.version();
  response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
  response.end("ok");
}
