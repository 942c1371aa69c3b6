import { lendMemory, poisonFreed } from "../../net/freed-memory.ts";
import { reportFault } from "../../observability/faults.ts";
import type { SessionReport } from "../session.ts";
import type { SessionEnd } from "../session-end.ts";
import type { ObservedSession, SessionObserver, SessionStream, Side } from "./session-observer.ts";

/** The observers of one session. Carriers and decoders notify it; it contains each observer's exceptions. */
export class SessionObservers {
  /** An observer wants the client's payload, or the node's. */
  showsClient = false;
  showsNode = false;
  /** An observer wants to know about opened streams, or about ended ones. */
  showsStreams = false;
  showsEnds = false;
  #observers: readonly SessionObserver[] = [];
  #isOver = false;

  constructor(observers: readonly SessionObserver[]) {
    this.#attach(observers);
  }

  /** True if the decoder must tell the node's frames apart by stream. */
  get needsNodeStreams(): boolean {
    return this.showsNode || this.showsEnds;
  }

  /** True if the decoder must track the streams that the client opens. */
  get needsStreams(): boolean {
    return this.showsStreams || this.needsNodeStreams;
  }

  begin(session: ObservedSession): void {
    this.#notify((observer) => observer.onBegin?.(session));
  }

  stream(stream: SessionStream): SessionEnd | undefined {
    let end: SessionEnd | undefined;
    this.#notify((observer) => {
      const refusal = observer.onStream?.(stream);
      end ??= refusal;
    });
    return end;
  }

  data(stream: SessionStream, from: Side, part: Uint8Array): void {
    if (!(from === "client" ? this.showsClient : this.showsNode)) return;
    for (const observer of this.#observers) {
      if (observer.payload === "both" || (observer.payload === "node" && from === "node")) {
        const view = lendMemory(part);
        try {
          observer.onData?.(stream, from, view);
        } catch (error) {
          this.#failed(observer, error);
        }
        poisonFreed(view);
        if (observer.isDone) this.#detach(observer);
      }
    }
  }

  streamEnd(stream: SessionStream, from: Side): void {
    this.#notify((observer) => observer.onStreamEnd?.(stream, from));
  }

  status(part: Uint8Array): void {
    if (this.#isOver) return;
    for (const observer of this.#observers) {
      const view = lendMemory(part);
      try {
        observer.onStatus?.(view);
      } catch (error) {
        this.#failed(observer, error);
      }
      poisonFreed(view);
      if (observer.isDone) this.#detach(observer);
    }
  }

  statusEnd(): void {
    this.#notify((observer) => observer.onStatusEnd?.());
  }

  undecodable(side: Side, message: string): SessionEnd | undefined {
    let end: SessionEnd | undefined;
    this.#notify((observer) => {
      const refusal = observer.onUndecodable?.(side, message);
      end ??= refusal;
    });
    return end;
  }

  /** Nothing is carried any more: only the report follows. */
  over(): void {
    this.#isOver = true;
    this.showsClient = this.showsNode = this.showsStreams = this.showsEnds = false;
  }

  end(report: SessionReport): void {
    for (const observer of this.#observers) {
      try {
        observer.onEnd?.(report);
      } catch (error) {
        reportFault("observer", error);
      }
    }
  }

  /** For rare events. Payload events avoid this closure. */
  #notify(event: (observer: SessionObserver) => void): void {
    if (this.#isOver) return;
    for (const observer of this.#observers) {
      try {
        event(observer);
      } catch (error) {
        this.#failed(observer, error);
      }
    }
  }

  #failed(observer: SessionObserver, error: unknown): void {
    if (observer.isRequired) throw error;
    reportFault("observer", error);
    this.#detach(observer);
  }

  #detach(observer: SessionObserver): void {
    this.#attach(this.#observers.filter((other) => other !== observer));
  }

  #attach(observers: readonly SessionObserver[]): void {
    this.#observers = observers;
    if (this.#isOver) return;
    this.showsClient = observers.some(({ payload }) => payload === "both");
    this.showsNode = observers.some(({ payload }) => payload !== undefined);
    this.showsStreams = observers.some((observer) => observer.onStream !== undefined);
    this.showsEnds = observers.some((observer) => observer.onStreamEnd !== undefined);
  }
}

/** For sessions without observers. */
export const NO_OBSERVERS: SessionObservers = new SessionObservers([]);
