import { resourceExpired } from "@sluice/client/internal/api/status";
import type { ApiObject } from "../api-object.ts";
import { jsonLine, type ObjectSource, type SourceChange } from "./api-answer.ts";
import type { ObjectMatcher } from "./label-selector.ts";

/**
 * How long a watch with bookmarks may go without one, as in kube-apiserver. Past it a bookmark is
 * sent.
 */
const BOOKMARK_PERIOD_MS = 60_000;

/** What a watch must know about objects. */
export type WatchSource = Pick<ObjectSource, "changesAfter" | "resourceVersion" | "subscribe">;

interface WatchOptions {
  readonly source: WatchSource;
  /** Selects by resource, namespace and selectors. */
  readonly isWatched: ObjectMatcher;
  /** Events of the state at `startVersion`, which come before all changes. */
  readonly initialEvents: readonly unknown[];
  readonly startVersion: number;
  readonly timeoutMs: number;
  /** Formats an object for the client: plainly, or as a Table. */
  present(object: ApiObject): unknown;
  /** Undefined for a client that takes no bookmarks. */
  readonly bookmark: ((version: number) => unknown) | undefined;
  readonly follow: FollowUser | undefined;
}

/** Calls `end` with a Status once the user may no longer watch, until the returned function is called. */
export type FollowUser = (end: (status: object) => void) => () => void;

/**
 * A watch's events, one JSON line each. Queues nothing for a slow client: it gets the source's
 * remembered changes, or 410. The reader must call `return` when the client leaves.
 */
export class WatchStream implements AsyncIterableIterator<Uint8Array> {
  readonly #options: WatchOptions;
  readonly #unsubscribe: () => void;
  readonly #timer: NodeJS.Timeout;
  readonly #bookmarks: NodeJS.Timeout | undefined;
  readonly #unfollow: (() => void) | undefined;
  readonly #ready: unknown[];
  #version: number;
  #isOver = false;
  #isBookmarkDue = false;
  #wake: () => void = () => {};

  constructor(options: WatchOptions) {
    this.#options = options;
    this.#ready = [...options.initialEvents];
    this.#version = options.startVersion;
    this.#unsubscribe = options.source.subscribe(() => this.#wake());
    this.#timer = setTimeout(() => this.#end(), options.timeoutMs).unref();
    if (options.bookmark !== undefined) this.#bookmarks = this.#startBookmarks();
    this.#unfollow = options.follow?.((status) => this.#fail(status));
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    for (;;) {
      const event = this.#ready.shift();
      if (event !== undefined) return { done: false, value: jsonLine(event) };
      if (this.#isOver) return { done: true, value: undefined };
      this.#collect();
      if (this.#ready.length === 0 && this.#isBookmarkDue) {
        this.#isBookmarkDue = false;
        this.#ready.push(this.#options.bookmark?.(this.#version));
      }
      if (this.#ready.length === 0) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.#ready.length = 0;
    this.#end();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #collect(): void {
    const changes = this.#options.source.changesAfter(this.#version);
    if (changes === undefined) {
      this.#fail(tooOld(this.#version, this.#options.source).status);
      return;
    }
    for (const change of changes) {
      this.#version = change.resourceVersion;
      const type = this.#eventType(change);
      if (type) this.#ready.push({ type, object: this.#options.present(change.object) });
    }
  }

  /** An object that begins or stops matching the selectors is added or deleted for this client. */
  #eventType({ type, object, previous }: SourceChange): SourceChange["type"] | undefined {
    const { isWatched } = this.#options;
    const was = previous !== undefined && isWatched(previous);
    const is = type !== "DELETED" && isWatched(object);
    if (is) return was ? "MODIFIED" : "ADDED";
    return was ? "DELETED" : undefined;
  }

  #startBookmarks(): NodeJS.Timeout {
    return setInterval(() => {
      this.#isBookmarkDue = true;
      this.#wake();
    }, BOOKMARK_PERIOD_MS).unref();
  }

  /** The client gets this in place of what it has not read yet. */
  #fail(status: object): void {
    this.#ready.length = 0;
    this.#ready.push({ type: "ERROR", object: status });
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#unsubscribe();
    this.#unfollow?.();
    clearTimeout(this.#timer);
    clearInterval(this.#bookmarks);
    this.#wake();
  }
}

/** 410: the client must list again. Also for future versions, which another process issued. */
export function tooOld(version: number, source: WatchSource) {
  return resourceExpired(`too old resource version: ${version} (${source.resourceVersion})`);
}
