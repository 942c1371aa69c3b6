import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import type { ObjectKind } from "../../src/api/objects.ts";
import { ClusterStore } from "../../src/cluster/cluster-store.ts";
import { type ApiClient, ApiError, type ApiRequest } from "../../src/kubernetes/api-client.ts";
import { LiveCluster } from "../../src/kubernetes/live-cluster.ts";
import { collectionPath } from "../../src/kubernetes/live-object.ts";
import type { Backoff } from "../../src/net/backoff.ts";
import { Metrics } from "../../src/observability/metrics.ts";

type ClusterStoreOptions = NonNullable<ConstructorParameters<typeof ClusterStore>[0]>;

type Watch = PassThrough & { complete: boolean };

/**
 * An API server's answers, byte for byte as a test sets them. It checks, stores and stamps nothing.
 */
export class ScriptedApi implements Pick<ApiClient, "json" | "open"> {
  /** Answers to GETs, keyed by path without query: lists and single objects. */
  readonly answers = new Map<string, unknown>();
  /** The paths of lists and watches in the order of the requests. */
  readonly asked: string[] = [];
  /** Refusals of the next watches, in order. */
  readonly refusals: Error[] = [];
  readonly #watches = new Map<string, Watch>();

  async json({ path }: ApiRequest): Promise<unknown> {
    const [bare = ""] = path.split("?");
    this.asked.push(`list ${bare}`);
    if (!this.answers.has(bare)) throw new ApiError(404, "");
    return structuredClone(this.answers.get(bare));
  }

  async open({ path, signal }: ApiRequest): Promise<IncomingMessage> {
    const [bare = ""] = path.split("?");
    this.asked.push(`watch ${bare}`);
    const refusal = this.refusals.shift();
    if (refusal !== undefined) throw refusal;
    const watch = Object.assign(new PassThrough(), { complete: true });
    signal?.addEventListener("abort", () => watch.destroy(), { once: true });
    watch.on("error", () => {});
    this.#watches.set(bare, watch);
    return watch as unknown as IncomingMessage;
  }

  listsAs(kind: ObjectKind, items: readonly unknown[], apiVersion = "v1"): void {
    const metadata = { resourceVersion: "1" };
    this.answers.set(collectionPath(kind), { apiVersion, kind: `${kind}List`, metadata, items });
  }

  isWatched(kind: ObjectKind): boolean {
    return this.#watches.get(collectionPath(kind))?.destroyed === false;
  }

  /** Sends lines to the open watch of this kind: events, or any text. */
  send(kind: ObjectKind, ...events: readonly unknown[]): void {
    for (const event of events) {
      const line = typeof event === "string" ? event : JSON.stringify(event);
      this.#watches.get(collectionPath(kind))?.write(`${line}\n`);
    }
  }

  /** Ends the watch. `isBroken`: as if the connection broke. */
  endWatch(kind: ObjectKind, { isBroken = false } = {}): void {
    const watch = this.#watches.get(collectionPath(kind));
    if (watch === undefined) return;
    watch.complete = !isBroken;
    watch.end();
  }
}

/** A store that follows these answers. Call `stop` at the end. */
export function followScripted(
  api: ScriptedApi,
  kinds: readonly ObjectKind[],
  { backoff, storeOptions }: { backoff?: () => Backoff; storeOptions?: ClusterStoreOptions } = {},
) {
  const store = new ClusterStore(storeOptions);
  const metrics = new Metrics({ withProcessMetrics: false });
  const lines: string[] = [];
  const log = (fields: Readonly<Record<string, unknown>>, message: string) =>
    void lines.push(`${message} ${JSON.stringify(fields)}`);
  const live = new LiveCluster({
    maxStateAgeMs: 60_000,
    client: api,
    store,
    kinds,
    metrics: metrics.cluster,
    logger: { info: log, warn: log },
    ...(backoff && { reflector: { backoff } }),
  });
  live.start();
  const metric = async (line: RegExp) => line.exec(await metrics.expose())?.[1];
  return { store, live, lines, metric };
}
