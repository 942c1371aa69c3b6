import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  CertificateAuthority,
  ClientCertificates,
} from "../../../../src/access/authn/certificate-authority.ts";
import { issueCertificate } from "../../../support/test-certificates.ts";

describe("a client certificate of system:masters", () => {
  it.each([
    ["is taken as kube-apiserver takes it", false, "known"],
    ["is refused where the configuration says so", true, "invalid"],
  ])("%s", async (_, refusesMasters, type) => {
    const attempt = await attemptOf(["ops", "system:masters"], refusesMasters);
    expect(attempt.type).toBe(type);
    if (attempt.type === "invalid") expect(attempt.fault).toBe("certificate-name-not-allowed");
  });

  it("is told from certificates of other groups, which are taken either way", async () => {
    expect(await attemptOf(["system:mastersmind"], true)).toMatchObject({
      type: "known",
      user: { name: "root" },
    });
  });
});

it("a certificate's user has its expiry", async () => {
  const notAfter = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + 3_600_000);
  expect(await attemptOf(["dev"], true, notAfter)).toMatchObject({
    user: { name: "root", expiresAtMs: notAfter.getTime() },
  });
});

async function attemptOf(organizations: readonly string[], refusesMasters: boolean, notAfter?: Date) {
  const authority = await issueCertificate({ commonName: "ca" });
  const { cert } = await issueCertificate({ commonName: "root", organizations }, authority, {
    usage: "client",
    ...(notAfter && { notAfter }),
  });
  const leaf = new X509Certificate(cert);
  const certificates = new ClientCertificates(new CertificateAuthority(authority.cert, true), refusesMasters);
  return await certificates.attempt({ headers: [], peer: { leaf, intermediates: [], isVerified: true } });
}
