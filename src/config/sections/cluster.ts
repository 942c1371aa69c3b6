import { checked, shaped, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, choice, file, implied, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { files, strings } from "../list-fields.ts";
import { duration } from "../number-fields.ts";
import { optionalSection } from "../section-fields.ts";
import { impersonationFields } from "./upstream-api-server.ts";

const KUBECONFIG_FLAG = "kubeconfig";

const published = table({
  nodes: strings("The nodes whose kubelet is reached through a Sluice.", {
    required: "is required: the nodes that a Sluice fronts",
  }),
  features: strings("Names of the features.", {
    default: ["ExtendWebSocketsToKubelet"],
    check: checkFeature,
  }),
});

const fields = table({
  manifests: files(
    "Files, or folders of files, with the cluster's objects. Changes are picked up while running.",
  ),
  kubeconfig: file("Kubeconfig of the Kubernetes API that holds the cluster's objects.", "text", {
    flag: KUBECONFIG_FLAG,
  }),
  inCluster: boolean(
    "Use the API of the cluster that this pod runs in, with the pod's own service account.",
    {
      default: false,
      impliedBy: [implied(KUBECONFIG_FLAG, null)],
    },
  ),
  context: string("Context of the kubeconfig. Absent: its current context.", {
    impliedBy: [implied(KUBECONFIG_FLAG, null)],
  }),
  forwardAs: choice(
    "Requests that do not stream are forwarded to this API, unless `upstreamAPIServer` names another: with the caller's own credentials, or with the gateway's and impersonation headers.",
    ["caller", "impersonate"],
    { default: "caller" },
  ),
  ...impersonationFields,
  admission: choice(
    "Which sessions the API server carries, so that its admission is asked: those for which a webhook or a policy has a rule, all, or none.",
    ["apiServer", "always", "none"],
    { default: "apiServer" },
  ),
  maxStateAge: duration(
    "While the API is away, what is known of its objects counts for so long. Past it sessions are refused with 503.",
    { as: "maxStateAgeMs", default: "5m", from: "1s", to: "24h" },
  ),
  podDeletionCost: boolean(
    "The pod of this process, which the environment variable POD_NAME names, is annotated with its sessions, so that a scale-in prefers empty replicas.",
    { default: false },
  ),
  publishDeclaredFeatures: optionalSection(
    "Features of nodes that gateways are to know: in an annotation, and in `status.declaredFeatures` where no kubelet owns it.",
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
    section.problem("inCluster", "must be false where kubeconfig is given");
  if (isLive && manifests.length > 0) {
    if (section.flagOf("kubeconfig") === undefined)
      section.problem("manifests", "must be empty where a live API is named: objects have one source");
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
