import { bearerTokenOf } from "../../access/authn/bearer.ts";
import { TokenDigests } from "../../access/authn/token-digests.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";

/** Past it the credential is forgotten whose last request is the longest ago: it shares its address's seats until it is accepted again. */
export const MAX_ACCEPTED_CREDENTIALS = 10_000;

export interface Caller {
  /** Whose seats its requests take. */
  readonly name: string;
  readonly isAccepted: boolean;
  /** To be called with the API server's answer. The name whose seats they take from now on, if it is another. */
  answered(status: number): string | undefined;
}

/**
 * Callers whose credentials are passed on are not known here. A credential that the API server has accepted has its share; others share
 * their address's, for made-up tokens cost nothing.
 */
export class AcceptedCredentials {
  readonly #digests = new TokenDigests();
  /** Those used last come last. */
  readonly #accepted = new Set<string>();

  callerOf(incoming: IncomingStreaming): Caller {
    const address = `address ${incoming.source?.address ?? incoming.remoteAddress}`;
    // Of anything else the API server takes nothing, and answers as it answers anonymous callers.
    const token = bearerTokenOf(incoming);
    if (token === undefined) return { name: address, isAccepted: false, answered: () => undefined };
    const digest = this.#digests.of(token);
    const isAccepted = this.#accepted.has(digest);
    return {
      isAccepted,
      name: isAccepted ? `credential ${digest}` : address,
      answered: (status) => {
        if (status === 401) this.#accepted.delete(digest);
        if (!isAuthenticated(status)) return undefined;
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

/** Answers that an API server gives to callers that it knows. Refusals of load, and those of proxies in front of it, show nothing. */
function isAuthenticated(status: number): boolean {
  return (
    (status >= 200 && status < 300) || status === 403 || status === 404 || status === 409 || status === 422
  );
}
