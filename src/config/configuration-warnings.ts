import { isLoopback } from "@sluice/client/internal/config/address-list";
import { type NamedFile, readUpTo } from "@sluice/client/internal/config/named-file-text";
import { soonMs, validityOfPem } from "./certificate-validity.ts";
import type { GatewayConfiguration } from "./configuration.ts";
import { takesTokens } from "./sections/authentication.ts";
import { servesApi } from "./sections/listeners.ts";

type Judged = Pick<GatewayConfiguration, "authentication" | "cluster" | "kubelet" | "listeners">;

/**
 * Valid settings that may be mistakes. The log at the start, check-config and readiness show them.
 */
export function configurationWarnings(
  { authentication, cluster, kubelet, listeners }: Judged,
  nodeVersion = process.versions.node,
): string[] {
  const warnings: string[] = [];
  if (servesApi(listeners) && kubelet.scheme === "https" && kubelet.insecureSkipTLSVerify) {
    warnings.push(
      "kubelet.certificateAuthorityFile is absent: kubelets' certificates are not verified, so a machine in between can read every session",
    );
  }
  const { apiServer, kubelet: node } = listeners;
  const inClear = (name: string, address: string): string =>
    `listeners.${name} has no tls and listens at ${address}, beyond loopback: bearer tokens travel in clear`;
  if (apiServer && !apiServer.tls && !isLoopback(apiServer.address) && takesTokens(authentication))
    warnings.push(inClear("apiServer", apiServer.address));
  if (node && !node.tls && !isLoopback(node.address) && takesTokens(node.authentication ?? authentication))
    warnings.push(inClear("kubelet", node.address));
  if (cluster.live && apiServer?.tls && apiServer.http2 && dropsSpacedHeaders(nodeVersion)) {
    warnings.push(
      `Node.js ${nodeVersion} drops HTTP/2 headers whose value begins or ends with white space: a caller that impersonates "jane " acts as itself; use Node.js 22.17 or 24.2 or newer, or listeners.apiServer.http2: false`,
    );
  }
  return warnings;
}

/** Node.js can be told to keep such headers only since 22.17 and 24.2. */
export function dropsSpacedHeaders(nodeVersion: string): boolean {
  const [major = 0, minor = 0] = nodeVersion.split(".").map(Number);
  if (major === 22) return minor < 17;
  return major < 24 || (major === 24 && minor < 2);
}

/**
 * Certificates that have expired, or expire within 30 days or the last third of a shorter lifetime.
 * Unreadable files are reported elsewhere.
 */
export async function expiryWarnings(files: readonly NamedFile[], nowMs = Date.now()): Promise<string[]> {
  const own = new Set(files.flatMap(({ certificateFile }) => certificateFile ?? []));
  const named = new Set(files.filter(({ content }) => content === "certificates").map(({ file }) => file));
  const warnings = await Promise.all(
    Array.from(named, async (file) => {
      const content = own.has(file) ? "chain" : "authorities";
      const validity = await readUpTo(file).then(
        (pem) => validityOfPem(pem.toString(), content),
        () => undefined,
      );
      if (validity === undefined) return [];
      const endMs = validity.expiresAtMs;
      if (!Number.isFinite(endMs) || endMs - nowMs > soonMs(validity)) return [];
      const what = content === "chain" ? "the certificate" : "the last authority";
      return [
        `${file}: ${what} ${endMs <= nowMs ? "expired" : "expires"} at ${new Date(endMs).toISOString()}`,
      ];
    }),
  );
  return warnings.flat();
}
