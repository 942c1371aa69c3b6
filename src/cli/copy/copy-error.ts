/**
 * Why a copy was given up. Nothing that looks complete is left at its destination.
 * - "changed": the source changed while it was read;
 * - "mismatch": what arrived is not what was sent;
 * - "local": a local file could not be read or written (no space, no permission);
 * - "remote": a program in the container failed; the message is what it said;
 * - "unsafe": an archive names a place outside of the destination;
 * - "usage": source or destination cannot be what was named.
 */
export type CopyErrorCode = "changed" | "mismatch" | "local" | "remote" | "unsafe" | "usage";

export class CopyError extends Error {
  override readonly name = "CopyError";
  readonly code: CopyErrorCode;

  constructor(code: CopyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
