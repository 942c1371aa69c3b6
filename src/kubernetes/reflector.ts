import type { IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { AnswerTooLargeError } from "@sluice/client/internal/http/upstream/whole-body";
import type { KubernetesObject } from "../api/objects.ts";
import { Backoff } from "../net/backoff.ts";
import { type ApiClient, ApiError, MalformedAnswerError } from "./api-client.ts";
import { eventLines, listPages, type WatchEvent } from "./list-pages.ts";
import { BadObjectError, metadataIn } from "./live-object.ts";

/**
 * As in client-go, each watch asks for between this time and twice that, so that they do not all
 * end together.
 */
const MIN_WATCH_SECONDS = 300;
/** How much later than requested a server may end a watch. Past it the watch starts again. */
const WATCH_END_GRACE_MS = 30_000;
/**
 * How long a watch may be silent; API servers send a bookmark each minute. Past it the watch starts
 * again.
 */
const WATCH_SILENCE_MS = 90_000;
/** How long the server may take to open a watch. Past it the watch starts again. */
const WATCH_OPEN_MS = 30_000;
/** A watch that lasted this long counts as good, even without an event. */
const GOOD_WATCH_MS = 5_000;
/** As client-go. */
const LIST_PAGE_SIZE = 500;
/** The statuses of servers that reject a watch's version: 400, 414, 422 and 431. */
const BAD_REQUEST_CODES: ReadonlySet<number | undefined> = new Set([400, 414, 422, 431]);

/** Receives the objects. */
export interface ReflectorSink<T = KubernetesObject> {
  /** Receives the complete list. */
  replace(objects: readonly T[]): void;
  upsert(object: T): void;
  remove(namespace: string, name: string): void;
}

export interface ReflectorOptions<T = KubernetesObject> {
  readonly client: Pick<ApiClient, "json" | "open">;
  /** The collection's path: `/api/v1/pods`. */
  readonly path: string;
  /** Selects a single object. */
  readonly fieldSelector?: string;
  readonly sink: ReflectorSink<T>;
  /** Reduces an object to the kept fields; pages of a list are freed in turn. Throws BadObjectError. */
  readonly read: (value: unknown) => T;
  readonly events: ReflectorEvents;
  readonly backoff?: Backoff;
  readonly minWatchSeconds?: number;
  readonly watchEndGraceMs?: number;
  readonly watchSilenceMs?: number;
  readonly watchOpenMs?: number;
  readonly nowMs?: () => number;
}

type WatchEnd = "ended" | "gone" | "malformed" | "refused" | "broken";

/** Reported to metrics, logs and tests. */
interface ReflectorEvents {
  listed(objects: number): void;
  watching(): void;
  event(): void;
  /** An object lacks its kind's shape. It counts as absent; the other objects stay. */
  badObject(error: BadObjectError): void;
  /**
   * The next list or watch starts after `waitMs`. `problem` contains no secret. `code` is the
   * server's status.
   */
  ended(how: WatchEnd, problem: string, waitMs: number, code?: number): void;
}

/**
 * Keeps a sink equal to one collection: lists, watches, resumes a broken watch. Lists again only if
 * the server forgot the version. Objects stay until a new list is complete.
 */
export class Reflector<T = KubernetesObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  readonly #nowMs: () => number;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #version: string | undefined;
  #pageSize = LIST_PAGE_SIZE;
  #isSynced = false;
  #isWatching = false;
  #openedMs: number | undefined;
  /** True once the watch has delivered anything; its end then counts as a first failure. */
  #hasProgress = false;
  #lastEnd: WatchEnd | undefined;
  #lastHeardMs: number;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#backoff = options.backoff ?? new Backoff();
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#lastHeardMs = this.#nowMs();
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** The sink receives nothing after this promise resolves. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** True after the first complete list. */
  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** The state's age: 0 while a watch is open, else the time since it was, or the last list began. */
  get staleMs(): number {
    return this.#isWatching ? 0 : this.#nowMs() - this.#lastHeardMs;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      this.#openedMs = undefined;
      let failure: unknown;
      try {
        if (this.#version === undefined) await this.#list();
        await this.#watch();
      } catch (error) {
        failure = error;
      }
      this.#isWatching = false;
      if (signal.aborted) return;
      await this.#pause(failure);
    }
  }

  async #pause(failure: unknown): Promise<void> {
    const how = endOf(failure);
    const isLong = this.#nowMs() - (this.#openedMs ?? this.#nowMs()) >= GOOD_WATCH_MS;
    // Neither malformed lines nor 410 after a good event may cause lists without a pause.
    const isGood = how !== "malformed" && (isLong || (this.#hasProgress && how !== "gone"));
    const isAgain = !isGood && this.#lastEnd === how;
    this.#lastEnd = how;
    this.#hasProgress = false;
    if (isGood) this.#backoff.reset();
    const refusal = failure instanceof ApiError ? failure : undefined;
    // A resumed watch would fail at the same event or version again; a list skips it.
    const isStuck = isAgain && (how === "malformed" || BAD_REQUEST_CODES.has(refusal?.code));
    if (how === "gone" || isStuck) this.#version = undefined;
    if (failure instanceof AnswerTooLargeError) this.#pageSize = Math.max(1, Math.floor(this.#pageSize / 2));
    // As in client-go, an expired version is listed again at once, but only the first time in a
    // row.
    const waitMs =
      how === "gone" && !isAgain ? (refusal?.retryAfterMs ?? 0) : this.#backoff.next(refusal?.retryAfterMs);
    const problem = failure === undefined ? "" : (failure as Error).message;
    this.#options.events.ended(how, problem, waitMs, refusal?.code);
    if (waitMs > 0)
      await wait(waitMs, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {});
  }

  async #list(): Promise<void> {
    const { client } = this.#options;
    const objects: T[] = [];
    const startedMs = this.#nowMs();
    const pages = listPages((at) => {
      const path = this.#query({ limit: String(this.#pageSize), continue: at });
      return client.json({ path, signal: this.#stopping.signal });
    });
    let page = await pages.next();
    for (; !page.done; page = await pages.next()) {
      for (const item of page.value) {
        const object = this.#read(item);
        if (object !== undefined) objects.push(object);
      }
    }
    if (this.#stopping.signal.aborted) return;
    this.#options.sink.replace(objects);
    this.#lastHeardMs = startedMs;
    this.#version = page.value;
    this.#isSynced = true;
    this.#options.events.listed(objects.length);
  }

  async #watch(): Promise<void> {
    const {
      events,
      minWatchSeconds = MIN_WATCH_SECONDS,
      watchEndGraceMs = WATCH_END_GRACE_MS,
      watchSilenceMs = WATCH_SILENCE_MS,
    } = this.#options;
    const seconds = Math.floor(minWatchSeconds * (1 + Math.random()));
    const path = this.#query({
      watch: "true",
      allowWatchBookmarks: "true",
      resourceVersion: this.#version,
      timeoutSeconds: String(seconds),
    });
    const response = await this.#open(path);
    const timer = setTimeout(() => response.destroy(), seconds * 1_000 + watchEndGraceMs).unref();
    let isSilent = false;
    const silence = setTimeout(() => {
      isSilent = true;
      response.destroy();
    }, watchSilenceMs).unref();
    this.#isWatching = true;
    this.#openedMs = this.#nowMs();
    this.#heard();
    events.watching();
    try {
      for await (const event of eventLines(response as AsyncIterable<Buffer>)) {
        if (this.#stopping.signal.aborted) return;
        silence.refresh();
        this.#take(event);
      }
      requireWholeBody(response);
    } catch (error) {
      // A quiet server may send no bookmarks. That is not a failure; the next watch resumes at this
      // version.
      if (!isSilent) throw error;
    } finally {
      clearTimeout(timer);
      clearTimeout(silence);
      // The state was current until the open watch ended.
      if (!isSilent) this.#heard();
      response.destroy();
    }
  }

  async #open(path: string): Promise<IncomingMessage> {
    const { client, watchOpenMs = WATCH_OPEN_MS } = this.#options;
    const opening = new AbortController();
    const abort = (): void => opening.abort();
    const timer = setTimeout(abort, watchOpenMs);
    this.#stopping.signal.addEventListener("abort", abort, { once: true });
    try {
      const response = await client.open({ path, signal: opening.signal });
      // From here on, an abort cuts off the body instead.
      response.once("close", () => this.#stopping.signal.removeEventListener("abort", abort));
      return response;
    } catch (error) {
      this.#stopping.signal.removeEventListener("abort", abort);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  #take({ type, object }: WatchEvent): void {
    this.#heard();
    if (type === "ERROR") throw errorIn(object);
    this.#hasProgress = true;
    const { sink, events } = this.#options;
    const { namespace, name, resourceVersion } = metadataIn(object);
    if (type !== "BOOKMARK") {
      const read = type === "DELETED" ? undefined : this.#read(object);
      if (read !== undefined) sink.upsert(read);
      // The object's new state is unreadable and its old one is outdated, so it is removed.
      else if (name !== undefined) sink.remove(namespace ?? "", name);
      events.event();
    }
    if (resourceVersion !== undefined) this.#version = resourceVersion;
  }

  #read(value: unknown): T | undefined {
    try {
      return this.#options.read(value);
    } catch (error) {
      if (!(error instanceof BadObjectError)) throw error;
      this.#options.events.badObject(error);
      return undefined;
    }
  }

  #heard(): void {
    this.#lastHeardMs = this.#nowMs();
  }

  #query(parameters: Readonly<Record<string, string | undefined>>): string {
    const { path, fieldSelector } = this.#options;
    const all = Object.entries({ ...parameters, fieldSelector });
    const given = all.filter((entry): entry is [string, string] => entry[1] !== undefined);
    return `${path}?${new URLSearchParams(given)}`;
  }
}

function errorIn(object: unknown): ApiError {
  const { code } = (object ?? {}) as { code?: unknown };
  return new ApiError(typeof code === "number" ? code : 500, JSON.stringify(object));
}

function requireWholeBody(response: IncomingMessage): void {
  if (!response.complete) throw new Error("the watch broke off");
}

function endOf(failure: unknown): WatchEnd {
  if (failure === undefined) return "ended";
  if (failure instanceof ApiError) return failure.isVersionUseless ? "gone" : "refused";
  return failure instanceof MalformedAnswerError ? "malformed" : "broken";
}
