import type { Pod } from "../api/objects.ts";
import type { ApiClient, ApiRequest } from "./api-client.ts";

/** The API's limit for `message`. */
const MAX_MESSAGE_CHARACTERS = 1_024;

/**
 * client-go's limit for each object: a burst of this many Events, then one each refill interval.
 */
const MAX_BURST_EVENTS = 25;

const EVENT_REFILL_MS = 5 * 60_000;

/** How many objects have a remembered budget; the least recently used one is dropped. */
const MAX_BUDGETED_OBJECTS = 4_096;

/** An Event about a container, for `kubectl describe pod`. */
type ContainerEvent = SaidEvent;

interface EventRecorderOptions {
  readonly client: Pick<ApiClient, "json">;
  /** The API did not store the Event; it is lost. */
  readonly onFailure: (error: unknown) => void;
  readonly nowMs?: () => number;
}

/** Objects whose Events are counted, as in client-go. Past it the oldest is forgotten. */
const MAX_REMEMBERED = 4_096;

interface Written {
  readonly name: Promise<string | undefined>;
  count: number;
}

/**
 * Writes Events about containers. Counts up a repeated Event. EventBudget limits the Events of each
 * pod. Callers do not wait, and an Event that the API does not store is lost.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  /** Keyed by text, least recently used first. */
  readonly #written = new Map<string, Written>();
  /** Keyed by pod uid. */
  readonly #budget = new EventBudget();

  constructor(options: EventRecorderOptions) {
    this.#options = options;
  }

  async record(pod: Pod, containerName: string, event: ContainerEvent): Promise<void> {
    const { uid = "", namespace = "" } = pod.metadata;
    if (!this.#budget.take(uid, this.#nowMs())) return;
    const key = [uid, containerName, event.type, event.reason, event.message].join("\n");
    const known = this.#written.get(key);
    try {
      // Set before the first await, so that the next equal Event finds this one.
      const name = known && (await known.name);
      if (known !== undefined && name !== undefined) {
        known.count++;
        await this.#options.client.json(countUpEvent(namespace, name, known.count, this.#now()));
        return;
      }
      const written = { name: this.#create(pod, containerName, event), count: 1 };
      this.#remember(key, written);
      await written.name;
    } catch (error) {
      this.#written.delete(key);
      this.#options.onFailure(error);
    }
  }

  async #create(pod: Pod, containerName: string, event: ContainerEvent): Promise<string | undefined> {
    const { uid, namespace = "", name } = pod.metadata;
    const isInit = pod.spec.initContainers?.some((each) => each.name === containerName) ?? false;
    const request = createEvent(namespace, {
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: {
        apiVersion: "v1",
        kind: "Pod",
        namespace,
        name,
        uid,
        fieldPath: `spec.${isInit ? "initContainers" : "containers"}{${containerName}}`,
      },
      source: { component: "sluice", host: pod.spec.nodeName ?? "" },
      ...firstSaid(event, this.#now()),
    });
    const answer = (await this.#options.client.json(request)) as { metadata?: { name?: string } };
    return answer.metadata?.name;
  }

  #remember(key: string, written: Written): void {
    this.#written.delete(key);
    this.#written.set(key, written);
    forgetOldest(this.#written);
  }

  #now(): Date {
    return new Date(this.#nowMs());
  }

  #nowMs(): number {
    return (this.#options.nowMs ?? Date.now)();
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  const [oldest] = map.size > MAX_REMEMBERED ? map.keys() : [];
  if (oldest !== undefined) map.delete(oldest);
}

/** The text of an Event, without its object. */
export interface SaidEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** The fields of an Event's first write. */
export function firstSaid({ type, reason, message }: SaidEvent, at: Date): object {
  const timestamp = eventTime(at);
  return {
    type,
    reason,
    message: message.slice(0, MAX_MESSAGE_CHARACTERS),
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
  };
}

/** Creates an Event in its namespace; the function adds apiVersion and kind. */
export function createEvent(namespace: string, event: object): ApiRequest {
  const json = { apiVersion: "v1", kind: "Event", ...event };
  return { method: "POST", path: eventsPath(namespace), body: { contentType: "application/json", json } };
}

/** Updates a repeated Event to its new count and time. */
export function countUpEvent(namespace: string, name: string, count: number, at: Date): ApiRequest {
  const json = { count, lastTimestamp: eventTime(at) };
  const body = { contentType: "application/merge-patch+json", json };
  return { method: "PATCH", path: eventPath(namespace, name), body };
}

export function eventPath(namespace: string, name: string): string {
  return `${eventsPath(namespace)}/${encodeURIComponent(name)}`;
}

function eventsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
}

/** metav1.Time has whole seconds. */
function eventTime(at: Date): string {
  return at.toISOString().replace(/\.\d+Z$/, "Z");
}

/** Limits how many Events each object may have. */
export class EventBudget {
  readonly #budgets = new Map<string, { readonly tokens: number; readonly atMs: number }>();

  /** False if the object has used up its Events; a new one is allowed each `EVENT_REFILL_MS`. */
  take(object: string, nowMs: number): boolean {
    const { tokens, atMs } = this.#budgets.get(object) ?? { tokens: MAX_BURST_EVENTS, atMs: nowMs };
    const refilled = Math.min(MAX_BURST_EVENTS, tokens + (nowMs - atMs) / EVENT_REFILL_MS);
    const isTaken = refilled >= 1;
    this.#budgets.delete(object);
    this.#budgets.set(object, { tokens: isTaken ? refilled - 1 : refilled, atMs: nowMs });
    const [oldest] = this.#budgets.size > MAX_BUDGETED_OBJECTS ? this.#budgets.keys() : [];
    if (oldest !== undefined) this.#budgets.delete(oldest);
    return isTaken;
  }
}
