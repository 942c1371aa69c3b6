import { createHash } from "node:crypto";
import type { KubernetesObject } from "../api/objects.ts";
import type { ApiClient, ApiRequest } from "./api-client.ts";
import { ApiError } from "./api-error.ts";
import { EventBudget } from "./event-budget.ts";

/** What waits to be written; beyond that Events are dropped and counted. */
export const MAX_PENDING_EVENTS = 1_000;
/** What the API takes in `message`. */
const MAX_MESSAGE_CHARACTERS = 1_024;
/** Of one request; a shutdown waits no longer for it. */
const EVENT_TIMEOUT_MS = 10_000;
const COMPONENT = "sluice";

export interface RecordedEvent {
  readonly involved: KubernetesObject;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

export interface SharedEventRecorderOptions {
  readonly client: Pick<ApiClient, "json">;
  /** Asked again before each write. */
  readonly mayWrite: () => boolean;
  readonly onFailure: (problem: string) => void;
  readonly onDropped: (reason: "queue" | "object") => void;
  readonly nowMs?: () => number;
}

/**
 * Writes core/v1 Events that several replicas could write. The same thing said of the same object is one Event, whichever replica says it, by a name made of both; said
 * again it counts up. Nobody waits for Events, and what cannot be written is lost.
 */
export class SharedEventRecorder {
  readonly #options: SharedEventRecorderOptions;
  readonly #nowMs: () => number;
  readonly #budget = new EventBudget();
  #pending = 0;
  #isStopped = false;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: SharedEventRecorderOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  record(event: RecordedEvent): void {
    const { onDropped, onFailure, mayWrite } = this.#options;
    const isQueueFull = this.#pending >= MAX_PENDING_EVENTS;
    if (isQueueFull || !this.#mayTell(event.involved)) {
      onDropped(isQueueFull ? "queue" : "object");
      return;
    }
    this.#pending++;
    this.#writing = this.#writing.then(async () => {
      this.#pending--;
      if (this.#isStopped || !mayWrite()) return;
      await this.#write(event).catch((error: Error) => onFailure(error.message));
    });
  }

  /** Resolves when all that was recorded was tried. */
  async settled(): Promise<void> {
    for (let writing: Promise<void> | undefined; writing !== this.#writing; ) {
      writing = this.#writing;
      await writing;
    }
  }

  /** What waits is lost. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.settled();
  }

  async #write(event: RecordedEvent): Promise<void> {
    const object = eventOf(event, new Date());
    const { namespace, name } = object.metadata;
    const collection = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
    try {
      const body = { contentType: "application/json", json: object };
      await this.#ask({ method: "POST", path: collection, body });
    } catch (error) {
      if (!(error instanceof ApiError && error.status?.reason === "AlreadyExists")) throw error;
      const path = `${collection}/${encodeURIComponent(name)}`;
      const { count = 1 } = (await this.#ask({ path })) as { count?: number };
      const json = { count: count + 1, lastTimestamp: object.lastTimestamp };
      const body = { contentType: "application/merge-patch+json", json };
      await this.#ask({ method: "PATCH", path, body });
    }
  }

  #ask(request: ApiRequest): Promise<unknown> {
    return this.#options.client.json({ ...request, signal: AbortSignal.timeout(EVENT_TIMEOUT_MS) });
  }

  #mayTell({ kind, metadata: { namespace = "", name } }: KubernetesObject): boolean {
    return this.#budget.take(`${kind} ${namespace}/${name}`, this.#nowMs());
  }
}

function eventOf({ involved, type, reason, message }: RecordedEvent, at: Date) {
  const { name, namespace = "default", uid, resourceVersion } = involved.metadata;
  const said = createHash("sha256")
    .update(JSON.stringify([uid ?? "", type, reason, message]))
    .digest("hex");
  const timestamp = at.toISOString().replace(/\.\d+Z$/, "Z");
  const { apiVersion, kind } = involved;
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name.slice(0, 236)}.${said.slice(0, 16)}`, namespace },
    involvedObject: { apiVersion, kind, namespace, name, uid, resourceVersion },
    type,
    reason,
    message: message.slice(0, MAX_MESSAGE_CHARACTERS),
    source: { component: COMPONENT },
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
    reportingComponent: COMPONENT,
    reportingInstance: "",
  };
}
