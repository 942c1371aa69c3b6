import { hash } from "node:crypto";
import type { ObjectKind } from "../api/objects.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import type { Freshness } from "../cluster/cluster.ts";
import type { ClusterStore } from "../cluster/cluster-store.ts";
import { formatDuration } from "../config/number-fields.ts";
import type { ClusterMetrics } from "../observability/cluster-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import type { ApiClient } from "./api-client.ts";
import { type BadObjectError, collectionPath, liveObject } from "./live-object.ts";
import { loggedReflector, type ReflectorTuning } from "./logged-reflector.ts";
import { NamedSecrets } from "./named-secrets.ts";
import { ReadThrough } from "./read-through.ts";
import type { Reflector, ReflectorSink } from "./reflector.ts";

/** Malformed objects that are logged, each once. Past it they are only counted. */
const MAX_LOGGED_BAD_OBJECTS = 1_000;

export interface LiveClusterOptions {
  readonly client: Pick<ApiClient, "json" | "open">;
  readonly store: ClusterStore;
  /** Kinds that are listed and watched as a whole. Secrets of Ingresses are watched by name. */
  readonly kinds: readonly ObjectKind[];
  /** Kinds that are read from only one namespace. */
  readonly namespaces?: Readonly<Partial<Record<ObjectKind, string>>> | undefined;
  /** State older than this counts as unknown. */
  readonly maxStateAgeMs: number;
  readonly metrics: ClusterMetrics;
  readonly logger: Pick<Logger, "info" | "warn">;
  /** For tests: waits and watch times. */
  readonly reflector?: ReflectorTuning;
}

/**
 * Keeps a store equal to the part of a live cluster that the gateway needs. While the API is
 * unreachable, the store keeps the last state.
 */
export class LiveCluster {
  readonly #options: LiveClusterOptions;
  readonly #reflectors = new Map<ObjectKind, Reflector>();
  readonly #secretReflectors = new Set<Reflector>();
  readonly #readThrough: ReadThrough;
  readonly #badObjects = new Set<string>();
  readonly #startedMs = performance.now();
  /** Resolves after every kind has been listed once. */
  readonly known: Promise<void>;
  #tellKnown = (): void => {};
  #secrets: NamedSecrets | undefined;
  #isSyncTold = false;

  constructor(options: LiveClusterOptions) {
    const { client, store, kinds, metrics } = options;
    this.#options = options;
    this.known = new Promise((resolve) => {
      this.#tellKnown = resolve;
    });
    this.#readThrough = new ReadThrough({
      client,
      found: (kind, object) => store.upsert(liveObject(kind, object)),
      onOutcome: (kind, outcome) => metrics.readThrough(kind, outcome),
    });
    for (const kind of kinds) this.#reflectors.set(kind, this.#reflectorOf(kind));
    metrics.observe(() =>
      Array.from(this.#reflectors, ([kind, reflector]) => ({
        kind,
        objects: store.list(kind).length,
        staleSeconds: reflector.staleMs / 1_000,
        isSynced: reflector.isSynced,
      })),
    );
  }

  start(): void {
    for (const reflector of this.#reflectors.values()) reflector.start();
    if (this.#reflectors.size === 0) this.#tellSync();
    const { store, logger } = this.#options;
    if (!this.#reflectors.has("Ingress")) return;
    this.#secrets = new NamedSecrets({
      cluster: store,
      follow: (namespace, name) => this.#followSecret(namespace, name),
      onTooMany: (wanted) => logger.warn({ wanted }, "Ingresses name more Secrets than are followed"),
    });
  }

  async stop(): Promise<void> {
    this.#secrets?.stop();
    await Promise.all(
      [...this.#reflectors.values(), ...this.#secretReflectors].map((reflector) => reflector.stop()),
    );
  }

  /** Kinds that have not been listed yet. */
  get unsynced(): readonly ObjectKind[] {
    return [...this.#reflectors].filter(([, { isSynced }]) => !isSynced).map(([kind]) => kind);
  }

  /** The age of the oldest kind's state; 0 while all watches are open. */
  get staleMs(): number {
    return Math.max(0, ...Array.from(this.#reflectors.values(), ({ staleMs }) => staleMs));
  }

  /** The freshness of the given kinds; kinds without a reflector count as fresh. */
  freshnessOf(kinds: readonly ObjectKind[]): Freshness {
    const ages = kinds.map((kind) => this.#reflectors.get(kind)?.staleMs ?? 0);
    const staleMs = Math.max(0, ...ages);
    const asOf = new Date(Date.now() - staleMs);
    const { maxStateAgeMs } = this.#options;
    if (staleMs <= maxStateAgeMs) return { asOf, problem: undefined };
    const problem = WIRE_ERRORS["state-stale"].streaming({
      heard: asOf.toISOString(),
      maxAge: formatDuration(maxStateAgeMs),
    });
    return { asOf, problem };
  }

  /**
   * Reads a pod or its node that no watch has reported yet. Undefined if nothing is missing.
   * Rejects as ReadThrough does; an object that the API does not know stays missing.
   */
  lookUp(namespace: string, podName: string): Promise<void> | undefined {
    const { store } = this.#options;
    const pod = store.getPod(namespace, podName);
    const isNodeKnown = pod?.spec.nodeName && store.getNode(pod.spec.nodeName) !== undefined;
    return isNodeKnown ? undefined : this.#readMissing(namespace, podName);
  }

  /** Reads an unknown node. Rejects as ReadThrough does. */
  async lookUpNode(name: string): Promise<void> {
    if (this.#options.store.getNode(name) === undefined) await this.#readThrough.read("Node", "", name);
  }

  /** Reads a namespace. Rejects as ReadThrough does. */
  async lookUpNamespace(name: string): Promise<void> {
    await this.#readThrough.read("Namespace", "", name);
  }

  async #readMissing(namespace: string, podName: string): Promise<void> {
    const { store } = this.#options;
    // An unscheduled pod may have been scheduled by now.
    if (!store.getPod(namespace, podName)?.spec.nodeName) {
      await this.#readThrough.read("Pod", namespace, podName);
    }
    const nodeName = store.getPod(namespace, podName)?.spec.nodeName;
    if (nodeName && store.getNode(nodeName) === undefined) await this.#readThrough.read("Node", "", nodeName);
  }

  #reflectorOf(kind: ObjectKind): Reflector {
    const { store, namespaces } = this.#options;
    return this.#newReflector(kind, collectionPath(kind, namespaces?.[kind]), {
      replace: (objects) => {
        store.replaceKind(kind, objects);
        this.#readThrough.relisted(kind, (namespace, name) => store.get(kind, namespace, name) !== undefined);
      },
      upsert: (object) => {
        const { namespace = "", name } = object.metadata;
        this.#readThrough.overtaken("change", kind, namespace, name);
        store.upsert(object);
      },
      remove: (namespace, name) => {
        this.#readThrough.overtaken("deletion", kind, namespace, name);
        store.remove(kind, namespace, name);
      },
    });
  }

  #followSecret(namespace: string, name: string): () => void {
    const { store } = this.#options;
    const remove = () => store.remove("Secret", namespace, name);
    const sink: ReflectorSink = {
      replace: ([secret]) => (secret === undefined ? remove() : store.upsert(secret)),
      upsert: (secret) => store.upsert(secret),
      remove,
    };
    const reflector = this.#newReflector(
      "Secret",
      collectionPath("Secret", namespace),
      sink,
      `metadata.name=${name}`,
    );
    this.#secretReflectors.add(reflector);
    reflector.start();
    return () => {
      void reflector.stop().then(() => {
        this.#secretReflectors.delete(reflector);
        remove();
      });
    };
  }

  #newReflector(kind: ObjectKind, path: string, sink: ReflectorSink, fieldSelector?: string): Reflector {
    const { client, metrics, logger, reflector: tuning } = this.#options;
    return loggedReflector({
      kind,
      client,
      path,
      sink,
      read: (value) => liveObject(kind, value),
      fieldSelector,
      metrics,
      logger,
      tuning,
      onListed: () => this.#tellSync(),
      onBadObject: (error) => this.#badObject(error),
    });
  }

  /** Every new watch delivers a malformed object again, but each problem is logged once. */
  #badObject({ kind, namespace, objectName: name, message: problem }: BadObjectError): void {
    const { metrics, logger } = this.#options;
    metrics.badObject(kind);
    // Hashed, because a hostile name may be as long as an event.
    const key = hash("sha256", `${kind}/${namespace}/${name} ${problem}`);
    if (this.#badObjects.has(key) || this.#badObjects.size >= MAX_LOGGED_BAD_OBJECTS) return;
    this.#badObjects.add(key);
    logger.warn({ kind, namespace, name, problem }, "an object of the Kubernetes API cannot be read");
  }

  #tellSync(): void {
    if (this.#isSyncTold || this.unsynced.length > 0) return;
    this.#isSyncTold = true;
    this.#tellKnown();
    const tookMs = Math.round(performance.now() - this.#startedMs);
    this.#options.logger.info({ tookMs }, "the cluster is synced");
  }
}
