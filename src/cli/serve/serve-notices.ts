import type { GatewayConfiguration } from "../../config/configuration.ts";
import { configurationWarnings } from "../../config/configuration-warnings.ts";
import { type Authentication, identifiesCallers } from "../../config/sections/authentication.ts";
import { servesApi } from "../../config/sections/listeners.ts";

/** Warnings for the log: settings that are valid but may be a mistake. */
export function startWarnings(configuration: GatewayConfiguration): string[] {
  const open = authenticationWarning(configuration);
  return [...(open === undefined ? [] : [open]), ...configurationWarnings(configuration)];
}

/** Warns about listeners without any authentication method; undefined if each has one. */
export function authenticationWarning({
  authentication,
  listeners,
}: Pick<GatewayConfiguration, "authentication" | "listeners">): string | undefined {
  const { kubelet } = listeners;
  if (servesApi(listeners) && !identifiesCallers(authentication))
    return `no authentication is configured: ${answerOf(authentication)}`;
  const ofNode = kubelet && (kubelet.authentication ?? authentication);
  return ofNode && !identifiesCallers(ofNode)
    ? `no authentication is configured for listeners.kubelet: ${answerOf(ofNode)}`
    : undefined;
}

function answerOf({ anonymous }: Authentication): string {
  return anonymous.enabled ? "every request is system:anonymous" : "every request is answered with 401";
}

/** Listeners by name, for readers: printed if the system chose a port and the log's level hides it. */
export function listeningLines(
  { listeners, logging }: Pick<GatewayConfiguration, "listeners" | "logging">,
  urls: Readonly<Record<string, string | undefined>>,
): string {
  const { admin, apiServer, ingress, kubelet } = listeners;
  const ports = [admin.port, apiServer?.port, kubelet?.port, ingress?.httpPort, ingress?.httpsPort];
  if (!ports.includes(0) || logging.level === "debug" || logging.level === "info") return "";
  return Object.entries(urls)
    .filter(([, url]) => url !== undefined)
    .map(([name, url]) => `${name} ${url}\n`)
    .join("");
}
