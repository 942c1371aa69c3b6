import { isIP } from "node:net";
import { notInstalled } from "../config/optional-package.ts";

export interface SelfSignedCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

const VALID_MS = 365 * 24 * 3600 * 1000;
/** The certificate is valid from this long ago, because test machines' clocks differ. */
const EARLIER_MS = 3600 * 1000;

/**
 * A new self-signed certificate, P-256 or 2048-bit RSA, for 127.0.0.1, localhost and `names` (host
 * names or addresses). For a client certificate, `commonName` is the user's name.
 */
export async function createSelfSignedCertificate(
  names: readonly string[] = [],
  commonName = "localhost",
  keyType: "ec" | "rsa" = "ec",
): Promise<SelfSignedCertificate> {
  const altNames = [...new Set(["localhost", "127.0.0.1", ...names])].map((name) =>
    isIP(name) === 0 ? { type: 2 as const, value: name } : { type: 7 as const, ip: name },
  );
  const { generate } = await import("selfsigned").catch(
    notInstalled("selfsigned", "a certificate of our own"),
  );
  const nowMs = Date.now();
  const pems = await generate([{ name: "commonName", value: commonName }], {
    ...(keyType === "ec" ? { keyType, curve: "P-256" as const } : { keyType, keySize: 2048 }),
    algorithm: "sha256",
    notBeforeDate: new Date(nowMs - EARLIER_MS),
    notAfterDate: new Date(nowMs + VALID_MS),
    extensions: [
      // rustls refuses an authority's certificate as a server's; clients trust this one without an
      // authority.
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, keyEncipherment: keyType === "rsa", critical: true },
      { name: "extKeyUsage", serverAuth: true, clientAuth: true },
      { name: "subjectAltName", altNames },
    ],
  });
  return { certPem: pems.cert, keyPem: pems.private };
}
