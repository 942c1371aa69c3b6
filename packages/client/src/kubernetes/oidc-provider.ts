import { readUpTo } from "../config/named-file-text.ts";
import type { HeaderList } from "../http/header-list.ts";
import { askHttpsUrl } from "../http/upstream/ask-json.ts";
import type { PluginCredentials } from "./exec-credential.ts";
import type { AuthProvider } from "./kubeconfig-entries.ts";

export interface OidcOptions {
  /** Limit for one run of a plugin or one request to a provider. */
  readonly timeoutMs?: number;
}

/** One request to an identity provider. Past it the request that needs the token fails. */
const PROVIDER_TIMEOUT_MS = 10_000;
/** Tokens are renewed this long before expiry, because clocks differ (client-go's expiryDelta). */
const EXPIRY_MARGIN_MS = 10_000;

/**
 * The auth provider "oidc": refreshes an id token over https, and keeps it in memory (client-go,
 * plugin/pkg/client/auth/oidc/oidc.go). Fails with client-go's messages, without secrets.
 */
export function oidcProvider(
  config: AuthProvider["config"],
  { timeoutMs = PROVIDER_TIMEOUT_MS }: OidcOptions,
): () => Promise<PluginCredentials> {
  const issuer = config["idp-issuer-url"];
  const clientId = config["client-id"];
  if (issuer === undefined) throw new Error("Must provide idp-issuer-url");
  if (clientId === undefined) throw new Error("Must provide client-id");
  if (!issuer.startsWith("https://")) throw new Error("idp-issuer-url must be an https URL");
  let { "id-token": idToken, "refresh-token": refreshToken } = config;

  const refresh = async (current: string) => {
    const ca = await authorityOf(config);
    const tokenUrl = await tokenEndpoint(issuer, ca, timeoutMs);
    const grant = { grant_type: "refresh_token", refresh_token: current };
    const answer = await askForToken(tokenUrl, grant, {
      ca,
      timeoutMs,
      id: clientId,
      secret: config["client-secret"],
    });
    if (typeof answer.id_token !== "string") {
      throw new Error(
        "token response did not contain an id_token, either the scope \"openid\" wasn't requested upon login, or the provider doesn't support id_tokens as part of the refresh response",
      );
    }
    idToken = answer.id_token;
    if (typeof answer.refresh_token === "string" && answer.refresh_token !== "")
      refreshToken = answer.refresh_token;
    return credentialsOf(idToken);
  };
  return async () => {
    const credentials = idToken === undefined ? undefined : credentialsOf(idToken);
    if (credentials !== undefined && Date.now() < (credentials.expiresAtMs ?? 0)) return credentials;
    if (refreshToken === undefined) {
      throw new Error("No valid id-token, and cannot refresh without refresh-token");
    }
    return refresh(refreshToken);
  };
}

function credentialsOf(idToken: string): PluginCredentials {
  const expires = expiryOf(idToken);
  return {
    authorization: `Bearer ${idToken}`,
    certificate: undefined,
    key: undefined,
    expiresAtMs: expires * 1_000 - EXPIRY_MARGIN_MS,
  };
}

/** Reads the claim `exp`; the API server verifies the signature. */
function expiryOf(idToken: string): number {
  const parts = idToken.split(".");
  if (parts.length !== 3 || !/^[\w.~+/=-]+$/.test(idToken)) throw new Error("ID Token is not a valid JWT");
  let claims: { readonly exp?: unknown } | null;
  try {
    claims = JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString("utf8"));
  } catch {
    throw new Error("parsing claims: the payload is not JSON");
  }
  const expires = claims?.exp ?? 0;
  if (typeof expires !== "number") throw new Error("parsing claims: exp is not a number");
  return expires;
}

async function authorityOf(config: AuthProvider["config"]): Promise<string | undefined> {
  const data = config["idp-certificate-authority-data"];
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  const file = config["idp-certificate-authority"];
  return file === undefined ? undefined : (await readUpTo(file)).toString();
}

async function tokenEndpoint(issuer: string, ca: string | undefined, timeoutMs: number): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const { status, body } = await askHttpsUrl(url, ca, { timeoutMs });
  if (status !== 200) throw new Error(`oidc: failed to query metadata endpoint: HTTP ${status}`);
  const endpoint = (body as { readonly token_endpoint?: unknown } | null | undefined)?.token_endpoint;
  if (typeof endpoint !== "string")
    throw new Error("oidc: discovery object doesn't contain a token_endpoint");
  if (!endpoint.startsWith("https://") || !URL.canParse(endpoint)) {
    throw new Error("oidc: the token_endpoint must be an https URL");
  }
  return endpoint;
}

interface TokenRequest {
  readonly ca: string | undefined;
  readonly timeoutMs: number;
  readonly id: string;
  readonly secret: string | undefined;
}

/**
 * As golang.org/x/oauth2: sends the client's id and secret in a header, then in the form if the
 * provider refuses that.
 */
async function askForToken(
  url: string,
  grant: Readonly<Record<string, string>>,
  { ca, timeoutMs, id, secret = "" }: TokenRequest,
): Promise<Readonly<Record<string, unknown>>> {
  const pair = Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString("base64");
  const inForm = { ...grant, client_id: id, ...(secret !== "" && { client_secret: secret }) };
  const post = (form: Readonly<Record<string, string>>, headers: HeaderList) => {
    const bytes = Buffer.from(new URLSearchParams(form).toString());
    const body = { contentType: "application/x-www-form-urlencoded", bytes };
    return askHttpsUrl(url, ca, { method: "POST", headers, body, timeoutMs });
  };
  const first = await post(grant, [["Authorization", `Basic ${pair}`]]);
  const { status, body } = first.status < 400 ? first : await post(inForm, []);
  const answer = (typeof body === "object" ? body : undefined) as
    | Readonly<Record<string, unknown>>
    | undefined;
  if (status === 200 && answer) return answer;
  const { error } = answer ?? {};
  const reason = typeof error === "string" && /^[a-z_]{1,40}$/.test(error) ? ` (${error})` : "";
  throw new Error(`failed to refresh token: HTTP ${status}${reason}`);
}
