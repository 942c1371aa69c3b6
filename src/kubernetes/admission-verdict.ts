import { reportFault } from "@sluice/client/internal/observability/faults";
import {
  ADMISSION_RESOURCES,
  type AdmissionObjects,
  type AdmissionResource,
  type ConnectRequest,
  type ConnectRule,
  connectRulesOf,
} from "../api/admission/connect-rules.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { AdmissionReason } from "../sessions/plan.ts";
import { type ApiClient, ApiError } from "./api-client.ts";
import { listIn } from "./list-pages.ts";
import { metadataIn } from "./live-object.ts";

const GROUP = "/apis/admissionregistration.k8s.io";
/**
 * The newest version first. Before Kubernetes 1.36 only older versions have
 * MutatingAdmissionPolicy.
 */
const VERSIONS = ["v1", "v1beta1", "v1alpha1"];
export const RESOURCES = Object.keys(ADMISSION_RESOURCES) as AdmissionResource[];

/** The session that the webhook or policy would judge. */
export type ConnectSession = Omit<ConnectRequest, "namespaceLabels">;

/** Why the session must go through the API server. */
export interface AdmissionVerdict {
  readonly reason: AdmissionReason;
  /** Names the webhook or policy, or says why the gateway cannot tell whether there is one. */
  readonly by: string;
}

/**
 * Judges one CONNECT by the cluster's present webhooks and policies. Rejects as `ApiClient.json`
 * does.
 */
export async function judgeOnce(
  client: Pick<ApiClient, "json">,
  cluster: Pick<Cluster, "getNamespace">,
  request: ConnectSession,
): Promise<AdmissionVerdict | undefined> {
  const objects: Partial<Record<AdmissionResource, ReadonlyMap<string, unknown>>> = {};
  for (const [resource, path] of await servedPaths(client)) {
    const items = listIn(await client.json({ path }), "items");
    objects[resource] = new Map(items.map((item) => [metadataIn(item).name ?? "", item]));
  }
  return verdictOf(rulesIn(objects), request, cluster);
}

/** The cluster's rules. An object that cannot be read counts as judging every session. */
export function rulesIn(objects: AdmissionObjects): readonly ConnectRule[] {
  try {
    return connectRulesOf(objects).map((rule) => ({
      ...rule,
      matches: (request) => mayMatch(rule, request),
    }));
  } catch (error) {
    reportFault("cluster", new Error("a webhook or policy cannot be read", { cause: error }));
    return [{ source: "an object that cannot be read", matches: () => true }];
  }
}

function mayMatch(rule: ConnectRule, request: ConnectRequest): boolean {
  try {
    return rule.matches(request);
  } catch (error) {
    reportFault("cluster", new Error(`${rule.source} cannot be read`, { cause: error }));
    return true;
  }
}

/** The first rule that matches decides. */
export function verdictOf(
  rules: readonly ConnectRule[],
  request: ConnectSession,
  cluster: Pick<Cluster, "getNamespace">,
): AdmissionVerdict | undefined {
  const namespace = cluster.getNamespace(request.namespace);
  const namespaceLabels = namespace && (namespace.metadata.labels ?? {});
  const rule = rules.find((candidate) => candidate.matches({ ...request, namespaceLabels }));
  return rule && { reason: "admission-judges-it", by: rule.source };
}

/**
 * The path of each kind in its newest served version; undefined if it is not served. Rejects as
 * `ApiClient.json` does.
 */
export async function servedPaths(
  client: Pick<ApiClient, "json">,
  signal?: AbortSignal,
): Promise<ReadonlyMap<AdmissionResource, string>> {
  const served = new Map<AdmissionResource, string>();
  for (const version of VERSIONS) {
    if (served.size === RESOURCES.length) break;
    const names = await resourceNames(client, `${GROUP}/${version}`, signal);
    for (const resource of RESOURCES) {
      if (names.has(resource) && !served.has(resource))
        served.set(resource, `${GROUP}/${version}/${resource}`);
    }
  }
  return served;
}

async function resourceNames(
  client: Pick<ApiClient, "json">,
  path: string,
  signal: AbortSignal | undefined,
): Promise<ReadonlySet<unknown>> {
  try {
    const resources = listIn(await client.json({ path, signal }), "resources");
    return new Set(resources.map((resource) => (resource as { name?: unknown } | null)?.name));
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return new Set();
    throw error;
  }
}
