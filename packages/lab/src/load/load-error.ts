import { ConnectError, SessionError } from "@sluice/client";

/**
 * Where a session failed: while connecting ("proxy", "tcp", "tls", "http", "handshake", "response"), while
 * running ("session"), by wrong content ("verify"), or in the generator ("generator").
 */
type LoadLeg = string;

/** A failure that the load generator itself found. */
export class LoadError extends Error {
  override readonly name = "LoadError";
  readonly leg: LoadLeg;
  readonly kind: string;

  constructor(leg: LoadLeg, kind: string, message: string) {
    super(message);
    this.leg = leg;
    this.kind = kind;
  }
}

export interface ClassifiedError {
  readonly leg: LoadLeg;
  /** One of few stable names, because they are counted. */
  readonly kind: string;
  readonly message: string;
}

const MAX_EXAMPLE_CHARACTERS = 300;

export function classify(error: unknown): ClassifiedError {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, MAX_EXAMPLE_CHARACTERS);
  if (error instanceof LoadError) return { leg: error.leg, kind: error.kind, message };
  if (error instanceof SessionError) return { leg: "session", kind: error.code, message };
  if (error instanceof ConnectError) return { leg: error.leg, kind: kindOf(error), message };
  const { code } = error as NodeJS.ErrnoException;
  return { leg: "generator", kind: code ?? "error", message };
}

function kindOf({ httpStatus, apiStatus, cause, leg }: ConnectError): string {
  if (leg === "http") return [httpStatus, apiStatus?.reason].filter((part) => part !== undefined).join(" ");
  const { code } = (cause instanceof Error ? (cause.cause ?? cause) : {}) as NodeJS.ErrnoException;
  return code ?? "failed";
}
