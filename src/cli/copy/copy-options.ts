import type { Verbosity } from "../client/verbosity.ts";
import type { RemoteShell } from "./remote-shell.ts";

/** Options of every kind of copy. */
export interface CopyOptions {
  readonly shell: RemoteShell;
  readonly verbosity: Verbosity;
  /** How many attempts in a row may make no progress. */
  readonly retries: number;
  /** Compares SHA-256 if the container has a program for it. */
  readonly verifies: boolean;
  readonly preservesMode: boolean;
  readonly isQuiet: boolean;
  readonly signal?: AbortSignal | undefined;
}
