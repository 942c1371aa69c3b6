import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { Section } from "./section.ts";

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^-]*-----END \1-----/g;
const CERTIFICATE = /^(?:X509 |TRUSTED )?CERTIFICATE$/;
const PRIVATE_KEY = /(?:^|[A-Z0-9] )PRIVATE KEY$/;

interface PemBlock {
  readonly label: string;
  readonly text: string;
}

/** PEM in the kubeconfig, or the file that it names. */
export type PemSource = { readonly pem: string } | { readonly file: string };

/**
 * Parses a PEM chain whose first certificate must fit the key: OpenSSL accepts different key types,
 * then fails every handshake. Throws Error with Go's message (tls.X509KeyPair).
 */
export function keyPairOf(certificate: string, key: string): readonly X509Certificate[] {
  const chain = chainOf(blocksOf(certificate));
  const [own] = chain as [X509Certificate];
  const privateKey = privateKeyOf(blocksOf(key), key);
  if (own.checkPrivateKey(privateKey)) return chain;
  const place = chain.findIndex((each) => each.checkPrivateKey(privateKey));
  if (place > 0)
    throw new Error(
      `tls: private key does not match public key: it is that of certificate ${place + 1} of the chain, which must be the first`,
    );
  const isOtherKind = own.publicKey.asymmetricKeyType !== privateKey.asymmetricKeyType;
  throw new Error(
    isOtherKind
      ? "tls: private key type does not match public key type"
      : "tls: private key does not match public key",
  );
}

/** The pair's problem as text; undefined if both belong together. */
export function keyPairProblem(certificate: string, key: string): string | undefined {
  try {
    keyPairOf(certificate, key);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/**
 * All certificates in a PEM text, in order. Throws Error with Go's message if there is none, or one
 * is unreadable.
 */
export function certificatesOf(pem: string): X509Certificate[] {
  return chainOf(blocksOf(pem));
}

/** `<name>-data` is base64 and overrides the file `<name>`. */
export function pemOf(section: Section | undefined, name: string): PemSource | undefined {
  const data = section?.optionalString(`${name}-data`, (value) =>
    Buffer.from(value, "base64").includes("-----BEGIN") ? undefined : "must be PEM in base64",
  );
  const file = section?.optionalFile(name, name.endsWith("-key") ? "private key" : "certificates");
  if (data !== undefined) return { pem: Buffer.from(data, "base64").toString("utf8") };
  return file === undefined ? undefined : { file };
}

function chainOf(blocks: readonly PemBlock[]): X509Certificate[] {
  const certificates = blocks.filter(({ label }) => CERTIFICATE.test(label));
  if (certificates.length > 0) return certificates.map(({ text }) => parsed(text));
  if (blocks.length === 0) throw new Error("tls: failed to find any PEM data in certificate input");
  const [only] = blocks;
  if (blocks.length === 1 && PRIVATE_KEY.test(only?.label ?? ""))
    throw new Error(
      "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched",
    );
  throw new Error(
    `tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [${labelsOf(blocks)}]`,
  );
}

function parsed(text: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new Error("x509: malformed certificate");
  }
}

function privateKeyOf(blocks: readonly PemBlock[], text: string): KeyObject {
  if (blocks.some(({ label }) => PRIVATE_KEY.test(label))) {
    try {
      return createPrivateKey(text);
    } catch {
      throw new Error("tls: failed to parse private key");
    }
  }
  if (blocks.length === 0) throw new Error("tls: failed to find any PEM data in key input");
  if (blocks.length === 1 && blocks[0]?.label === "CERTIFICATE")
    throw new Error("tls: found a certificate rather than a key in the PEM for the private key");
  throw new Error(
    `tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the following types: [${labelsOf(blocks)}]`,
  );
}

function labelsOf(blocks: readonly PemBlock[]): string {
  return blocks.map(({ label }) => label).join(" ");
}

function blocksOf(text: string): PemBlock[] {
  return Array.from(text.matchAll(PEM_BLOCK), ([block, label = ""]) => ({ label, text: block }));
}
