import type { Pod } from "../api/objects.ts";
import type { ApiClient } from "./api-client.ts";
import { countUpEvent, createEvent, EventBudget, firstSaid, type SaidEvent } from "./event-requests.ts";

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
 * Writes Events about containers; a repeated one counts up. EventBudget limits each pod. Callers do
 * not wait, and an Event that the API does not store is lost.
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
      // Set before the first await, so that the next equal Event finds it.
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
