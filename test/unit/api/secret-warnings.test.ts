import { expect, it } from "vitest";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { secretStrategy } from "../../../src/api/strategy/secret-strategies.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

it("a TLS Secret is warned of in the API server's words, and no other kind", async () => {
  const ec = await issueCertificate({ commonName: "a" });
  const { keyPem } = await createSelfSignedCertificate(["b"], "b", "rsa");
  const warn = (cert: string, key: string, type = "kubernetes.io/tls") =>
    secretStrategy.warnings({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "s" },
      type,
      data: {
        "tls.crt": Buffer.from(cert).toString("base64"),
        "tls.key": Buffer.from(key).toString("base64"),
      },
    });
  expect(warn(ec.cert, ec.key)).toEqual([]);
  expect(warn(ec.cert, keyPem)).toEqual(["tls: private key type does not match public key type"]);
  expect(warn("", ec.key)).toEqual(["tls: failed to find any PEM data in certificate input"]);
  expect(warn(ec.cert, ec.key.slice(0, 100))).toEqual(["tls: failed to find any PEM data in key input"]);
  expect(warn(ec.cert, keyPem, "Opaque")).toEqual([]);
});
