import type { Node } from "../api/objects.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { ApiClient } from "./api-client.ts";
import { ApiError } from "./api-error.ts";
import { objectPath } from "./live-resources.ts";

/** A kubelet that takes its list for the only one would otherwise be answered at once, for ever. */
export const PUBLISH_INTERVAL_MS = 10_000;

export interface FeaturePublisherOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly cluster: Pick<Cluster, "getNode" | "subscribe">;
  readonly nodes: readonly string[];
  readonly features: readonly string[];
  readonly onFailure: (node: string, problem: string) => void;
  readonly intervalMs?: number;
  readonly nowMs?: () => number;
}

/**
 * Adds features to `status.declaredFeatures` (KEP-5328) of nodes whose kubelets are reached through a gateway that has them, and does so
 * again when they are gone. What the kubelet declares stays.
 */
export class FeaturePublisher {
  readonly #options: FeaturePublisherOptions;
  readonly #nowMs: () => number;
  readonly #unsubscribe: () => void;
  readonly #notBeforeMs = new Map<string, number>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  #isStopped = false;

  constructor(options: FeaturePublisherOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    const nodes = new Set(options.nodes);
    this.#unsubscribe = options.cluster.subscribe(({ object, type }) => {
      if (object.kind === "Node" && type !== "DELETED" && nodes.has(object.metadata.name))
        this.#check(object);
    });
    for (const name of nodes) this.#check(options.cluster.getNode(name));
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
    if (this.#missing(node).length === 0 || this.#timers.has(name)) return;
    const waitMs = Math.max(0, (this.#notBeforeMs.get(name) ?? 0) - this.#nowMs());
    const timer = setTimeout(() => {
      this.#timers.delete(name);
      void this.#publish(name);
    }, waitMs).unref();
    this.#timers.set(name, timer);
  }

  #missing(node: Node): string[] {
    const declared = node.status?.declaredFeatures ?? [];
    return this.#options.features.filter((feature) => !declared.includes(feature));
  }

  async #publish(name: string): Promise<void> {
    const { client, cluster, intervalMs = PUBLISH_INTERVAL_MS, onFailure } = this.#options;
    const node = cluster.getNode(name);
    if (node === undefined || this.#isStopped) return;
    const missing = this.#missing(node);
    if (missing.length === 0) return;
    this.#notBeforeMs.set(name, this.#nowMs() + intervalMs);
    // Sorted and without doubles, as the API wants it; the version guards what the kubelet may have written meanwhile.
    const declaredFeatures = [...(node.status?.declaredFeatures ?? []), ...missing].sort();
    const json = {
      metadata: { resourceVersion: node.metadata.resourceVersion },
      status: { declaredFeatures },
    };
    try {
      await client.json({
        method: "PATCH",
        path: `${objectPath("Node", "", name)}/status`,
        body: { contentType: "application/merge-patch+json", json },
      });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 409)) onFailure(name, (error as Error).message);
      this.#check(cluster.getNode(name));
    }
  }
}
