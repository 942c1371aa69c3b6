import type { ServerResponse } from "node:http";
import { resourceExpired } from "../../../packages/client/src/api/status.ts";
import type { ApiObject } from "../../../src/api/api-object.ts";
import type { ObjectStore, StoredEvent } from "./object-store.ts";
import { groupVersionOf, type Resource } from "./resources.ts";
import type { IsWanted } from "./selectors.ts";

/** A watcher that does not read this much is disconnected, as by kube-apiserver. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024;
const DEFAULT_BOOKMARK_INTERVAL_MS = 60_000;

export interface WatchRequest {
  readonly resource: Resource;
  readonly isWanted: IsWanted;
  readonly query: URLSearchParams;
  /** The form in which the client wants an object; undefined: unchanged. */
  readonly present: ((object: ApiObject) => unknown) | undefined;
}

/** A server's open watches, and ways to break them. */
export class Watches {
  readonly #store: ObjectStore;
  readonly #bookmarkIntervalMs: number;
  readonly #open = new Set<Watch>();
  /** Every watcher gets an event in the same bytes. */
  readonly #lines = new WeakMap<StoredEvent, string>();
  /** The number of watches that have ever begun. */
  begun = 0;
  /** True: events are held back, as by a network that loses them. */
  isSilent = false;

  constructor(store: ObjectStore, bookmarkIntervalMs = DEFAULT_BOOKMARK_INTERVAL_MS) {
    this.#store = store;
    this.#bookmarkIntervalMs = bookmarkIntervalMs;
  }

  get size(): number {
    return this.#open.size;
  }

  /** Answers `watch=true`. Throws StatusError 410 for a compacted version. */
  begin(request: WatchRequest, response: ServerResponse): void {
    const { query, resource } = request;
    const text = query.get("resourceVersion") ?? "";
    const sendsInitial = query.get("sendInitialEvents") === "true" || text === "" || text === "0";
    const past = sendsInitial ? [] : this.#store.eventsAfter(Number(text), resource);
    if (past === undefined) {
      throw resourceExpired(`too old resource version: ${text} (${this.#store.version})`);
    }
    this.begun++;
    const watch = new Watch(request, response, {
      lineOf: (event) => this.#lineOf(event),
      isSilent: () => this.isSilent,
      bookmarkIntervalMs: this.#bookmarkIntervalMs,
      version: () => this.#store.version,
    });
    this.#open.add(watch);
    const unsubscribe = this.#store.subscribe(resource, (event) => watch.tell(event));
    response.once("close", () => {
      unsubscribe();
      watch.stop();
      this.#open.delete(watch);
    });
    response.writeHead(200, { "Content-Type": "application/json", "Cache-Control": "no-cache, private" });
    response.flushHeaders();
    if (sendsInitial)
      watch.tellInitial(this.#store.list(resource), query.get("sendInitialEvents") === "true");
    for (const event of past) watch.tell(event);
  }

  /** Connections break. */
  drop(): void {
    for (const watch of [...this.#open]) watch.drop();
  }

  /** Ends all watches cleanly, as when their time is over. */
  end(): void {
    for (const watch of [...this.#open]) watch.end();
  }

  /** Sends every watch a 410 in an event, and ends it. */
  expire(): void {
    for (const watch of [...this.#open]) watch.expire();
  }

  /** Sends lines that are not JSON between the others. */
  garble(): void {
    for (const watch of [...this.#open]) watch.write('{"type":"MODIFIED","object":{"kind"\n');
  }

  sendBookmarks(): void {
    for (const watch of [...this.#open]) watch.bookmark();
  }

  #lineOf(event: StoredEvent): string {
    const line = this.#lines.get(event) ?? JSON.stringify({ type: event.type, object: event.object });
    this.#lines.set(event, line);
    return line;
  }
}

interface WatchSupport {
  lineOf(event: StoredEvent): string;
  isSilent(): boolean;
  version(): number;
  readonly bookmarkIntervalMs: number;
}

class Watch {
  readonly #request: WatchRequest;
  readonly #response: ServerResponse;
  readonly #support: WatchSupport;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(request: WatchRequest, response: ServerResponse, support: WatchSupport) {
    this.#request = request;
    this.#response = response;
    this.#support = support;
    const { query } = request;
    const seconds = Number(query.get("timeoutSeconds") ?? 0);
    if (seconds > 0) this.#timers.push(setTimeout(() => this.end(), seconds * 1_000).unref());
    if (query.get("allowWatchBookmarks") === "true") {
      this.#timers.push(setInterval(() => this.bookmark(), support.bookmarkIntervalMs).unref());
    }
  }

  tell(event: StoredEvent): void {
    const { isWanted, present } = this.#request;
    const was = event.previous !== undefined && isWanted(event.previous);
    const is = event.type !== "DELETED" && isWanted(event.object);
    if (!was && !is) return;
    const type = is ? (was ? "MODIFIED" : "ADDED") : "DELETED";
    const line =
      present === undefined && type === event.type
        ? this.#support.lineOf(event)
        : JSON.stringify({ type, object: present === undefined ? event.object : present(event.object) });
    this.write(`${line}\n`);
  }

  tellInitial(objects: readonly ApiObject[], endsWithBookmark: boolean): void {
    const { isWanted, present = (object: ApiObject) => object } = this.#request;
    for (const object of objects.filter(isWanted)) {
      this.write(`${JSON.stringify({ type: "ADDED", object: present(object) })}\n`);
    }
    if (endsWithBookmark) this.bookmark({ "k8s.io/initial-events-end": "true" });
  }

  bookmark(annotations?: Readonly<Record<string, string>>): void {
    const { resource, query } = this.#request;
    if (query.get("allowWatchBookmarks") !== "true") return;
    const metadata = {
      resourceVersion: String(this.#support.version()),
      creationTimestamp: null,
      annotations,
    };
    const object = { kind: resource.kind, apiVersion: groupVersionOf(resource), metadata };
    this.write(`${JSON.stringify({ type: "BOOKMARK", object })}\n`);
  }

  expire(): void {
    const { status } = resourceExpired("The resourceVersion for the provided watch is too old.");
    this.write(`${JSON.stringify({ type: "ERROR", object: status })}\n`);
    this.end();
  }

  write(line: string): void {
    if (this.#support.isSilent()) return;
    if (this.#response.writableLength > MAX_UNREAD_BYTES) this.drop();
    else this.#response.write(line);
  }

  end(): void {
    this.#response.end();
  }

  drop(): void {
    this.#response.destroy();
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}
