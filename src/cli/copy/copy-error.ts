/**
 * Why a copy failed. "local": files here; "remote": programs there; "unsafe": a name that leads
 * outside the destination.
 */
type CopyErrorCode = "changed" | "mismatch" | "local" | "remote" | "unsafe" | "usage";

export class CopyError extends Error {
  override readonly name = "CopyError";
  readonly code: CopyErrorCode;

  constructor(code: CopyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
