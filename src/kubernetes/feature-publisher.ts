import type { Node } from "../api/objects.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { publishedFeaturesOf, unionOf } from "../cluster/locate.ts";
import { PUBLISHED_FEATURES_ANNOTATION } from "../config/sections/kubelet.ts";
import type { ClusterMetrics } from "../observability/cluster-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import { type ApiClient, ApiError } from "./api-client.ts";
import { liveObject, objectPath } from "./live-object.ts";

/**
 * How long a shutdown may spend on withdrawing features. Past it the features stay until the next
 * start.
 */
const WITHDRAW_TIMEOUT_MS = 2_000;
/** The pause between two writes to one node, in case another program keeps reverting them. */
const PUBLISH_INTERVAL_MS = 10_000;
/** Our name in `managedFields`. */
const FIELD_MANAGER = "sluice";

interface FeaturePublisherOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly cluster: Pick<Cluster, "getNode" | "subscribe">;
  readonly nodes: readonly string[];
  /** Features whose gates are on; other features that we published are withdrawn. */
  readonly features: readonly string[];
  readonly metrics: Pick<ClusterMetrics, "featuresRemoved">;
  readonly logger: Pick<Logger, "info" | "warn">;
  readonly intervalMs?: number;
  readonly nowMs?: () => number;
}

/** The lists to write; `declared` is undefined if its owner keeps it. */
interface Lists {
  readonly declared: readonly string[] | undefined;
  readonly published: readonly string[];
}

/**
 * Publishes features of nodes behind a Sluice: in an annotation for gateways, and in
 * `status.declaredFeatures` (KEP-5328) unless a kubelet writes that list
 * (docs/decisions/0042-published-features.md).
 */
export class FeaturePublisher {
  readonly #options: FeaturePublisherOptions;
  readonly #nowMs: () => number;
  readonly #unsubscribe: () => void;
  readonly #notBeforeMs = new Map<string, number>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  /** Nodes that list features published by us. */
  readonly #listed = new Set<string>();
  #features: readonly string[];
  #isStopped = false;

  constructor(options: FeaturePublisherOptions) {
    this.#options = options;
    this.#features = options.features;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    const nodes = new Set(options.nodes);
    this.#unsubscribe = options.cluster.subscribe(({ object, type }) => {
      if (object.kind === "Node" && type !== "DELETED" && nodes.has(object.metadata.name))
        this.#check(object);
    });
    for (const name of nodes) this.#check(options.cluster.getNode(name));
  }

  /** Withdraws the published features: no Sluice serves them any more. Never rejects. */
  async withdraw(): Promise<void> {
    this.stop();
    this.#features = [];
    const signal = AbortSignal.timeout(WITHDRAW_TIMEOUT_MS);
    await Promise.all(this.#options.nodes.map((name) => this.#withdrawFrom(name, signal)));
  }

  async #withdrawFrom(name: string, signal: AbortSignal): Promise<void> {
    if (this.#options.cluster.getNode(name) === undefined) return;
    try {
      while (!(await this.#write(name, signal)) && !signal.aborted);
    } catch (error) {
      this.#failed(name, error);
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe();
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }

  #check(node: Node | undefined): void {
    if (node === undefined || this.#isStopped) return;
    const { name } = node.metadata;
    this.#noteConflict(node);
    if (listsFor(node, this.#features) === undefined || this.#timers.has(name)) return;
    const waitMs = Math.max(0, (this.#notBeforeMs.get(name) ?? 0) - this.#nowMs());
    const timer = setTimeout(() => {
      this.#timers.delete(name);
      void this.#publish(name);
    }, waitMs).unref();
    this.#timers.set(name, timer);
  }

  /**
   * We always write the annotation and the list together. If only one is there, the list has
   * another owner.
   */
  #noteConflict(node: Node): void {
    const { name } = node.metadata;
    const declared = node.status?.declaredFeatures ?? [];
    const features = publishedFeaturesOf(node.metadata).filter((feature) => !declared.includes(feature));
    if (features.length === 0 || !this.#listed.delete(name)) return;
    this.#options.metrics.featuresRemoved();
    this.#options.logger.warn(
      { node: name, features },
      "features were removed from a node's status.declaredFeatures, which has another owner: they stay in the annotation alone",
    );
  }

  async #publish(name: string): Promise<void> {
    const { cluster, intervalMs = PUBLISH_INTERVAL_MS } = this.#options;
    if (cluster.getNode(name) === undefined || this.#isStopped) return;
    this.#notBeforeMs.set(name, this.#nowMs() + intervalMs);
    try {
      if (await this.#write(name)) return;
    } catch (error) {
      this.#failed(name, error);
    }
    this.#check(cluster.getNode(name));
  }

  /**
   * Reads the node with its fields' owners and writes the difference. False if another writer was
   * faster. Rejects as the client does.
   */
  async #write(name: string, signal?: AbortSignal): Promise<boolean> {
    const { client, logger } = this.#options;
    const path = objectPath("Node", "", name);
    const answer = await client.json({ path, ...(signal && { signal }) });
    const node = liveObject("Node", answer) as Node;
    const owner = ownerOfList(answer);
    const lists = listsFor(node, this.#features, owner);
    if (lists === undefined) return true;
    const { declared, published } = lists;
    const annotation = published.length === 0 ? null : published.join(",");
    // The version protects concurrent writes of the kubelet, which writes annotations with its
    // status.
    const metadata = {
      resourceVersion: node.metadata.resourceVersion,
      annotations: { [PUBLISHED_FEATURES_ANNOTATION]: annotation },
    };
    try {
      await client.json({
        method: "PATCH",
        path: `${path}/status?fieldManager=${FIELD_MANAGER}`,
        body: {
          contentType: "application/merge-patch+json",
          json: { metadata, ...(declared && { status: { declaredFeatures: declared } }) },
        },
        ...(signal && { signal }),
      });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 409)) throw error;
      return false;
    }
    if (published.length === 0) return true;
    if (declared !== undefined) this.#listed.add(name);
    else logger.info({ node: name, features: published }, "features are published in the annotation alone");
    return true;
  }

  #failed(node: string, error: unknown): void {
    const problem = (error as Error).message;
    this.#options.logger.warn({ node, problem }, "a node's features could not be published");
  }
}

/**
 * The lists to write; undefined if they are right. If a published feature is missing from the list,
 * the list's owner removed it, and it stays out.
 */
function listsFor(node: Node, features: readonly string[], owner?: string): Lists | undefined {
  const declared = node.status?.declaredFeatures ?? [];
  const published = publishedFeaturesOf(node.metadata);
  const withdrawn = published.filter((feature) => !features.includes(feature));
  const missing = features.filter((feature) => !declared.includes(feature) && !published.includes(feature));
  if (withdrawn.length === 0 && missing.length === 0) return undefined;
  const kept = (list: readonly string[]) => list.filter((feature) => !withdrawn.includes(feature));
  // Other features come from a kubelet, which rewrites the whole list each time. A new Node records
  // no owner yet.
  const added = declared.every((feature) => published.includes(feature)) ? missing : [];
  const wanted = unionOf(kept(declared), added);
  return {
    declared: owner === undefined && wanted.join() !== declared.join() ? wanted : undefined,
    published: unionOf(kept(published), missing),
  };
}

/**
 * The last writer of a Node's `status.declaredFeatures` other than us; API servers record it
 * (KEP-555).
 */
function ownerOfList(node: unknown): string | undefined {
  const { metadata } = node as { metadata?: { managedFields?: unknown } | null };
  const entries = Array.isArray(metadata?.managedFields) ? (metadata.managedFields as ManagedFields[]) : [];
  const entry = entries.find(
    (each) =>
      each?.manager !== FIELD_MANAGER && each?.fieldsV1?.["f:status"]?.["f:declaredFeatures"] !== undefined,
  );
  return entry === undefined ? undefined : (entry?.manager ?? "");
}

type ManagedFields = {
  readonly manager?: string | null;
  readonly fieldsV1?: Readonly<Record<string, Readonly<Record<string, unknown>> | null | undefined>> | null;
} | null;
