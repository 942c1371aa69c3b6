import {
  ADMISSION_RESOURCES,
  type AdmissionObjects,
  type AdmissionResource,
  type ConnectRule,
} from "../api/admission/connect-rules.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { ClusterMetrics } from "../observability/cluster-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import {
  type AdmissionVerdict,
  type ConnectSession,
  RESOURCES,
  rulesIn,
  servedPaths,
  verdictOf,
} from "./admission-verdict.ts";
import { type ApiClient, ApiError } from "./api-client.ts";
import { metadataIn } from "./live-object.ts";
import { loggedReflector, type ReflectorTuning } from "./logged-reflector.ts";
import type { Reflector, ReflectorSink } from "./reflector.ts";

/** How often the gateway looks up the served kinds: an upgrade of the API server may add some. */
const DISCOVER_AGAIN_MS = 60_000;
/** The interval between lookups until one succeeds. */
const DISCOVER_FIRST_MS = 1_000;

interface ConnectAdmissionOptions {
  readonly client: Pick<ApiClient, "json" | "open">;
  /** Policies' namespace selectors match these namespaces' labels. */
  readonly cluster: Pick<Cluster, "getNamespace">;
  /** Rules older than this do not count. */
  readonly maxStateAgeMs: number;
  readonly metrics: Pick<ClusterMetrics, "listed" | "event" | "watchEnded" | "observe" | "admissionJudged">;
  readonly logger: Pick<Logger, "info" | "warn">;
  readonly discoverAgainMs?: number;
  readonly reflector?: ReflectorTuning;
}

interface NamedObject {
  readonly name: string;
  readonly object: unknown;
}

/** What the gateway knows about one kind. */
interface Followed {
  readonly path: string;
  readonly objects: Map<string, unknown>;
  readonly reflector: Reflector<NamedObject>;
  /** The gateway's account may currently not read this kind. */
  isForbidden: boolean;
}

/**
 * Whether a live cluster's webhooks or policies may judge a CONNECT on a pod. Until the rules are
 * known, the answer is yes.
 */
export class ConnectAdmission {
  readonly #options: ConnectAdmissionOptions;
  readonly #followed = new Map<AdmissionResource, Followed>();
  readonly #ended = new AbortController();
  #discovery: "pending" | "forbidden" | "done" = "pending";
  #rules: readonly ConnectRule[] | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isForbiddenLogged = false;

  constructor(options: ConnectAdmissionOptions) {
    this.#options = options;
    options.metrics.observe(() =>
      Array.from(this.#followed, ([resource, { objects, reflector }]) => ({
        kind: ADMISSION_RESOURCES[resource],
        objects: objects.size,
        staleSeconds: reflector.staleMs / 1_000,
        isSynced: reflector.isSynced,
      })),
    );
    void this.#discover();
  }

  /**
   * Undefined if nothing in the cluster judges the session, so that it may go straight to its node.
   */
  judge(request: ConnectSession): AdmissionVerdict | undefined {
    const verdict = this.#verdictOn(request);
    this.#options.metrics.admissionJudged(verdict?.reason);
    return verdict;
  }

  #verdictOn(request: ConnectSession): AdmissionVerdict | undefined {
    const problem = this.problem;
    if (problem !== undefined) return { reason: "admission-unknown", by: problem };
    this.#rules ??= rulesIn(this.#objects());
    if (this.#rules.length === 0) return undefined;
    return verdictOf(this.#rules, request, this.#options.cluster);
  }

  /** Why the rules are unknown; undefined once they are known. */
  get problem(): string | undefined {
    const forbidden = this.#forbidden();
    if (forbidden.length > 0) return `the gateway's account may not read ${forbidden.join(", ")}`;
    if (this.unsynced.length > 0) return "the API server was not yet asked for its webhooks and policies";
    const staleMs = Math.max(0, ...Array.from(this.#followed.values(), ({ reflector }) => reflector.staleMs));
    if (staleMs <= this.#options.maxStateAgeMs) return undefined;
    return `webhooks and policies were last read ${Math.floor(staleMs / 1_000)}s ago`;
  }

  /** Readable kinds that have not been listed yet. */
  get unsynced(): readonly string[] {
    if (this.#discovery === "pending") return Object.values(ADMISSION_RESOURCES);
    return [...this.#followed]
      .filter(([, { reflector, isForbidden }]) => !reflector.isSynced && !isForbidden)
      .map(([resource]) => ADMISSION_RESOURCES[resource]);
  }

  async stop(): Promise<void> {
    this.#ended.abort();
    clearTimeout(this.#timer);
    await Promise.all(Array.from(this.#followed.values(), ({ reflector }) => reflector.stop()));
  }

  #forbidden(): string[] {
    if (this.#discovery === "forbidden") return ["which of them are served"];
    // An API server that has just started answers 403 until it has loaded its roles; older rules
    // count meanwhile.
    const isPast = ({ isSynced, staleMs }: Reflector<NamedObject>): boolean =>
      !isSynced || staleMs > this.#options.maxStateAgeMs;
    return [...this.#followed]
      .filter(([, { isForbidden, reflector }]) => isForbidden && isPast(reflector))
      .map(([resource]) => resource);
  }

  #objects(): AdmissionObjects {
    return Object.fromEntries(Array.from(this.#followed, ([resource, { objects }]) => [resource, objects]));
  }

  async #discover(): Promise<void> {
    const { client, discoverAgainMs = DISCOVER_AGAIN_MS } = this.#options;
    try {
      const served = await servedPaths(client, this.#ended.signal);
      if (this.#ended.signal.aborted) return;
      for (const resource of RESOURCES) this.#follow(resource, served.get(resource));
      this.#discovery = "done";
    } catch (error) {
      // Kinds that were served stay watched; their reflectors log an API server that does not
      // answer.
      if (isForbidden(error) && this.#discovery === "pending") {
        this.#discovery = "forbidden";
      }
    }
    this.#logForbidden();
    if (this.#ended.signal.aborted) return;
    const againMs =
      this.#discovery === "pending" ? Math.min(DISCOVER_FIRST_MS, discoverAgainMs) : discoverAgainMs;
    this.#timer = setTimeout(() => void this.#discover(), againMs).unref();
  }

  #follow(resource: AdmissionResource, path: string | undefined): void {
    const before = this.#followed.get(resource);
    if (before?.path === path) return;
    void before?.reflector.stop();
    this.#followed.delete(resource);
    this.#rules = undefined;
    if (path === undefined) return;
    const objects = new Map<string, unknown>();
    const reflector = this.#reflectorOf(resource, path, objects);
    this.#followed.set(resource, { path, objects, reflector, isForbidden: false });
    reflector.start();
  }

  #reflectorOf(
    resource: AdmissionResource,
    path: string,
    objects: Map<string, unknown>,
  ): Reflector<NamedObject> {
    const { client, metrics, logger, reflector: tuning } = this.#options;
    const setForbidden = (isForbidden: boolean): void => {
      const followed = this.#followed.get(resource);
      if (followed !== undefined) followed.isForbidden = isForbidden;
      this.#logForbidden();
    };
    return loggedReflector<NamedObject>({
      kind: ADMISSION_RESOURCES[resource],
      client,
      path,
      sink: this.#sinkOf(objects),
      read: (object) => ({ name: metadataIn(object).name ?? "", object }),
      metrics,
      logger,
      tuning,
      onWatching: () => setForbidden(false),
      onEnded: (code) => {
        if (isForbiddenCode(code)) setForbidden(true);
      },
    });
  }

  #sinkOf(objects: Map<string, unknown>): ReflectorSink<NamedObject> {
    return {
      replace: (all) => {
        objects.clear();
        for (const { name, object } of all) objects.set(name, object);
        this.#rules = undefined;
      },
      upsert: ({ name, object }) => {
        objects.set(name, object);
        this.#rules = undefined;
      },
      remove: (_, name) => {
        objects.delete(name);
        this.#rules = undefined;
      },
    };
  }

  #logForbidden(): void {
    const isForbidden = this.#forbidden().length > 0;
    if (isForbidden === this.#isForbiddenLogged) return;
    this.#isForbiddenLogged = isForbidden;
    const { logger } = this.#options;
    if (!isForbidden) logger.info({}, "admission of the cluster is known again");
    else
      logger.warn(
        { problem: this.problem },
        "admission of the cluster is not known: the API server carries every session (see `sluice rbac`)",
      );
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof ApiError && isForbiddenCode(error.code);
}

function isForbiddenCode(code: number | undefined): boolean {
  return code === 401 || code === 403;
}
