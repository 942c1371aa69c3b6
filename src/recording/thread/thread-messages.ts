import type { RecordingStore } from "../../config/sections/recording.ts";
import type { Deleted, Retention } from "../storage/apply-retention.ts";
import type { UploadRound } from "../storage/s3/uploader.ts";
import type { PartOutcome } from "./finish-part.ts";
import type { BegunRecording, FinishedRecording } from "./session-writer.ts";

/** What the thread is started with. */
export interface ThreadInput {
  readonly folder: string;
  /** The name of this process's files in the folder, unique to this start of it. */
  readonly writer: string;
  /** Private key, PKCS#8 PEM. */
  readonly signingKey: string;
  readonly retention: Retention;
  /** Absent: recordings stay in the folder. */
  readonly store?: RecordingStore | undefined;
}

/** To the thread, which handles messages in order. Sessions have numbers, unique in the process. */
export type ToThread =
  /** Creates the session's file; the answer is `opened`. */
  | { readonly kind: "open"; readonly handle: number; readonly file: string }
  | ({ readonly kind: "begin"; readonly handle: number } & BegunRecording)
  /** Parts of several sessions (slab.ts); the answer is `taken`, with the memory. */
  | { readonly kind: "slab"; readonly buffer: ArrayBuffer; readonly used: number }
  | ({ readonly kind: "lost"; readonly handle: number; readonly timeMs: number } & LostOutput)
  /** The answer is `written`: what came before is in the file, or `failed` was said. */
  | { readonly kind: "write"; readonly handle: number }
  /** The answer is `ended`. */
  | ({ readonly kind: "end"; readonly handle: number; readonly timeMs: number } & RecordedEnd)
  /** The session did not start: its file goes. */
  | { readonly kind: "discard"; readonly handle: number }
  | { readonly kind: "signing-key"; readonly signingKey: string }
  | { readonly kind: "retention"; readonly retention: Retention }
  /** The thread ends when the recordings that it ends are on the disk. */
  | { readonly kind: "stop" };

/** Output that found no room in the queue. */
export interface LostOutput {
  readonly bytes: number;
  readonly seconds: number;
  /** In base64. */
  readonly sha256: string;
}

export interface RecordedEnd {
  readonly cause: string;
  /** Undefined if the node reported none. */
  readonly exitCode: number | undefined;
  /** Output beyond the bound, in bytes. */
  readonly countedBytes: number;
}

export type FromThread =
  /** `isActive`: this process uploads for all that share the folder. */
  | { readonly kind: "uploads"; readonly round: UploadRound; readonly isActive: boolean }
  /** Old recordings were deleted, or could not be. */
  | { readonly kind: "deleted"; readonly deleted: Deleted; readonly problem?: string | undefined }
  /** A running recording's chain so far, for the audit log. */
  | { readonly kind: "chunk"; readonly handle: number; readonly chunk: number; readonly hash: string }
  /** A recording that another writer had left. */
  | { readonly kind: "left"; readonly outcome: PartOutcome; readonly file: string }
  /** The system's error code; what writers that are gone have left is not all finished or removed. */
  | { readonly kind: "left-problem"; readonly problem: string }
  /** `problem`: the system's error code; absent if the file is open. */
  | { readonly kind: "opened"; readonly handle: number; readonly problem?: string | undefined }
  | {
      readonly kind: "taken";
      /** Absent if it was smaller than a slab. */
      readonly buffer?: ArrayBuffer | undefined;
      /** Pairs of a session and its bytes that are written, or counted in a gap. */
      readonly bytes: readonly (readonly [handle: number, bytes: number])[];
    }
  /** The session's file cannot be written: a gap has begun. */
  | { readonly kind: "failed"; readonly handle: number; readonly problem: string }
  | { readonly kind: "written"; readonly handle: number }
  /** A gap has ended. */
  | { readonly kind: "gap"; readonly handle: number; readonly bytes: number }
  | {
      readonly kind: "ended";
      readonly handle: number;
      readonly finished?: FinishedRecording | undefined;
      readonly problem?: string | undefined;
    };
