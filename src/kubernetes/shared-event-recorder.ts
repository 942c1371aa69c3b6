import { createHash } from "node:crypto";
import type { ApiObject } from "../api/api-object.ts";
import { type ApiClient, ApiError, type ApiRequest } from "./api-client.ts";
import {
  countUpEvent,
  createEvent,
  EventBudget,
  eventPath,
  firstSaid,
  type SaidEvent,
} from "./event-recorder.ts";

/** Events that wait to be written. Past it new Events are dropped and counted. */
const MAX_PENDING_EVENTS = 1_000;
/** The time for writing one Event, and for a shutdown to wait. Past it the Event is dropped. */
const EVENT_TIMEOUT_MS = 10_000;
const COMPONENT = "sluice";

interface RecordedEvent extends SaidEvent {
  readonly involved: Pick<ApiObject, "apiVersion" | "kind" | "metadata">;
}

interface SharedEventRecorderOptions {
  readonly client: Pick<ApiClient, "json">;
  /** Checked before each write. */
  readonly mayWrite: () => boolean;
  readonly onFailure: (problem: string) => void;
  readonly onDropped: (reason: "queue" | "object") => void;
  readonly nowMs?: () => number;
}

/**
 * Writes core/v1 Events for several replicas: equal texts about one object get the same Event name,
 * and its count grows. Writes in the background; an Event that the API does not store is lost.
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

  /** Resolves after every recorded Event was tried. */
  async settled(): Promise<void> {
    for (let writing: Promise<void> | undefined; writing !== this.#writing; ) {
      writing = this.#writing;
      await writing;
    }
  }

  /** Drops Events that still wait. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.settled();
  }

  async #write(event: RecordedEvent): Promise<void> {
    const at = new Date();
    const object = eventOf(event, at);
    const { namespace, name } = object.metadata;
    try {
      await this.#ask(createEvent(namespace, object));
    } catch (error) {
      if (!(error instanceof ApiError && error.status?.reason === "AlreadyExists")) throw error;
      const { count = 1 } = (await this.#ask({ path: eventPath(namespace, name) })) as { count?: number };
      await this.#ask(countUpEvent(namespace, name, count + 1, at));
    }
  }

  #ask(request: ApiRequest): Promise<unknown> {
    return this.#options.client.json({ ...request, signal: AbortSignal.timeout(EVENT_TIMEOUT_MS) });
  }

  #mayTell({ kind, metadata: { namespace = "", name } }: RecordedEvent["involved"]): boolean {
    return this.#budget.take(`${kind} ${namespace}/${name}`, this.#nowMs());
  }
}

function eventOf({ involved, ...said }: RecordedEvent, at: Date) {
  const { type, reason, message } = said;
  const { name, namespace = "default", uid, resourceVersion } = involved.metadata;
  const digest = createHash("sha256")
    .update(JSON.stringify([uid ?? "", type, reason, message]))
    .digest("hex");
  const { apiVersion, kind } = involved;
  return {
    metadata: { name: `${name.slice(0, 236)}.${digest.slice(0, 16)}`, namespace },
    involvedObject: { apiVersion, kind, namespace, name, uid, resourceVersion },
    source: { component: COMPONENT },
    ...firstSaid(said, at),
    reportingComponent: COMPONENT,
    reportingInstance: "",
  };
}
