import type { Section } from "./section.ts";

export const FORWARD_CREDENTIALS = ["caller", "impersonate"] as const;

export interface ClusterSources {
  /** Files, or folders of files, with the manifests of what is where. Empty where a live API tells it. */
  readonly manifests: readonly string[];
  /** Absent: manifests alone. */
  readonly live: LiveApi | undefined;
}

/** A Kubernetes API that tells what is where. */
export interface LiveApi {
  /** Undefined: the cluster that this process is a pod of. */
  readonly kubeconfig: string | undefined;
  /** Undefined: the file's current one. */
  readonly context: string | undefined;
  /**
   * What is not streaming goes to this API server too, unless `upstreamAPIServer` names another: with the caller's own credentials, or
   * with ours in the caller's name.
   */
  readonly forwardAs: (typeof FORWARD_CREDENTIALS)[number];
  readonly publishDeclaredFeatures: PublishedFeatures | undefined;
}

/** Features that are written into `status.declaredFeatures` of nodes whose kubelet is reached through a Sluice that has them. */
export interface PublishedFeatures {
  readonly nodes: readonly string[];
  readonly features: readonly string[];
}

export const EXTEND_WEBSOCKETS = "ExtendWebSocketsToKubelet";

export function readClusterSources(section: Section): ClusterSources {
  const manifests = section.files("manifests");
  const kubeconfig = section.optionalFile("kubeconfig", "text");
  const inCluster = section.boolean("inCluster", false);
  const context = section.optionalString("context");
  const forwardAs = section.choice("forwardAs", "caller", FORWARD_CREDENTIALS);
  const hasFeatures = section.has("publishDeclaredFeatures");
  const features = readPublished(section.section("publishDeclaredFeatures"), hasFeatures);
  const isLive = kubeconfig !== undefined || inCluster;
  if (kubeconfig !== undefined && inCluster)
    section.problem("inCluster", "must be false where kubeconfig is given");
  if (isLive && manifests.length > 0) {
    section.problem("manifests", "must be empty where a live API is named: one source tells what is where");
  }
  if (context !== undefined && kubeconfig === undefined)
    section.problem("context", "is read with kubeconfig only");
  for (const name of ["forwardAs", "publishDeclaredFeatures"]) {
    if (!isLive && section.has(name)) section.problem(name, "is read with kubeconfig or inCluster only");
  }
  section.finish();
  const live = { kubeconfig, context, forwardAs, publishDeclaredFeatures: features };
  return { manifests, live: isLive ? live : undefined };
}

function readPublished(section: Section, isGiven: boolean): PublishedFeatures | undefined {
  const nodes = section.strings("nodes", [], () => undefined);
  const features = section.strings("features", [EXTEND_WEBSOCKETS], checkFeature);
  if (isGiven && nodes.length === 0) section.problem("nodes", "is required: the nodes that a Sluice fronts");
  section.finish();
  return isGiven ? { nodes, features: [...new Set(features)].sort() } : undefined;
}

function checkFeature(value: string): string | undefined {
  return /^[A-Za-z][A-Za-z0-9/]*$/.test(value)
    ? undefined
    : `must be a feature's name, got ${JSON.stringify(value)}`;
}
