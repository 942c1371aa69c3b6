import { readFile } from "node:fs/promises";
import type { RequestAuthenticator, TokenAuthenticator } from "./access/authn/authenticator.ts";
import { AuthenticatorChain } from "./access/authn/authenticator-chain.ts";
import { BearerTokens, SubprotocolTokens, TokenChain } from "./access/authn/bearer-tokens.ts";
import { CertificateAuthority } from "./access/authn/certificate-authority.ts";
import { ClientCertificates } from "./access/authn/client-certificates.ts";
import { RequestHeaders } from "./access/authn/request-headers.ts";
import { parseTokenFile, StaticTokens } from "./access/authn/static-tokens.ts";
import type { GatewayConfiguration } from "./config/configuration.ts";
import { ConfigurationError } from "./config/configuration-error.ts";
import type { Metrics } from "./observability/metrics.ts";

/** A bundle of authorities and the file that it came from, to be read again when that changes. */
export interface WatchedAuthority {
  readonly file: string;
  readonly authority: CertificateAuthority;
}

export interface BuiltAuthenticator {
  readonly authenticator: AuthenticatorChain;
  /** Whose client certificates the listener must ask for. */
  readonly authorities: readonly WatchedAuthority[];
}

/**
 * The chain in kube-apiserver's order: front proxy, client certificate, bearer token, subprotocol token; anonymous last.
 * Throws ConfigurationError for files that can not be read or are wrong.
 */
export async function buildAuthenticator(
  { authentication, limits }: GatewayConfiguration,
  metrics: Metrics,
): Promise<BuiltAuthenticator> {
  const { requestHeader, clientCAFile, anonymous } = authentication;
  const authenticators: RequestAuthenticator[] = [];
  const authorities: WatchedAuthority[] = [];
  if (requestHeader !== undefined) {
    const authority = await readAuthority(requestHeader.clientCAFile);
    authorities.push({ file: requestHeader.clientCAFile, authority });
    authenticators.push(new RequestHeaders(authority, requestHeader));
  }
  if (clientCAFile !== undefined) {
    const authority = await readAuthority(clientCAFile);
    authorities.push({ file: clientCAFile, authority });
    authenticators.push(new ClientCertificates(authority));
  }
  const tokens = new TokenChain(await tokenAuthenticators(authentication), limits.maxBearerTokenBytes);
  authenticators.push(new BearerTokens(tokens), new SubprotocolTokens(tokens));
  const authenticator = new AuthenticatorChain({
    authenticators,
    isAnonymousAllowed: anonymous.enabled,
    onResult: (result) => metrics.access.authenticationAttempted(result),
  });
  return { authenticator, authorities };
}

async function tokenAuthenticators({
  tokenAuthFile,
}: GatewayConfiguration["authentication"]): Promise<TokenAuthenticator[]> {
  const authenticators: TokenAuthenticator[] = [];
  if (tokenAuthFile !== undefined) {
    authenticators.push(new StaticTokens(parseTokenFile(await readNamed(tokenAuthFile), tokenAuthFile)));
  }
  return authenticators;
}

async function readAuthority(file: string): Promise<CertificateAuthority> {
  const text = await readNamed(file);
  try {
    return new CertificateAuthority(text);
  } catch (error) {
    throw fileProblem(file, error);
  }
}

async function readNamed(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw fileProblem(file, error);
  }
}

function fileProblem(file: string, error: unknown): ConfigurationError {
  const message = error instanceof Error ? error.message : String(error);
  return new ConfigurationError([{ source: file, line: 0, column: 0, path: "", message }]);
}
