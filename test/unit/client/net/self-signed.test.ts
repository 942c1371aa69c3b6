import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../../packages/client/src/net/self-signed.ts";

describe("a certificate of our own", () => {
  it.each([
    "ec",
    "rsa",
  ] as const)("of %s is no authority's: rustls refuses such a server", async (keyType) => {
    const { certPem } = await createSelfSignedCertificate(["10.1.2.3", "door.example"], "door", keyType);
    const certificate = new X509Certificate(certPem);
    expect(certificate.ca).toBe(false);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.checkIP("10.1.2.3")).toBe("10.1.2.3");
    expect(certificate.checkHost("door.example")).toBe("door.example");
  });
});
