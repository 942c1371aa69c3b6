import type { RecordingStore } from "../../config/sections/recording.ts";
import type { RecordedFacts } from "../format/asciicast.ts";
import type { Deleted, Retention } from "../storage/apply-retention.ts";
import type { UploadRound } from "../storage/s3/uploader.ts";
import type { PartOutcome } from "./finish-left-parts.ts";

/** The thread's `workerData`. */
export interface ThreadInput {
  readonly folder: string;
  /** Names this process's files in the folder; each start of the process has another. */
  readonly writer: string;
  /** The private key, as PKCS#8 PEM. */
  readonly signingKey: string;
  readonly retention: Retention;
  /** Absent if recordings stay in the folder. */
  readonly store?: RecordingStore | undefined;
  /** The authorities that the store's certificate is verified with, PEM. Absent: those of Node.js. */
  readonly storeCa?: string | undefined;
}

/** Messages to the thread, which handles them in order. `handle` is a session's number in this process. */
export type ToThread =
  /** Creates the session's file. Answered by `opened`. */
  | { readonly kind: "open"; readonly handle: number; readonly file: string }
  | ({ readonly kind: "begin"; readonly handle: number } & BegunRecording)
  /** Parts of several sessions (slab.ts). Answered by `taken`, which returns this and other buffers. */
  | { readonly kind: "slab"; readonly buffer: ArrayBuffer; readonly used: number }
  | ({ readonly kind: "lost"; readonly handle: number; readonly timeMs: number } & LostOutput)
  /** Answered by `written` when all earlier data is in the file or `failed` was sent. */
  | { readonly kind: "write"; readonly handle: number }
  /** Answered by `ended`. */
  | ({ readonly kind: "end"; readonly handle: number; readonly timeMs: number } & RecordedEnd)
  /** Removes the file, because the session did not start. */
  | { readonly kind: "discard"; readonly handle: number }
  | { readonly kind: "signing-key"; readonly signingKey: string }
  | { readonly kind: "retention"; readonly retention: Retention }
  /** The store's authorities from now on. */
  | { readonly kind: "store-ca"; readonly ca: string | undefined }
  /** Ends the thread once all ended recordings are on the disk. */
  | { readonly kind: "stop" };

export interface BegunRecording {
  readonly facts: RecordedFacts;
  /** Limits output of an archiving command that is not part of an archive. */
  readonly maxOutputBytes: number;
}

/** Parts of a finished recording's head, for the audit log. */
export interface FinishedRecording {
  readonly hash: string;
  readonly key: string;
  readonly gaps: number;
}

/** Output for which the queue had no room. */
export interface LostOutput {
  readonly bytes: number;
  readonly seconds: number;
  /** In base64. */
  readonly sha256: string;
}

export interface RecordedEnd {
  readonly cause: string;
  /** Undefined if the node reported no exit code. */
  readonly exitCode: number | undefined;
  /** Bytes of output beyond the limit. */
  readonly countedBytes: number;
}

export type FromThread =
  /** `isActive`: of the processes that share the folder, this one uploads. */
  | { readonly kind: "uploads"; readonly round: UploadRound; readonly isActive: boolean }
  /** Old recordings were deleted; `problem` is set if some could not be. */
  | { readonly kind: "deleted"; readonly deleted: Deleted; readonly problem?: string | undefined }
  /** The state of a running recording's chain, for the audit log. */
  | { readonly kind: "chunk"; readonly handle: number; readonly chunk: number; readonly hash: string }
  /** An unfinished recording of another writer was handled. */
  | { readonly kind: "left"; readonly outcome: PartOutcome; readonly file: string }
  /** `problem`: the system's error code. Some files of dead writers could not be finished or removed. */
  | { readonly kind: "left-problem"; readonly problem: string }
  /** `problem`: the system's error code; absent if the file was created. */
  | { readonly kind: "opened"; readonly handle: number; readonly problem?: string | undefined }
  | {
      readonly kind: "taken";
      /** Number of slabs that were taken. */
      readonly slabs: number;
      /** Their buffers, except those that were smaller than a slab. */
      readonly buffers: readonly ArrayBuffer[];
      /** The bytes of each session that were written, or counted in a gap. */
      readonly bytes: readonly (readonly [handle: number, bytes: number])[];
    }
  /** The session's file cannot be written, so a gap began. */
  | { readonly kind: "failed"; readonly handle: number; readonly problem: string }
  | { readonly kind: "written"; readonly handle: number }
  /** A gap is over; `bytes` are missing. */
  | { readonly kind: "gap"; readonly handle: number; readonly bytes: number }
  | {
      readonly kind: "ended";
      readonly handle: number;
      readonly finished?: FinishedRecording | undefined;
      readonly problem?: string | undefined;
    };
