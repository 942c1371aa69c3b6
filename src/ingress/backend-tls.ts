import { X509Certificate } from "node:crypto";
import { UpstreamTls } from "@sluice/client/internal/net/tls";
import type { Secret } from "../api/networking-objects.ts";
import type { BackendTrust } from "./route-options.ts";

/** The TLS settings for one port of a Service, and the Secret behind them. */
export interface BackendIdentity {
  readonly tls: UpstreamTls;
  readonly authority: Secret | undefined;
}

/**
 * appProtocols of pods that speak TLS: IANA's service names, and `kubernetes.io/wss` (KEP-3726).
 */
const TLS_APP_PROTOCOLS: ReadonlySet<string> = new Set(["https", "wss", "kubernetes.io/wss"]);

/** IANA's service names are case-insensitive (RFC 6335 section 5.1). */
export function speaksTls(appProtocol: string | undefined): boolean {
  return appProtocol !== undefined && TLS_APP_PROTOCOLS.has(appProtocol.toLowerCase());
}

/**
 * With a CA Secret, TLS verifies authority and `serverName`; without one, nothing (decision 0027).
 * Reuses `before` and its TLS sessions if the Secret is the same. Undefined if the Secret is
 * unusable.
 */
export function backendIdentityOf(
  trust: BackendTrust | undefined,
  authority: Secret | undefined,
  serverName: string,
  before: BackendIdentity | undefined,
): BackendIdentity | undefined {
  if (before !== undefined && before.authority === authority) return before;
  const name = trust?.serverName ?? serverName;
  if (trust?.caSecret === undefined) {
    return { tls: new UpstreamTls({ serverName: name, insecureSkipVerify: true }), authority };
  }
  const read = readAuthority(authority);
  return "problem" in read
    ? undefined
    : { tls: new UpstreamTls({ serverName: name, ca: read.ca }), authority };
}

/** The PEM certificates in `ca.crt`, or the Secret's problem as text for an Event. */
export function readAuthority(
  secret: Secret | undefined,
): { readonly ca: string } | { readonly problem: string } {
  if (secret === undefined) return { problem: "does not exist" };
  const encoded = secret.data?.["ca.crt"];
  if (encoded === undefined || encoded === "") return { problem: "has no ca.crt" };
  const text = Buffer.from(encoded, "base64").toString("latin1");
  const certificates = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (certificates.length === 0) return { problem: "holds no certificate in ca.crt" };
  try {
    for (const certificate of certificates) new X509Certificate(certificate);
  } catch {
    return { problem: "holds a certificate in ca.crt that cannot be read" };
  }
  return { ca: certificates.join("\n") };
}
