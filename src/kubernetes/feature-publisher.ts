import type { Node } from "../api/objects.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { ApiClient } from "./api-client.ts";
import { ApiError } from "./api-error.ts";
import { liveObject } from "./live-object.ts";
import { objectPath } from "./live-resources.ts";

/** What of a node's declared features is ours, so that it can be taken back without what the kubelet declares. */
export const PUBLISHED_FEATURES_ANNOTATION = "sluice.dev/published-features";
/** In which features are withdrawn, at a shutdown. */
export const WITHDRAW_TIMEOUT_MS = 2_000;
/** A kubelet that takes its list for the only one would otherwise be answered at once, for ever. */
export const PUBLISH_INTERVAL_MS = 10_000;

export interface FeaturePublisherOptions {
  readonly client: Pick<ApiClient, "json">;
  readonly cluster: Pick<Cluster, "getNode" | "subscribe">;
  readonly nodes: readonly string[];
  /** Those whose gates are on; what was published before beside them is withdrawn. */
  readonly features: readonly string[];
  readonly onFailure: (node: string, problem: string) => void;
  readonly intervalMs?: number;
  readonly nowMs?: () => number;
}

/** What a node's lists are to be. */
interface Lists {
  readonly declared: readonly string[];
  readonly published: readonly string[];
}

/**
 * Adds features to `status.declaredFeatures` (KEP-5328) of nodes whose kubelets are reached through a gateway that has them, and does so
 * again when they are gone. What the kubelet declares stays. An annotation holds what is ours; it is taken back when its gate is off,
 * and by `withdraw`.
 */
export class FeaturePublisher {
  readonly #options: FeaturePublisherOptions;
  readonly #nowMs: () => number;
  readonly #unsubscribe: () => void;
  readonly #notBeforeMs = new Map<string, number>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
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

  /** Takes back what was published, for there is nothing behind it any more. Never rejects. */
  async withdraw(): Promise<void> {
    this.stop();
    this.#features = [];
    const signal = AbortSignal.timeout(WITHDRAW_TIMEOUT_MS);
    await Promise.all(this.#options.nodes.map((name) => this.#withdrawFrom(name, signal)));
  }

  /** Reads the node as it is now: the last write of ours may not have come back by the watch. */
  async #withdrawFrom(name: string, signal: AbortSignal): Promise<void> {
    const { client, cluster, onFailure } = this.#options;
    if (cluster.getNode(name) === undefined) return;
    try {
      for (let isWritten = false; !isWritten && !signal.aborted; ) {
        const node = liveObject(
          "Node",
          await client.json({ path: objectPath("Node", "", name), signal }),
        ) as Node;
        const lists = this.#changed(node);
        isWritten = lists === undefined || (await this.#write(node, lists, signal));
      }
    } catch (error) {
      onFailure(name, (error as Error).message);
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
    if (this.#changed(node) === undefined || this.#timers.has(name)) return;
    const waitMs = Math.max(0, (this.#notBeforeMs.get(name) ?? 0) - this.#nowMs());
    const timer = setTimeout(() => {
      this.#timers.delete(name);
      void this.#publish(name);
    }, waitMs).unref();
    this.#timers.set(name, timer);
  }

  /** Undefined: they are as they are to be. */
  #changed(node: Node): Lists | undefined {
    const declared = node.status?.declaredFeatures ?? [];
    const published = publishedOn(node);
    const withdrawn = published.filter((feature) => !this.#features.includes(feature));
    const missing = this.#features.filter((feature) => !declared.includes(feature));
    if (withdrawn.length === 0 && missing.length === 0) return undefined;
    const kept = (features: readonly string[]) => features.filter((feature) => !withdrawn.includes(feature));
    return { declared: union(kept(declared), missing), published: union(kept(published), missing) };
  }

  async #publish(name: string): Promise<void> {
    const { cluster, intervalMs = PUBLISH_INTERVAL_MS, onFailure } = this.#options;
    const node = cluster.getNode(name);
    const lists = node && this.#changed(node);
    if (node === undefined || lists === undefined || this.#isStopped) return;
    this.#notBeforeMs.set(name, this.#nowMs() + intervalMs);
    try {
      if (await this.#write(node, lists)) return;
    } catch (error) {
      onFailure(name, (error as Error).message);
    }
    this.#check(cluster.getNode(name));
  }

  /** False: another writer came first. Rejects as the client does. */
  async #write({ metadata }: Node, { declared, published }: Lists, signal?: AbortSignal): Promise<boolean> {
    const { name, resourceVersion } = metadata;
    const annotation = published.length === 0 ? null : published.join(",");
    // The version guards what the kubelet may have written meanwhile. Kubelets write annotations with their status, too.
    const json = {
      metadata: { resourceVersion, annotations: { [PUBLISHED_FEATURES_ANNOTATION]: annotation } },
      status: { declaredFeatures: declared },
    };
    try {
      await this.#options.client.json({
        method: "PATCH",
        path: `${objectPath("Node", "", name)}/status`,
        body: { contentType: "application/merge-patch+json", json },
        ...(signal && { signal }),
      });
      return true;
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 409)) throw error;
      return false;
    }
  }
}

function publishedOn({ metadata }: Node): readonly string[] {
  const text = metadata.annotations?.[PUBLISHED_FEATURES_ANNOTATION] ?? "";
  return text === "" ? [] : text.split(",");
}

/** Sorted and without doubles, as the API wants it. */
function union(some: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...some, ...others])].sort();
}
