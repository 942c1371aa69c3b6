import type { Pod } from "../api/objects.ts";
import type { ApiClient } from "./api-client.ts";
import { EventBudget } from "./event-budget.ts";

/** What happened to a container, as `kubectl describe pod` shows it. */
export interface ContainerEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

export interface EventRecorderOptions {
  readonly client: Pick<ApiClient, "json">;
  /** An Event that could not be written is lost. */
  readonly onFailure: (error: unknown) => void;
  readonly nowMs?: () => number;
}

/** client-go's bound: Events remembered. */
const MAX_REMEMBERED = 4_096;
/** The API server takes no more. */
const MAX_MESSAGE_CHARACTERS = 1_024;

interface Written {
  readonly name: Promise<string | undefined>;
  count: number;
}

/**
 * Writes Events about containers. The same thing again counts up the Event that is there; a pod about which there is too much to say is
 * heard once in five minutes. Nothing waits: what can not be written is lost.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  /** By what they say, the longest unused first. */
  readonly #written = new Map<string, Written>();
  /** By pod uid. */
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
      // Remembered before anything is waited for: the next one of its kind must find it.
      const name = known && (await known.name);
      if (known !== undefined && name !== undefined) {
        known.count++;
        const json = { count: known.count, lastTimestamp: this.#now() };
        const path = `${eventsPath(namespace)}/${encodeURIComponent(name)}`;
        const contentType = "application/merge-patch+json";
        await this.#options.client.json({ method: "PATCH", path, body: { contentType, json } });
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
    const now = this.#now();
    const isInit = pod.spec.initContainers?.some((each) => each.name === containerName) ?? false;
    const json = {
      apiVersion: "v1",
      kind: "Event",
      metadata: { generateName: `${name}.`, namespace },
      involvedObject: {
        apiVersion: "v1",
        kind: "Pod",
        namespace,
        name,
        uid,
        fieldPath: `spec.${isInit ? "initContainers" : "containers"}{${containerName}}`,
      },
      type: event.type,
      reason: event.reason,
      message: event.message.slice(0, MAX_MESSAGE_CHARACTERS),
      source: { component: "sluice", host: pod.spec.nodeName ?? "" },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    const answer = (await this.#options.client.json({
      method: "POST",
      path: eventsPath(namespace),
      body: { contentType: "application/json", json },
    })) as { metadata?: { name?: string } };
    return answer.metadata?.name;
  }

  #remember(key: string, written: Written): void {
    this.#written.delete(key);
    this.#written.set(key, written);
    forgetOldest(this.#written);
  }

  #now(): string {
    return new Date(this.#nowMs()).toISOString().replace(/\.\d+Z$/, "Z");
  }

  #nowMs(): number {
    return (this.#options.nowMs ?? Date.now)();
  }
}

function forgetOldest(map: Map<string, unknown>): void {
  const [oldest] = map.size > MAX_REMEMBERED ? map.keys() : [];
  if (oldest !== undefined) map.delete(oldest);
}

function eventsPath(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
}
