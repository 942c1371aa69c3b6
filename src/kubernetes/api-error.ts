import type { IncomingHttpHeaders } from "node:http";
import { type Status, statusOfBody } from "../api/status.ts";

/** A day; what a server asks beyond it is not meant for us. */
const MAX_RETRY_AFTER_SECONDS = 86_400;

/** The API server's refusal. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  readonly status: Status | undefined;
  /** How long it wants to be left alone. */
  readonly retryAfterMs: number | undefined;

  constructor(code: number, body: Uint8Array | string, headers: IncomingHttpHeaders = {}) {
    const status = statusOfBody(body);
    super(status?.message ?? `the API server answered ${code}`);
    this.code = status?.code || code;
    this.status = status;
    const header = Number.parseInt(headers["retry-after"] ?? "", 10);
    const seconds = Number.isNaN(header) ? status?.details?.retryAfterSeconds : header;
    this.retryAfterMs =
      seconds === undefined ? undefined : 1_000 * Math.min(Math.max(seconds, 0), MAX_RETRY_AFTER_SECONDS);
  }

  /**
   * The version that was asked about is of no use: forgotten (410), or of a future that this server does not know, which it has lost
   * or not yet heard of (504 with the cause ResourceVersionTooLarge).
   */
  get isVersionUseless(): boolean {
    const isTooLarge = this.status?.details?.causes?.some(
      ({ reason }) => reason === "ResourceVersionTooLarge",
    );
    return this.code === 410 || (this.code === 504 && isTooLarge === true);
  }
}

/** An answer that is no JSON, or not of the form that was asked for. */
export class MalformedAnswerError extends Error {
  override readonly name = "MalformedAnswerError";
}
