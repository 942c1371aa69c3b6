import type { X509Certificate } from "node:crypto";
import { certificatesOf } from "@sluice/client/internal/config/key-pair";

const DAY_MS = 86_400_000;

/** When a certificate expires, in milliseconds since 1970, and how long it is valid. */
export interface CertificateValidity {
  readonly expiresAtMs: number;
  readonly lifetimeMs: number;
}

export function validityOf({
  validFrom,
  validTo,
}: Pick<X509Certificate, "validFrom" | "validTo">): CertificateValidity {
  const expiresAtMs = Date.parse(validTo);
  return { expiresAtMs, lifetimeMs: expiresAtMs - Date.parse(validFrom) };
}

/**
 * A chain expires with its first certificate, a bundle of authorities with its last. Throws as
 * `certificatesOf`.
 */
export function validityOfPem(pem: string, content: "chain" | "authorities"): CertificateValidity {
  const validities = certificatesOf(pem).map(validityOf);
  return validities.reduce((counting, each) =>
    content === "authorities" && each.expiresAtMs > counting.expiresAtMs ? each : counting,
  );
}

/**
 * How long before expiry a certificate deserves a warning: 30 days, or a third of a shorter
 * lifetime.
 */
export function soonMs({ lifetimeMs }: Pick<CertificateValidity, "lifetimeMs">): number {
  return Math.min(30 * DAY_MS, lifetimeMs / 3);
}
