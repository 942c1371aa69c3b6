import type {
  ObservedSession,
  SessionObserver,
  SessionStream,
  Side,
} from "../../src/sessions/observers/session-observer.ts";
import type { SessionReport } from "../../src/sessions/session.ts";

/**
 * Every event as text. Pieces of one stream are joined, because the places where reads cut them
 * have no meaning.
 */
export class EventList implements SessionObserver {
  readonly isRequired: boolean = false;
  readonly payload: SessionObserver["payload"] = { node: true, input: true, sizes: true };
  readonly events: string[] = [];
  #last = "";

  onBegin({ info }: ObservedSession): void {
    this.#add(`begins${info === undefined ? "" : ` for ${info.user}`}`);
  }
  onStream({ type, connection, port }: SessionStream): undefined {
    this.#add(`client opens ${type} of ${connection} to ${port}`);
  }
  onData({ type }: SessionStream, from: Side, part: Uint8Array): undefined {
    this.#add(`${from} ${type}: `, Buffer.from(part).toString());
  }
  onStreamEnd({ type }: SessionStream, from: Side): void {
    this.#add(`${from} ends ${type}`);
  }
  onStatus(part: Uint8Array): void {
    this.#add("node status: ", Buffer.from(part).toString());
  }
  onStatusEnd(): void {
    this.#add("node ends status");
  }
  onEnd({ endedBy, cause }: SessionReport): void {
    this.#add(`${cause}, by ${endedBy}`);
  }

  #add(event: string, text = ""): void {
    if (text !== "" && event === this.#last) this.events[this.events.length - 1] += text;
    else this.events.push(event + text);
    this.#last = event;
  }
}
