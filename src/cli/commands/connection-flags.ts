import type { FlagTable } from "../../config/flag.ts";

const group = "Flags of kubectl, also before the command";

/** How the API server is found and spoken to: kubectl's names and meanings. */
export const connectionFlags = {
  namespace: {
    short: "n",
    value: "NAME",
    help: "the namespace of the pod; without it the context's, or default",
    completes: "namespace",
    group,
  },
  kubeconfig: {
    value: "FILE",
    help: "the kubeconfig; without it $KUBECONFIG, ~/.kube/config, or the pod's own service account",
    completes: "file",
    group,
  },
  context: {
    value: "NAME",
    help: "a context of the kubeconfig, instead of the current one",
    completes: "context",
    group,
  },
  v: {
    short: "v",
    value: "LEVEL",
    help: "details on stderr: 4 shows fallbacks, 6 requests, 7 their headers, 8 those of responses, too",
    group,
  },
} as const satisfies FlagTable;
