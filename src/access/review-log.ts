import type { JsonAnswer } from "@sluice/client/internal/http/upstream/ask-json";
import type { Logger } from "../observability/logger.ts";

interface ReviewLogOptions {
  /** The account's required permission, as the check at start names it. */
  readonly permission: string;
  /** The log message for a review without an answer. */
  readonly failed: string;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
}

interface LoggedReviews {
  readonly ask: (review: unknown) => Promise<JsonAnswer>;
  readonly onFailure: (error: Error) => void;
}

/**
 * Logs each failed review. A refusal of the account itself is logged once, and its end: otherwise
 * every request would repeat the line.
 */
export function loggedReviews(
  ask: (review: unknown) => Promise<JsonAnswer>,
  { permission, failed, logger }: ReviewLogOptions,
): LoggedReviews {
  let isRefused = false;
  /** Undefined if there was no answer. */
  const answeredWith = (status: number | undefined): void => {
    const wasRefused = isRefused;
    isRefused = status === 403;
    if (isRefused && !wasRefused)
      logger.warn({ missing: [permission] }, "the gateway's account lacks permissions: see `sluice rbac`");
    else if (wasRefused && status !== undefined && status < 300)
      logger.info({ permission }, "the gateway's account has the permission again");
  };
  return {
    ask: async (review) => {
      let status: number | undefined;
      try {
        const answer = await ask(review);
        status = answer.status;
        return answer;
      } finally {
        answeredWith(status);
      }
    },
    onFailure: ({ message }) => {
      if (!isRefused) logger.error({ problem: message }, failed);
    },
  };
}
