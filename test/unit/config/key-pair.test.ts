import { beforeAll, describe, expect, it } from "vitest";
import { keyPairOf, keyPairProblem } from "../../../packages/client/src/config/key-pair.ts";
import { createSelfSignedCertificate } from "../../../packages/client/src/net/self-signed.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";

let ec: TestCertificate;
let otherEc: TestCertificate;
let rsa: TestCertificate;
let leaf: TestCertificate;

beforeAll(async () => {
  [ec, otherEc] = await Promise.all([
    issueCertificate({ commonName: "a" }),
    issueCertificate({ commonName: "b" }),
  ]);
  const made = await createSelfSignedCertificate(["c"], "c", "rsa");
  rsa = { cert: made.certPem, key: made.keyPem };
  leaf = await issueCertificate({ commonName: "leaf" }, ec);
});

describe("a certificate and a key", () => {
  it("belong together: the chain, the key's own certificate first", () => {
    expect(keyPairOf(`${leaf.cert}\n${ec.cert}`, leaf.key).map(({ subject }) => subject)).toEqual([
      "CN=leaf",
      "CN=a",
    ]);
    expect(keyPairProblem(rsa.cert, rsa.key)).toBeUndefined();
    // OpenSSL's text before a block, and parameters before a key.
    expect(keyPairProblem(`Certificate:\n    Data:\n${ec.cert}`, ec.key)).toBeUndefined();
  });

  it.each([
    ["of another kind", () => [ec.cert, rsa.key], "tls: private key type does not match public key type"],
    ["the other way round", () => [rsa.cert, ec.key], "tls: private key type does not match public key type"],
    ["of another certificate", () => [ec.cert, otherEc.key], "tls: private key does not match public key"],
    [
      "of a leaf that is not first",
      () => [`${ec.cert}\n${leaf.cert}`, leaf.key],
      "tls: private key does not match public key: it is that of certificate 2 of the chain, which must be the first",
    ],
    [
      "of a leaf of another kind that is not first",
      () => [`${rsa.cert}\n${leaf.cert}`, leaf.key],
      "tls: private key does not match public key: it is that of certificate 2 of the chain, which must be the first",
    ],
    ["no certificate", () => ["", ec.key], "tls: failed to find any PEM data in certificate input"],
    ["no key", () => [ec.cert, "x"], "tls: failed to find any PEM data in key input"],
    [
      "switched",
      () => [ec.key, ec.cert],
      "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched",
    ],
    [
      "two certificates",
      () => [ec.cert, ec.cert],
      "tls: found a certificate rather than a key in the PEM for the private key",
    ],
    [
      "a key that is damaged",
      () => [ec.cert, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"],
      "tls: failed to parse private key",
    ],
    [
      "a certificate that is damaged",
      () => ["-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", ec.key],
      "x509: malformed certificate",
    ],
  ])("do not: %s", (_, pair, problem) => {
    const [cert = "", key = ""] = pair();
    expect(keyPairProblem(cert, key)).toBe(problem);
  });
});
