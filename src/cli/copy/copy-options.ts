import type { Verbosity } from "../client/verbosity.ts";
import type { RemoteShell } from "./remote-shell.ts";

/** What every kind of copy needs. */
export interface CopyOptions {
  readonly shell: RemoteShell;
  readonly verbosity: Verbosity;
  /** Attempts in a row that may bring nothing. */
  readonly retries: number;
  /** Compare SHA-256 where the container has a program for it. */
  readonly verifies: boolean;
  readonly preservesMode: boolean;
  readonly isQuiet: boolean;
  readonly signal?: AbortSignal | undefined;
}
