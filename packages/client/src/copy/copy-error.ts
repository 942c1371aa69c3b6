/** Why a copy failed. */
export type CopyErrorCode =
  /** The paths do not fit together, or one is missing. */
  | "usage"
  /** A file or folder on this machine cannot be read or written. */
  | "local"
  /** A program in the container failed, or is missing. */
  | "remote"
  /** The source shrank or was overwritten while it was copied. */
  | "changed"
  /** Size or SHA-256 differs at the end. */
  | "mismatch"
  /** A name or link leads outside the destination. */
  | "unsafe";

/** A copy failed for another reason than its connection. */
export class CopyError extends Error {
  override readonly name = "CopyError";
  readonly code: CopyErrorCode;

  constructor(code: CopyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** An error of ours or of the file system. */
export function isOwn(error: Error): boolean {
  return error instanceof CopyError || "syscall" in error || "code" in error;
}
