// src/access: authentication, authorization (RBAC, webhook, reviews), session policy, audit

import { createSecureContext } from "node:tls";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { readNamedFile } from "@sluice/client/internal/config/named-file-text";
import { systemErrorReason } from "@sluice/client/internal/config/system-error";
import { askHttpsUrl } from "@sluice/client/internal/http/upstream/ask-json";
import { validityOfPem } from "../../config/certificate-validity.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { JwtIssuer } from "../../config/jwt-authenticators.ts";
import { parseAuthenticationFile } from "../../config/named-files.ts";
import { issuerOfOidc } from "../../config/sections/authentication.ts";
import { type Component, Started } from "../../lifecycle/component.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import { loggedReviews, webhookClient } from "../webhook-client.ts";
import { AuthenticatorChain, type RequestAuthenticator, type TokenAuthenticator } from "./authenticator.ts";
import { BearerTokens, SubprotocolTokens, TokenChain } from "./bearer-tokens.ts";
import { CertificateAuthority, ClientCertificates } from "./certificate-authority.ts";
import { type GetJson, OidcKeySet } from "./oidc-key-set.ts";
import { type KeyedIssuer, OidcTokens } from "./oidc-tokens.ts";
import { RequestHeaders } from "./request-headers.ts";
import { parseTokenFile, StaticTokens } from "./static-tokens.ts";
import { TokenReviews } from "./token-review.ts";

/** Limit for fetching an issuer's documents, since a login waits for them. */
const ISSUER_TIMEOUT_MS = 5_000;

/** A bundle of authorities and its file, which is read again after a change. */
export interface WatchedAuthority {
  readonly file: string;
  readonly authority: CertificateAuthority;
}

export interface BuiltAuthenticator extends Component {
  readonly authenticator: AuthenticatorChain;
  /** The listener requests client certificates of these authorities. */
  readonly authorities: readonly WatchedAuthority[];
  /** Releases connections. */
  stop(): Promise<void>;
}

/**
 * Builds the chain in kube-apiserver's order: front proxy, client certificate, bearer token,
 * subprotocol token; anonymous last. Throws ConfigurationError for unreadable or invalid files.
 */
export async function buildAuthenticator(
  { authentication, limits }: Pick<GatewayConfiguration, "authentication" | "limits">,
  metrics: { readonly access: Pick<Metrics["access"], "authenticationAttempted"> },
  logger: Logger,
  upstreams: UpstreamTlsFiles,
): Promise<BuiltAuthenticator> {
  return await Started.building(async (started) => {
    const { requestHeader, clientCAFile, anonymous } = authentication;
    const authenticators: RequestAuthenticator[] = [];
    const authorities: WatchedAuthority[] = [];
    if (requestHeader !== undefined) {
      const authority = await readAuthority(requestHeader.clientCAFile, clientCAFile === undefined);
      authorities.push({ file: requestHeader.clientCAFile, authority });
      authenticators.push(new RequestHeaders(authority, requestHeader));
    }
    if (clientCAFile !== undefined) {
      const authority = await readAuthority(clientCAFile, requestHeader === undefined);
      authorities.push({ file: clientCAFile, authority });
      authenticators.push(new ClientCertificates(authority, authentication.refuseSystemMasters));
    }
    const tokens = new TokenChain(
      await tokenAuthenticators(authentication, started, logger, upstreams),
      limits.maxBearerTokenBytes,
    );
    authenticators.push(new BearerTokens(tokens), new SubprotocolTokens(tokens));
    const authenticator = new AuthenticatorChain({
      authenticators,
      isAnonymousAllowed: anonymous.enabled,
      onResult: (result) => metrics.access.authenticationAttempted(result),
    });
    return { authenticator, authorities, stop: () => started.stop() };
  });
}

async function tokenAuthenticators(
  authentication: GatewayConfiguration["authentication"],
  started: Started,
  logger: Logger,
  upstreams: UpstreamTlsFiles,
): Promise<TokenAuthenticator[]> {
  const { tokenAuthFile, tokenReview } = authentication;
  const authenticators: TokenAuthenticator[] = [];
  if (tokenAuthFile !== undefined) {
    authenticators.push(new StaticTokens(parseTokenFile(await readNamed(tokenAuthFile), tokenAuthFile)));
  }
  const issuers = await issuersOf(authentication);
  if (issuers.length > 0) {
    const noted = new NotedAuthorities(upstreams);
    const keyed = issuers.map((issuer) => keyedIssuer(issuer, upstreams, noted));
    authenticators.push(new OidcTokens(await Promise.all(keyed)));
    noted.report();
  }
  if (tokenReview !== undefined) {
    const { target, version, timeoutMs } = tokenReview;
    const defaultPath = `/apis/authentication.k8s.io/${version}/tokenreviews`;
    const client = started.add(
      await webhookClient(target, { defaultPath, timeoutMs, use: "tokenReview", upstreams }),
      (it) => it.stop(),
    );
    const reviews = loggedReviews(client.ask, {
      permission: "create tokenreviews.authentication.k8s.io (authentication.tokenReview)",
      failed: "a token could not be reviewed",
      logger,
    });
    authenticators.push(
      new TokenReviews(reviews.ask, {
        ...tokenReview,
        nowMs: () => performance.now(),
        epochMs: () => Date.now(),
        onFailure: reviews.onFailure,
      }),
    );
  }
  return authenticators;
}

/** At most one of the three is configured. */
async function issuersOf({
  configurationFile,
  jwt,
  oidc,
}: GatewayConfiguration["authentication"]): Promise<readonly JwtIssuer[]> {
  if (oidc !== undefined) return [issuerOfOidc(oidc)];
  if (configurationFile === undefined) return jwt;
  return parseAuthenticationFile(await readNamed(configurationFile), configurationFile);
}

async function keyedIssuer(
  issuer: JwtIssuer,
  upstreams: UpstreamTlsFiles,
  noted: NotedAuthorities,
): Promise<KeyedIssuer> {
  const trust = await issuerTrust(issuer, upstreams, noted);
  const get: GetJson = (url) => askHttpsUrl(url, trust.ca, { timeoutMs: ISSUER_TIMEOUT_MS });
  return { issuer, keySet: new OidcKeySet(issuer, get) };
}

/** Reads the issuer's current authorities. Throws ConfigurationError for an unreadable or invalid file. */
async function issuerTrust(
  { issuerUrl, authority }: JwtIssuer,
  upstreams: UpstreamTlsFiles,
  noted: NotedAuthorities,
): Promise<{ readonly ca: string | undefined }> {
  if (authority === undefined) return { ca: undefined };
  if ("pem" in authority) {
    noted.set(issuerUrl, authority.pem);
    return { ca: authority.pem };
  }
  const { file } = authority;
  const take = (ca: string): void => {
    createSecureContext({ ca });
    // Called before they are used: it throws for a file without certificates, which leaves the old
    // ones in force.
    noted.set(issuerUrl, ca);
    trust.ca = ca;
  };
  const trust: { ca: string | undefined } = { ca: undefined };
  try {
    take(await upstreams.follow("oidc", (read) => read(file), take));
  } catch (error) {
    throw fileProblem(file, error);
  }
  return trust;
}

/** Reports one bundle for all issuers: the one that must be replaced first. */
class NotedAuthorities {
  readonly #upstreams: Pick<UpstreamTlsFiles, "note">;
  readonly #bundles = new Map<string, { readonly ca: string; readonly expiresAtMs: number }>();
  #isComplete = false;

  constructor(upstreams: Pick<UpstreamTlsFiles, "note">) {
    this.#upstreams = upstreams;
  }

  set(issuerUrl: string, ca: string): void {
    this.#bundles.set(issuerUrl, { ca, expiresAtMs: validityOfPem(ca, "authorities").expiresAtMs });
    if (this.#isComplete) this.report();
  }

  /** Call this once, when each issuer's authorities have been set. */
  report(): void {
    this.#isComplete = true;
    const [first] = [...this.#bundles.values()].toSorted((a, b) => a.expiresAtMs - b.expiresAtMs);
    if (first !== undefined) this.#upstreams.note("oidc", first);
  }
}

async function readAuthority(file: string, isSole: boolean): Promise<CertificateAuthority> {
  const text = await readNamed(file);
  try {
    return new CertificateAuthority(text, isSole);
  } catch (error) {
    throw fileProblem(file, error);
  }
}

async function readNamed(file: string): Promise<string> {
  try {
    return await readNamedFile(file);
  } catch (error) {
    throw fileProblem(file, error);
  }
}

function fileProblem(file: string, error: unknown): ConfigurationError {
  const message = systemErrorReason(error);
  return new ConfigurationError([{ source: file, line: 0, column: 0, path: "", message }]);
}
