import { CHANNEL } from "../../../protocols/remotecommand/index.ts";
import type { ProxyDefect } from "./broken-proxy.ts";
import { channelMessages, message } from "./byte-filters.ts";

/** What proxies were found to do wrong with Kubernetes' streams, each as a defect that can be injected. */
export const PROXY_DEFECTS: readonly ProxyDefect[] = [
  {
    id: "merges-stderr",
    what: "sends stderr on the channel of stdout",
    namedBy: ["exec/stderr-separate/websocket-v5"],
    downstream: () => channelMessages(false, CHANNEL.STDERR, (payload) => [message(CHANNEL.STDOUT, payload)]),
  },
  {
    id: "swallows-status",
    what: "drops what arrives on the error channel",
    namedBy: ["exec/stdout/websocket-v5", "exec/exit-codes/websocket-v5"],
    downstream: () => channelMessages(false, CHANNEL.ERROR, () => []),
  },
];
