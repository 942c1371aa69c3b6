// packages/client/copy: copies of files and folders through a shell in a container, resumed and
// verified

import type { RemoteShell } from "./remote-shell.ts";

/** The progress of one file or folder. */
export interface CopyProgress {
  advance(bytes: number): void;
  /** Called after a resume or a restart from zero. */
  moveTo(bytes: number): void;
  stop(): void;
}

/** A container, and how to copy. */
export interface CopyContext {
  readonly shell: RemoteShell;
  /** How many attempts in a row may make no progress. */
  readonly retries: number;
  /** Compares SHA-256 if the container has a program for it. */
  readonly verifies: boolean;
  readonly preservesMode: boolean;
  readonly signal?: AbortSignal | undefined;
  /** `totalBytes` 0: unknown. */
  readonly startProgress: (name: string, totalBytes: number) => CopyProgress | Promise<CopyProgress>;
  /** A connection was lost, and the copy continues. */
  readonly note: (text: string) => void;
  /** The copy differs from the source: a skipped link, a file that grew. */
  readonly warn: (text: string) => void;
}

export function noProgress(): CopyProgress {
  return { advance: () => {}, moveTo: () => {}, stop: () => {} };
}
