import { randomInt } from "node:crypto";
import type { ApiObject } from "../api/api-object.ts";
import type { SourceChange } from "../api/read-only-server/api-answer.ts";
import type { WatchSource } from "../api/read-only-server/watch-stream.ts";

/** How often objects are listed while a client watches, and so how late watches see a change. */
const WATCH_PERIOD_MS = 1_000;
/** Lists for watches take at most this share of the time, so slow lists run less often. */
const WATCH_SHARE = 0.1;
/** Changes kept for watches that resume. Past it: 410, and the client lists again. */
const MAX_REMEMBERED_CHANGES = 20_000;

interface Change<T> {
  readonly type: SourceChange["type"];
  readonly item: T;
  readonly resourceVersion: number;
}

/**
 * Objects as this process last listed them, and their changes. Versions start at a random number,
 * so that another process's version is not mistaken for one of this process.
 */
export abstract class PolledFeed<T> implements WatchSource {
  readonly #listeners = new Set<() => void>();
  #changes: Change<T>[] = [];
  #version = randomInt(2 ** 32, 2 ** 47);
  #firstVersion = this.#version;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** Lists the present objects, and passes each change to `changed`. */
  protected abstract collect(): Promise<void>;
  protected abstract objectOf(item: T, version: number): ApiObject;

  get resourceVersion(): number {
    return this.#version;
  }

  protected get isWatched(): boolean {
    return this.#listeners.size > 0;
  }

  /** Lists the present objects. Calls during a list share the next one. */
  refresh(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#collect().finally(() => {
        this.#running = undefined;
      });
      return this.#running;
    }
    this.#next ??= this.#running
      .catch(() => {})
      .then(() => {
        this.#next = undefined;
        return this.refresh();
      });
    return this.#next;
  }

  subscribe(listener: () => void): () => void {
    // Two watches may pass the same function.
    const own = (): void => listener();
    this.#listeners.add(own);
    this.#schedule(0);
    return () => {
      this.#listeners.delete(own);
      if (this.#listeners.size > 0) return;
      clearTimeout(this.#timer);
      this.#timer = undefined;
    };
  }

  changesAfter(version: number): readonly SourceChange[] | undefined {
    if (version < this.#firstVersion || version > this.#version) return undefined;
    return this.#changes.slice(version - this.#firstVersion).map(({ type, item, resourceVersion }) => {
      // As in etcd, a deletion's object has the deletion's version.
      const object = this.objectOf(item, resourceVersion);
      // The fields that selectors use never change.
      return { type, object, ...(type !== "ADDED" && { previous: object }), resourceVersion };
    });
  }

  stop(): void {
    this.#listeners.clear();
    clearTimeout(this.#timer);
  }

  /** Records a change, and returns its version. */
  protected changed(type: SourceChange["type"], item: T): number {
    const version = this.#version + 1;
    this.#version = version;
    this.#changes.push({ type, item, resourceVersion: version });
    return version;
  }

  /** Forgets all changes, so that every earlier version gets 410. Returns the new version. */
  protected forget(): number {
    this.#version += 1;
    this.#firstVersion = this.#version;
    this.#changes = [];
    return this.#version;
  }

  #schedule(tookMs: number): void {
    if (this.#timer !== undefined || this.#listeners.size === 0) return;
    const waitMs = Math.max(WATCH_PERIOD_MS, tookMs / WATCH_SHARE);
    this.#timer = setTimeout(() => {
      const startedMs = performance.now();
      const listed = this.refresh().catch(() => {});
      void listed.then(() => {
        this.#timer = undefined;
        this.#schedule(performance.now() - startedMs);
      });
    }, waitMs).unref();
  }

  async #collect(): Promise<void> {
    await this.collect();
    if (this.#changes.length > MAX_REMEMBERED_CHANGES) {
      this.#changes = this.#changes.slice(-MAX_REMEMBERED_CHANGES);
      this.#firstVersion = this.#version - this.#changes.length;
    }
    for (const listener of this.#listeners) listener();
  }
}

/** Lists are ordered by namespace, then by id. */
export interface ObjectKey {
  readonly namespace: string;
  readonly id: string;
}

export function compareKeys(one: ObjectKey, other: ObjectKey): number {
  if (one.namespace !== other.namespace) return one.namespace < other.namespace ? -1 : 1;
  return one.id < other.id ? -1 : one.id > other.id ? 1 : 0;
}
