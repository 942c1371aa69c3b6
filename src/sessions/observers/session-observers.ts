import { lendMemory, poisonFreed } from "@sluice/client/internal/net/freed-memory";
import { reportFault } from "@sluice/client/internal/observability/faults";
import type { SessionEnd } from "@sluice/client/internal/sessions/session-end";
import type { SessionReport } from "../session.ts";
import {
  type ObservedPayload,
  type ObservedSession,
  RESIZE,
  type SessionObserver,
  type SessionStream,
  type Side,
} from "./session-observer.ts";

/** The observers of one session. Carriers and decoders notify it; it contains each observer's exceptions. */
export class SessionObservers {
  /** An observer wants this payload. */
  showsNode = false;
  showsInput = false;
  showsSizes = false;
  /** An observer wants to know about opened streams, or about ended ones. */
  showsStreams = false;
  showsEnds = false;
  #observers: readonly SessionObserver[] = [];
  #isOver = false;

  constructor(observers: readonly SessionObserver[] = []) {
    this.#attach(observers);
  }

  /** True if the decoder must tell the node's frames apart by stream. */
  get needsNodeStreams(): boolean {
    return this.showsNode || this.showsInput || this.showsEnds;
  }

  /** True if the decoder must track the streams that the client opens. */
  get needsStreams(): boolean {
    return this.showsStreams || this.needsNodeStreams;
  }

  begin(session: ObservedSession): void {
    this.#notify((observer) => observer.onBegin?.(session));
  }

  /** Adds an observer to the running session. It sees what comes from now on. */
  add(observer: SessionObserver, session: ObservedSession): void {
    if (this.#isOver) return;
    try {
      observer.onBegin?.(session);
      this.#attach([...this.#observers, observer]);
    } catch (error) {
      if (observer.isRequired) throw error;
      reportFault("observer", error);
    }
  }

  /** Removes an observer. It sees nothing more, not even the end. */
  remove(observer: SessionObserver): void {
    this.#attach(this.#observers.filter((other) => other !== observer));
  }

  stream(stream: SessionStream): SessionEnd | undefined {
    let end: SessionEnd | undefined;
    this.#notify((observer) => {
      const refusal = observer.onStream?.(stream);
      end ??= refusal;
    });
    return end;
  }

  /** True if a command's decoder must read what the client sends. */
  get showsClient(): boolean {
    return this.showsInput || this.showsSizes;
  }

  /** A returned end refuses the part: the caller ends the session instead of passing it on. */
  data(stream: SessionStream, from: Side, part: Uint8Array): SessionEnd | undefined {
    if (from === "node") return this.showsNode ? this.#show("node", stream, from, part) : undefined;
    if (stream === RESIZE) return this.showsSizes ? this.#show("sizes", stream, from, part) : undefined;
    return this.showsInput ? this.#show("input", stream, from, part) : undefined;
  }

  /** True if an observer refused the part, which ends `session`. */
  isRefused(
    session: { end(end: SessionEnd): void },
    stream: SessionStream,
    from: Side,
    part: Uint8Array,
  ): boolean {
    const refusal = this.data(stream, from, part);
    if (refusal !== undefined) session.end(refusal);
    return refusal !== undefined;
  }

  #show(
    kind: keyof ObservedPayload,
    stream: SessionStream,
    from: Side,
    part: Uint8Array,
  ): SessionEnd | undefined {
    let end: SessionEnd | undefined;
    for (const observer of this.#observers) {
      if (observer.payload?.[kind] !== true) continue;
      const view = lendMemory(part);
      try {
        const refusal = observer.onData?.(stream, from, view);
        end ??= refusal;
      } catch (error) {
        this.#failed(observer, error);
      }
      poisonFreed(view);
      if (observer.isDone) this.remove(observer);
    }
    return end;
  }

  joined(user: string, hasJoined: boolean): void {
    this.#notify((observer) => observer.onJoin?.(user, hasJoined));
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
      if (observer.isDone) this.remove(observer);
    }
  }

  statusEnd(): void {
    this.#notify((observer) => observer.onStatusEnd?.());
  }

  /** True if an observer may delay the node's report of the end. */
  get awaitsReport(): boolean {
    return !this.#isOver && this.#observers.some((observer) => observer.onReport !== undefined);
  }

  /** Settles once no observer delays the node's report of the end; undefined if none does. */
  report(): Promise<unknown> | undefined {
    const waits: Promise<void>[] = [];
    this.#notify((observer) => {
      const wait = observer.onReport?.();
      if (wait !== undefined) waits.push(wait);
    });
    return waits.length === 0 ? undefined : Promise.all(waits);
  }

  undecodable(side: Side, message: string): SessionEnd | undefined {
    let end: SessionEnd | undefined;
    this.#notify((observer) => {
      const refusal = observer.onUndecodable?.(side, message);
      end ??= refusal;
    });
    return end;
  }

  /** Nothing is carried any more; only the report of the end follows. */
  over(): void {
    this.#isOver = true;
    this.showsNode = this.showsInput = this.showsSizes = this.showsStreams = this.showsEnds = false;
  }

  /** Settles once no observer delays the end; undefined if none does. */
  end(report: SessionReport): Promise<unknown> | undefined {
    const waits: Promise<void>[] = [];
    for (const observer of this.#observers) {
      try {
        const wait = observer.onEnd?.(report);
        if (wait !== undefined) waits.push(wait.catch((error: unknown) => reportFault("observer", error)));
      } catch (error) {
        reportFault("observer", error);
      }
    }
    return waits.length === 0 ? undefined : Promise.all(waits);
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
    this.remove(observer);
  }

  #attach(observers: readonly SessionObserver[]): void {
    this.#observers = observers;
    if (this.#isOver) return;
    this.showsNode = observers.some(({ payload }) => payload?.node === true);
    this.showsInput = observers.some(({ payload }) => payload?.input === true);
    this.showsSizes = observers.some(({ payload }) => payload?.sizes === true);
    this.showsStreams = observers.some((observer) => observer.onStream !== undefined);
    this.showsEnds = observers.some((observer) => observer.onStreamEnd !== undefined);
  }
}
