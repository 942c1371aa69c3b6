import { ADMISSION_RESOURCES } from "../api/admission/connect-rules.ts";
import type { ObjectKind } from "../api/objects.ts";
import { SESSION_KINDS } from "../cluster/cluster.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { LiveApi } from "../config/sections/cluster.ts";
import { servesApi } from "../config/sections/listeners.ts";
import { API_SERVERS_NEED, reservesApiServers } from "./api-server-endpoints.ts";

/** A permission that the gateway's account needs, and the configuration that needs it. */
export interface RequiredRule {
  readonly apiGroup: string;
  readonly resources: readonly string[];
  /** Replaces resources. */
  readonly nonResourceURLs?: readonly string[];
  /** Limits the rule to these objects; absent means all. */
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
  readonly neededBy: string;
  /** False if other credentials or a Role may grant it; a missing permission then shows only in use. */
  readonly isChecked: boolean;
  /** The namespace that needs it; absent means all namespaces, or a cluster-scoped resource. */
  readonly namespace?: string;
  /** The first Kubernetes 1.x minor version that knows these verbs. */
  readonly sinceMinor?: number;
}

/** The extra that tells the API server which user sent an impersonated request. */
export const REQUESTED_BY_KEY = "sluice.dev/requested-by";

/** Kubernetes has no wildcard `userextras/*`. API servers set these keys for certificates and tokens. */
const EXTRA_KEYS = ["credential-id", "node-name", "node-uid", "pod-name", "pod-uid"];

/** What the configuration needs, in the order of deploy/examples/rbac.yaml; none without a live API. */
export function requiredRules(configuration: GatewayConfiguration): RequiredRule[] {
  const { live } = configuration.cluster;
  return [
    ...(live === undefined ? [] : clusterRules(live, configuration)),
    ...reviewRules(configuration),
    ...forwardingRules(configuration),
    ...(live?.publishDeclaredFeatures === undefined
      ? []
      : [rule("", ["nodes/status"], ["patch"], "cluster.publishDeclaredFeatures")]),
    ...(configuration.listeners.kubelet?.upstream === undefined
      ? []
      : [
          rule(
            "",
            KUBELET_PAGES,
            ["get"],
            "listeners.kubelet.upstream; not nodes/proxy, which is exec",
            false,
          ),
        ]),
  ];
}

/** Kubelet pages that metrics-server, Prometheus and `kubectl get --raw` read. */
const KUBELET_PAGES = ["metrics", "stats", "log", "configz", "healthz", "pods", "statusz"].map(
  (page) => `nodes/${page}`,
);

function clusterRules(live: LiveApi, configuration: GatewayConfiguration): RequiredRule[] {
  const { authorization, listeners, podProbes } = configuration;
  const modes = modesOf({ authorization, listeners });
  const { ingress, peers } = listeners;
  const probesPods = podProbes.nodeNames.length > 0;
  return [
    ...sessionRules(configuration),
    ...(reservesApiServers(configuration)
      ? [
          {
            ...rule("discovery.k8s.io", ["endpointslices"], ["list", "watch"], API_SERVERS_NEED),
            resourceNames: ["kubernetes"],
            namespace: "default",
          },
        ]
      : []),
    ...(servesApi(listeners) && live.admission === "apiServer"
      ? [rule("admissionregistration.k8s.io", ADMISSION, ["list", "watch"], "cluster.admission: apiServer")]
      : []),
    ...(modes.includes("RBAC")
      ? [
          rule(
            RBAC_GROUP,
            ["roles", "clusterroles", "rolebindings", "clusterrolebindings"],
            ["list", "watch"],
            "authorization.mode: RBAC",
          ),
        ]
      : []),
    ...(ingress === undefined ? [] : ingressRules()),
    ...(ingress?.leaderElection.leaderElect || electsProber(configuration)
      ? [
          rule(
            "coordination.k8s.io",
            ["leases"],
            ["create", "get", "update"],
            "leaderElection of listeners.ingress and podProbes; a Role in the Lease's namespace suffices",
            false,
          ),
        ]
      : []),
    ...(ingress === undefined && peers?.service !== undefined
      ? [
          {
            ...rule(
              "discovery.k8s.io",
              ["endpointslices"],
              ["list", "watch"],
              "listeners.peers.service; a Role in its namespace suffices",
            ),
            namespace: peers.service.namespace,
          },
        ]
      : []),
    ...(ingress !== undefined || probesPods
      ? [rule("", ["events"], ["create", "get", "patch"], "listeners.ingress, podProbes")]
      : []),
    ...(probesPods ? [rule("", ["pods/status"], ["patch"], "podProbes")] : []),
    ...(live.podDeletionCost
      ? [rule("", ["pods"], ["patch"], "cluster.podDeletionCost; a Role in its namespace suffices", false)]
      : []),
  ];
}

/** Pods, nodes and namespaces, if needed: sessions read all three, Ingress only its routes' namespaces. */
export function watchedSessionKinds(configuration: GatewayConfiguration): readonly ObjectKind[] {
  const { cluster, listeners, podProbes } = configuration;
  const hasSessions = servesApi(listeners);
  const readers: Readonly<Partial<Record<ObjectKind, boolean>>> = {
    Pod: hasSessions || podProbes.nodeNames.length > 0,
    Node: hasSessions || cluster.live?.publishDeclaredFeatures !== undefined,
    Namespace: hasSessions || listeners.ingress !== undefined,
  };
  return SESSION_KINDS.filter((kind) => readers[kind]);
}

function sessionRules(configuration: GatewayConfiguration): RequiredRule[] {
  const resources = watchedSessionKinds(configuration).map((kind) => `${kind.toLowerCase()}s`);
  if (resources.length === 0) return [];
  const neededBy = servesApi(configuration.listeners)
    ? "listeners.apiServer"
    : "listeners.ingress, podProbes, cluster.publishDeclaredFeatures";
  return [rule("", resources, ["get", "list", "watch"], neededBy)];
}

function modesOf({
  authorization,
  listeners,
}: Pick<GatewayConfiguration, "authorization" | "listeners">): readonly string[] {
  return [...authorization.modes, ...(listeners.kubelet?.authorization?.modes ?? [])];
}

/** Token and access reviews; other credentials may send them. */
function reviewRules({ authentication, authorization, listeners }: GatewayConfiguration): RequiredRule[] {
  const asksTokens =
    authentication.tokenReview !== undefined || listeners.kubelet?.authentication?.tokenReview !== undefined;
  return [
    ...(asksTokens
      ? [rule(AUTHENTICATION_GROUP, ["tokenreviews"], ["create"], "authentication.tokenReview", false)]
      : []),
    ...(modesOf({ authorization, listeners }).includes("Webhook")
      ? [
          rule(
            "authorization.k8s.io",
            ["subjectaccessreviews"],
            ["create"],
            "authorization.mode: Webhook",
            false,
          ),
        ]
      : []),
  ];
}

/** Impersonation rules at the server that other requests go to. */
function forwardingRules({
  cluster: { live },
  listeners,
  upstreamAPIServer,
}: GatewayConfiguration): RequiredRule[] {
  if (!servesApi(listeners)) return [];
  if (upstreamAPIServer === undefined)
    return live?.forwardAs === "impersonate"
      ? impersonationRules(live, "cluster", "cluster.forwardAs: impersonate")
      : [];
  const { clientCertificateFile } = upstreamAPIServer;
  if (clientCertificateFile === undefined) return [];
  const rules = impersonationRules(
    upstreamAPIServer,
    "upstreamAPIServer",
    "upstreamAPIServer.clientCertificateFile",
  );
  // Not checked: that server is not the live API, or the certificate belongs to another account.
  return rules.map(({ sinceMinor: _, ...rest }) => ({ ...rest, isChecked: false }));
}

const ADMISSION = Object.keys(ADMISSION_RESOURCES);
const RBAC_GROUP = "rbac.authorization.k8s.io";
const AUTHENTICATION_GROUP = "authentication.k8s.io";

function rule(
  apiGroup: string,
  resources: readonly string[],
  verbs: readonly string[],
  neededBy: string,
  isChecked = true,
): RequiredRule {
  return { apiGroup, resources, verbs, neededBy, isChecked };
}

/** Whether replicas elect a prober. A node's own gateway has the runtime and no other replica. */
export function electsProber({ cluster, listeners, podProbes }: GatewayConfiguration): boolean {
  const { nodeNames, leaderElection } = podProbes;
  const ownNode = listeners.kubelet?.runtime.nodeName;
  const isOwn = ownNode !== undefined && nodeNames.includes(ownNode);
  return cluster.live !== undefined && nodeNames.length > 0 && leaderElection.leaderElect && !isOwn;
}

function ingressRules(): RequiredRule[] {
  const neededBy = "listeners.ingress";
  return [
    rule("", ["services"], ["list", "watch"], neededBy),
    rule("discovery.k8s.io", ["endpointslices"], ["list", "watch"], neededBy),
    rule("networking.k8s.io", ["ingresses", "ingressclasses"], ["list", "watch"], neededBy),
    rule("networking.k8s.io", ["ingresses/status"], ["patch"], neededBy),
    rule(
      "",
      ["secrets"],
      ["list", "watch"],
      "certificates that Ingresses name; Roles in their namespaces, also for those names alone, suffice",
      false,
    ),
  ];
}

/** Verbs for resources; other paths use HTTP methods. */
const RESOURCE_VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const METHODS = ["get", "head", "options", "post", "put", "patch", "delete"];

function impersonationRules(
  { impersonation, nameRequester }: Pick<LiveApi, "impersonation" | "nameRequester">,
  section: string,
  neededBy: string,
): RequiredRule[] {
  const extras = EXTRA_KEYS.map((key) => `userextras/authentication.kubernetes.io/${key}`);
  const requester = nameRequester ? [`userextras/${REQUESTED_BY_KEY}`] : [];
  if (impersonation === "legacy") {
    return [
      rule("", ["users", "groups", "serviceaccounts"], ["impersonate"], neededBy),
      rule(AUTHENTICATION_GROUP, ["uids", ...extras], ["impersonate"], neededBy),
      ...(nameRequester
        ? [rule(AUTHENTICATION_GROUP, requester, ["impersonate"], `${section}.nameRequester`)]
        : []),
    ];
  }
  const why = (what: string): string => `${section}.impersonation: constrained; ${what}`;
  const since = { sinceMinor: 36 };
  const modes = ["user-info", "serviceaccount"];
  const on = (verbs: readonly string[]): string[] =>
    modes.flatMap((mode) => verbs.map((verb) => `impersonate-on:${mode}:${verb}`));
  const asUser = ["impersonate:user-info"];
  return [
    {
      ...rule(
        AUTHENTICATION_GROUP,
        ["users", "groups", "uids", ...extras],
        asUser,
        why("any user but nodes and members of system:masters"),
      ),
      ...since,
    },
    ...(nameRequester
      ? [{ ...rule(AUTHENTICATION_GROUP, requester, asUser, `${section}.nameRequester`), ...since }]
      : []),
    {
      ...rule(
        AUTHENTICATION_GROUP,
        ["serviceaccounts"],
        ["impersonate:serviceaccount"],
        why("service accounts, by name alone"),
      ),
      ...since,
    },
    { ...rule("", ["pods"], on(["get"]), why("kubectl reads the pod before each session")), ...since },
    rule(
      "*",
      ["*"],
      on(RESOURCE_VERBS),
      why("what callers may do through the gateway; narrow it to taste"),
      false,
    ),
    {
      ...rule("", [], on(METHODS), why("paths such as /version and /openapi"), false),
      nonResourceURLs: ["*"],
    },
  ];
}
