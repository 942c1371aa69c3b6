import type { SessionTimes } from "./session-times.ts";

/** Client options for resumable sessions. */
export interface ResumeOptions {
  /** The clock for heartbeats and deadlines; defaults to the one that all sessions share. */
  readonly clock?: SessionTimes["clock"] | undefined;
  /**
   * Called with a sentence, without secrets, when a connection is lost and when the session
   * resumes.
   */
  note?(text: string): void;
  /** In milliseconds: the interval between PINGs, and how long a connection may be silent. */
  readonly heartbeat?: { readonly pingIntervalMs: number; readonly silenceMs: number } | undefined;
}
