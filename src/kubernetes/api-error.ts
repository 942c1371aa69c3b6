import type { IncomingHttpHeaders } from "node:http";
import { type Status, statusOfBody } from "@sluice/client/internal/api/status";

/** One day; longer waits are cut to it. */
const MAX_RETRY_AFTER_SECONDS = 86_400;

/** The API server refused a request. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  readonly status: Status | undefined;
  /** The server's Retry-After. */
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
   * The server cannot use the requested version: it expired (410), or the server has not reached it
   * yet (504 with the cause ResourceVersionTooLarge).
   */
  get isVersionUseless(): boolean {
    const isTooLarge = this.status?.details?.causes?.some(
      ({ reason }) => reason === "ResourceVersionTooLarge",
    );
    return this.code === 410 || (this.code === 504 && isTooLarge === true);
  }
}

/** The answer is not JSON, or has not the requested shape. */
export class MalformedAnswerError extends Error {
  override readonly name = "MalformedAnswerError";
}
