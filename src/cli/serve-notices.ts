import type { Authentication } from "../config/authentication.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";

/** The warning about a gateway without any authentication method; undefined where one is configured. */
export function authenticationWarning(authentication: Authentication): string | undefined {
  const { anonymous, clientCAFile, oidc, requestHeader, tokenAuthFile, tokenReview } = authentication;
  const ways = [clientCAFile, oidc, requestHeader, tokenAuthFile, tokenReview];
  if (ways.some((way) => way !== undefined)) return undefined;
  return anonymous.enabled
    ? "no authentication is configured: every request is system:anonymous"
    : "no authentication is configured: every request is answered with 401";
}

/** Listeners by name, for people: where the system chose a port and the log's level hides it. */
export function listeningLines(
  { listeners, logging }: Pick<GatewayConfiguration, "listeners" | "logging">,
  urls: Readonly<Record<string, string | undefined>>,
): string {
  const { admin, apiServer, ingress, kubelet } = listeners;
  const ports = [admin.port, apiServer.port, kubelet?.port, ingress?.httpPort, ingress?.httpsPort];
  if (!ports.includes(0) || logging.level === "debug" || logging.level === "info") return "";
  return Object.entries(urls)
    .filter(([, url]) => url !== undefined)
    .map(([name, url]) => `${name} ${url}\n`)
    .join("");
}
