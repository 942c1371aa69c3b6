import type { HeaderEdit } from "@sluice/client/internal/http/header-edit";
import { bearerTokenOf, TokenDigests } from "../../access/authn/bearer-tokens.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";

/**
 * Credentials that are remembered as accepted. Past it the least recently used shares its address's
 * seats until it is accepted again.
 */
const MAX_ACCEPTED_CREDENTIALS = 10_000;

type AnswerHeaders = Pick<HeaderEdit, "has">;

interface Caller {
  /** The name whose seats the requests use. */
  readonly name: string;
  readonly isAccepted: boolean;
  /**
   * Call this with the API server's answer. Returns the name whose seats later requests use, if it
   * changes.
   */
  answered(status: number, headers: AnswerHeaders): string | undefined;
}

/**
 * The gateway does not verify passed-on credentials. One that the API server has accepted gets its
 * own seats; others share their address's, because made-up tokens cost nothing.
 */
export class AcceptedCredentials {
  readonly #digests = new TokenDigests();
  /** In order of last use; the most recent is last. */
  readonly #accepted = new Set<string>();

  callerOf(incoming: IncomingStreaming): Caller {
    const address = `address ${incoming.source?.address ?? incoming.remoteAddress}`;
    // The API server ignores any other credential and treats the caller as anonymous.
    const token = bearerTokenOf(incoming);
    if (token === undefined) return { name: address, isAccepted: false, answered: () => undefined };
    const digest = this.#digests.of(token);
    const isAccepted = this.#accepted.has(digest);
    return {
      isAccepted,
      name: isAccepted ? `credential ${digest}` : address,
      answered: (status, headers) => {
        if (status === 401) this.#accepted.delete(digest);
        if (!isAuthenticated(incoming.target, status, headers)) return undefined;
        this.#remember(digest);
        return isAccepted ? undefined : `credential ${digest}`;
      },
    };
  }

  #remember(digest: string): void {
    this.#accepted.delete(digest);
    this.#accepted.add(digest);
    if (this.#accepted.size <= MAX_ACCEPTED_CREDENTIALS) return;
    const [oldest] = this.#accepted;
    if (oldest !== undefined) this.#accepted.delete(oldest);
  }
}

/** API Priority and Fairness sets this header, behind authentication, in answers of any status. */
const CLASSIFIED = "x-kubernetes-pf-flowschema-uid";
const API_PATH = /^\/apis?(?:[/?]|$)/;

/**
 * Whether the answer shows that the API server accepted the caller: a success of its API, or an
 * answer that names the caller's flow. A proxy in front may answer 403 or 404 to anything.
 */
function isAuthenticated(target: string, status: number, headers: AnswerHeaders): boolean {
  if (status === 401) return false;
  return headers.has(CLASSIFIED) || (status >= 200 && status < 300 && API_PATH.test(target));
}
