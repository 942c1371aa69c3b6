import { hash, randomBytes } from "node:crypto";
import { isWebSocketUpgrade, parseBearerSubprotocol } from "@sluice/protocols/websocket";
import {
  type Attempt,
  type CredentialFault,
  type CredentialsRequest,
  invalidCredential,
  NO_CREDENTIAL,
  type RequestAuthenticator,
  type RequestSource,
  type TokenAuthenticator,
} from "./authenticator.ts";

/** The header `Authorization: Bearer`. */
export class BearerTokens implements RequestAuthenticator {
  readonly #tokens: TokenAuthenticator;

  constructor(tokens: TokenAuthenticator) {
    this.#tokens = tokens;
  }

  async attempt(request: CredentialsRequest): Promise<Attempt> {
    const token = bearerTokenOf(request);
    return token === undefined
      ? NO_CREDENTIAL
      : knownOr(await this.#tokens.attemptToken(token, request.source));
  }
}

/** A browser's token in a WebSocket subprotocol, because browsers cannot set headers there. */
export class SubprotocolTokens implements RequestAuthenticator {
  readonly #tokens: TokenAuthenticator;

  constructor(tokens: TokenAuthenticator) {
    this.#tokens = tokens;
  }

  async attempt(request: CredentialsRequest): Promise<Attempt> {
    const lines = request.headers.flat();
    if (!isWebSocketUpgrade(lines)) return NO_CREDENTIAL;
    const found = parseBearerSubprotocol(lines);
    if (found.type === "none") return NO_CREDENTIAL;
    if (found.type === "invalid") return invalidCredential("subprotocol-malformed");
    return knownOr(await this.#tokens.attemptToken(found.token, request.source));
  }
}

/** An unknown token is invalid, not absent. */
function knownOr(attempt: Attempt): Attempt {
  return attempt.type === "none" ? invalidCredential("token-unknown") : attempt;
}

/**
 * Tries every token authenticator in order. Refuses an overlong token without asking any of them.
 */
export class TokenChain implements TokenAuthenticator {
  readonly #authenticators: readonly TokenAuthenticator[];
  readonly #maxTokenBytes: number;

  constructor(authenticators: readonly TokenAuthenticator[], maxTokenBytes: number) {
    this.#authenticators = authenticators;
    this.#maxTokenBytes = maxTokenBytes;
  }

  async attemptToken(token: string, source?: RequestSource): Promise<Attempt> {
    if (Buffer.byteLength(token) > this.#maxTokenBytes) return invalidCredential("token-oversized");
    let fault: CredentialFault | undefined;
    for (const authenticator of this.#authenticators) {
      const attempt = await authenticator.attemptToken(token, source);
      if (attempt.type === "known") return attempt;
      if (attempt.type === "invalid") fault ??= attempt.fault;
    }
    return fault === undefined ? NO_CREDENTIAL : invalidCredential(fault);
  }
}

/**
 * The token in `Authorization: Bearer <token>`. As in kube-apiserver, the scheme may be in any
 * case, and only the first line counts.
 */
export function bearerTokenOf(request: CredentialsRequest): string | undefined {
  const header = request.headers.find(([name]) => name.toLowerCase() === "authorization")?.[1].trim() ?? "";
  const [scheme, token] = header.split(" ", 3);
  return scheme?.toLowerCase() === "bearer" && token ? token : undefined;
}

/**
 * The token that a browser offers as a subprotocol, because it cannot set headers on a WebSocket. A
 * malformed token does not count.
 */
export function subprotocolTokenOf(request: CredentialsRequest): string | undefined {
  const lines = request.headers.flat();
  if (!isWebSocketUpgrade(lines)) return undefined;
  const found = parseBearerSubprotocol(lines);
  return found.type === "token" ? found.token : undefined;
}

/**
 * Digests of tokens by this process's key: look-ups take the same time for every token, and memory
 * dumps contain no tokens.
 */
export class TokenDigests {
  readonly #key = randomBytes(32).toString("base64");

  /**
   * A keyed SHA-256 in one call: on Node 24 an HMAC takes 11 µs, this 0.4. Digests never leave the
   * process, so a length extension is impossible.
   */
  of(token: string): string {
    return hash("sha256", this.#key + token, "base64");
  }
}
