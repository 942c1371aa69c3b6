import { checked, shaped, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, file, implied, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { duration } from "../number-fields.ts";
import { files, optionalSection, strings } from "../section-fields.ts";
import { impersonationFields } from "./upstream-api-server.ts";

const KUBECONFIG_FLAG = "kubeconfig";

const published = table({
  nodes: strings("Nodes whose kubelet is behind a Sluice.", {
    required: "is required: the nodes that a Sluice fronts",
  }),
  features: strings("Names of the features.", {
    default: ["ExtendWebSocketsToKubelet"],
    check: checkFeature,
  }),
});

const fields = table({
  manifests: files("Files, or folders of files, with the cluster's objects. Sluice follows their changes."),
  kubeconfig: file("Kubeconfig of the Kubernetes API to read the cluster's objects from.", "kubeconfig", {
    flag: KUBECONFIG_FLAG,
  }),
  inCluster: boolean("Use the pod's own service account, and the API of its cluster.", {
    default: false,
    impliedBy: [implied(KUBECONFIG_FLAG, null)],
  }),
  context: string("Context of the kubeconfig. Absent: its current context.", {
    impliedBy: [implied(KUBECONFIG_FLAG, null)],
  }),
  forwardAs: choice(
    "Identity of requests forwarded to this API, unless `upstreamAPIServer` names another: the caller's credentials, or the gateway's with impersonation headers.",
    ["caller", "impersonate"],
    { default: "caller" },
  ),
  ...impersonationFields,
  admission: choice(
    "Which sessions go through the API server for its admission. `apiServer`: those that a webhook or policy may match; `always`: all; `none`: none.",
    ["apiServer", "always", "none"],
    { default: "apiServer" },
  ),
  maxStateAge: duration(
    "How long cached objects are trusted while the API is unreachable. Past it sessions get 503.",
    { as: "maxStateAgeMs", default: "5m", from: "1s", to: "24h" },
  ),
  podDeletionCost: boolean(
    "Annotate this pod (variable POD_NAME) with its number of sessions, so that a scale-in removes idle replicas first.",
    { default: false },
  ),
  publishDeclaredFeatures: optionalSection(
    "Tell gateways the features of nodes: in an annotation, and in `status.declaredFeatures` if no kubelet writes it.",
    shaped(published, (values) => ({ ...values, features: [...new Set(values.features)].sort() })),
  ),
});

/** The source of the cluster's objects: manifests or a live API. */
export const cluster = shaped(checked(fields, checkSources), ({ manifests, inCluster, ...live }) => ({
  manifests,
  live: live.kubeconfig !== undefined || inCluster ? live : undefined,
}));

export type LiveApi = NonNullable<ValueOf<typeof cluster>["live"]>;

const READ_WITH_LIVE_API = [
  "forwardAs",
  "impersonation",
  "nameRequester",
  "admission",
  "maxStateAge",
  "podDeletionCost",
  "publishDeclaredFeatures",
];

function checkSources(
  { manifests, kubeconfig, inCluster, context }: ValueOf<typeof fields>,
  section: Section,
): void {
  const isLive = kubeconfig !== undefined || inCluster;
  if (kubeconfig !== undefined && inCluster)
    section.problem("inCluster", "must be false if kubeconfig is given");
  if (isLive && manifests.length > 0) {
    if (section.flagOf("kubeconfig") === undefined)
      section.problem("manifests", "must be empty if a live API is named: objects have one source");
    else section.problem("kubeconfig", "is not for a configuration with cluster.manifests");
  }
  if (context !== undefined && kubeconfig === undefined)
    section.problem("context", "is read with kubeconfig only");
  for (const name of READ_WITH_LIVE_API) {
    if (!isLive && section.has(name)) section.problem(name, "is read with kubeconfig or inCluster only");
  }
}

function checkFeature(value: string): string | undefined {
  return /^[A-Za-z][A-Za-z0-9/]*$/.test(value)
    ? undefined
    : `must be a feature's name, got ${JSON.stringify(value)}`;
}
