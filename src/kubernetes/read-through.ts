import type { ObjectKind } from "../api/objects.ts";
import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";
import { FairQueue } from "../net/fair-queue.ts";
import { type ApiClient, ApiError } from "./api-client.ts";
import { objectPath, pluralOf } from "./live-object.ts";

/**
 * Concurrent reads of objects that no watch has delivered. Past it, namespaces below their share
 * wait; others get 429.
 */
const MAX_READS_AT_ONCE = 64;
/** Reads that wait for a turn. Past it: 429 with Retry-After. */
const MAX_WAITING_READS = 1_000;
/** How long the gateway remembers that the API does not know a name. */
const MISSING_FOR_MS = 1_000;
/** Names that are remembered as unknown to the API for 1 s. Past it they are asked for again. */
const MAX_REMEMBERED_MISSING = 10_000;

type ReadOutcome = "found" | "missing" | "remembered" | "failed" | "refused";

interface ReadThroughOptions {
  readonly client: Pick<ApiClient, "json">;
  /** Receives the unchecked object. If this throws, the read has failed. */
  readonly found: (kind: ObjectKind, object: unknown) => void;
  readonly onOutcome: (kind: ObjectKind, outcome: ReadOutcome) => void;
  readonly nowMs?: () => number;
  readonly maxReadsAtOnce?: number;
}

interface RunningRead {
  readonly done: Promise<boolean>;
  readonly kind: ObjectKind;
  readonly namespace: string;
  readonly name: string;
  /** What the watch or its list reported last since the read began. */
  overtakenBy: "change" | "deletion" | "list" | undefined;
}

/**
 * Callers that miss the same object share one read. After the API reports an object missing,
 * callers get that answer for a while.
 */
export class ReadThrough {
  readonly #options: ReadThroughOptions;
  readonly #nowMs: () => number;
  readonly #reads = new Map<string, RunningRead>();
  readonly #queue: FairQueue;
  readonly #missingUntilMs = new Map<string, number>();

  constructor(options: ReadThroughOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#queue = new FairQueue({
      seats: options.maxReadsAtOnce ?? MAX_READS_AT_ONCE,
      maxWaiting: MAX_WAITING_READS,
      onlyModestFlowsWait: true,
    });
  }

  /**
   * Reads an object. True if it was found and passed to `found`. Rejects with StatusError 429 if
   * too many reads are under way, 503 if the API server does not answer.
   */
  async read(kind: ObjectKind, namespace: string, name: string): Promise<boolean> {
    const { onOutcome } = this.#options;
    const key = `${kind}/${namespace}/${name}`;
    if ((this.#missingUntilMs.get(key) ?? 0) > this.#nowMs()) {
      onOutcome(kind, "remembered");
      return false;
    }
    const running = this.#reads.get(key);
    if (running !== undefined) return running.done;
    const done = this.#inTurn(key, kind, namespace, name).finally(() => this.#reads.delete(key));
    this.#reads.set(key, { done, kind, namespace, name, overtakenBy: undefined });
    return done;
  }

  /** The watch reported the object, so an answer still under way is outdated. */
  overtaken(by: "change" | "deletion", kind: ObjectKind, namespace: string, name: string): void {
    const running = this.#reads.get(`${kind}/${namespace}/${name}`);
    if (running !== undefined) running.overtakenBy = by;
  }

  /** The kind was listed; answers still under way may be older than the list. */
  relisted(kind: ObjectKind, has: (namespace: string, name: string) => boolean): void {
    for (const running of this.#reads.values()) {
      if (running.kind !== kind) continue;
      running.overtakenBy = has(running.namespace, running.name) ? "change" : "list";
    }
  }

  /** All users of a namespace share its turns. */
  async #inTurn(key: string, kind: ObjectKind, namespace: string, name: string): Promise<boolean> {
    const seated = this.#queue.acquire(namespace);
    if (seated === false || (seated !== true && !(await seated))) {
      this.#options.onOutcome(kind, "refused");
      throw WIRE_ERRORS["lookups-busy"].streaming({ kind: pluralOf(kind) });
    }
    try {
      return await this.#fetch(key, kind, namespace, name);
    } finally {
      this.#queue.release(namespace);
    }
  }

  async #fetch(key: string, kind: ObjectKind, namespace: string, name: string): Promise<boolean> {
    const { client, found, onOutcome } = this.#options;
    const overtakenBy = () => this.#reads.get(key)?.overtakenBy;
    const read = () => client.json({ path: objectPath(kind, namespace, name) });
    try {
      let object = await read();
      if (overtakenBy() === "list") {
        // A list that lacks the object may be older or newer than the answer. A second read is
        // newer than the list.
        (this.#reads.get(key) as RunningRead).overtakenBy = undefined;
        object = await read();
      }
      if (overtakenBy() === undefined) found(kind, object);
      const isThere = overtakenBy() === undefined || overtakenBy() === "change";
      onOutcome(kind, isThere ? "found" : "missing");
      return isThere;
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) {
        if (overtakenBy() === "change") {
          onOutcome(kind, "found");
          return true;
        }
        this.#rememberMissing(key);
        onOutcome(kind, "missing");
        return false;
      }
      onOutcome(kind, "failed");
      throw WIRE_ERRORS["object-unread"].streaming({ kind: pluralOf(kind), name: JSON.stringify(name) });
    }
  }

  #rememberMissing(key: string): void {
    this.#missingUntilMs.delete(key);
    this.#missingUntilMs.set(key, this.#nowMs() + MISSING_FOR_MS);
    if (this.#missingUntilMs.size <= MAX_REMEMBERED_MISSING) return;
    const oldest = this.#missingUntilMs.keys().next();
    if (!oldest.done) this.#missingUntilMs.delete(oldest.value);
  }
}
