import type { SessionTimes } from "./session-times.ts";

/** How a resumable session behaves on this side. */
export interface ResumeOptions {
  /** Heartbeats and deadlines are kept with this clock; that of all sessions unless said otherwise. */
  readonly clock?: SessionTimes["clock"] | undefined;
  /** Is told when a connection is lost, and when the session goes on, in a sentence without secrets. */
  note?(text: string): void;
  /** In milliseconds: a PING this often, and how long a silent connection is waited for. */
  readonly heartbeat?: { readonly pingIntervalMs: number; readonly silenceMs: number } | undefined;
}
