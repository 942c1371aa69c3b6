import type { JsonAnswer } from "../http/post-json.ts";
import type { Logger } from "../observability/logger.ts";

export interface ReviewLogOptions {
  /** What the account that asks must be allowed, as the check at start names it. */
  readonly permission: string;
  /** The line of a review without an answer. */
  readonly failed: string;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
}

export interface LoggedReviews {
  readonly ask: (review: unknown) => Promise<JsonAnswer>;
  readonly onFailure: (error: Error) => void;
}

/** Logs each review that fails; where the account itself is refused, that once, and its end: every request would have the line. */
export function loggedReviews(
  ask: (review: unknown) => Promise<JsonAnswer>,
  { permission, failed, logger }: ReviewLogOptions,
): LoggedReviews {
  let isRefused = false;
  return {
    ask: async (review) => {
      const answer = await ask(review);
      if (answer.status === 403) {
        if (!isRefused)
          logger.warn(
            { missing: [permission] },
            "the gateway's account lacks permissions: see `sluice rbac`",
          );
        isRefused = true;
      } else if (isRefused && answer.status < 300) {
        isRefused = false;
        logger.info({ permission }, "the gateway's account has the permission again");
      }
      return answer;
    },
    onFailure: ({ message }) => {
      if (!isRefused) logger.error({ problem: message }, failed);
    },
  };
}
