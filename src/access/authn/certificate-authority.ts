import { X509Certificate } from "node:crypto";
import { TextDecoder } from "node:util";
import { SUPERUSER_GROUP } from "../authz/authorizer.ts";
import {
  type Attempt,
  type CredentialsRequest,
  invalidCredential,
  NO_CREDENTIAL,
  type PeerCertificates,
  type RequestAuthenticator,
} from "./authenticator.ts";

/** The labels that OpenSSL reads, which verifies the handshake. */
const PEM_CERTIFICATE =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g;

/**
 * Certificates between a client's and its authority; OpenSSL allows far more. Past it the client is
 * unauthenticated: 401.
 */
const MAX_PATH_CERTIFICATES = 8;

/** Kubernetes' extra that says which of a user's credentials was used. */
const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

/**
 * One bundle of authorities. TLS verifies against all of a listener's bundles together, so the
 * issuer is checked again here: a user's certificate must not count as the front proxy's.
 */
export class CertificateAuthority {
  #authorities: readonly X509Certificate[];
  readonly #isSole: boolean;

  /**
   * `isSole`: the listener trusts no other bundle, so OpenSSL's verification is enough. Throws if
   * the text has no certificate, or an unreadable one.
   */
  constructor(pem: string, isSole = false) {
    this.#authorities = parse(pem);
    this.#isSole = isSole;
  }

  /** Replaces the bundle; keeps the old one if it throws. */
  replace(pem: string): void {
    this.#authorities = parse(pem);
  }

  /**
   * Whether verified signatures lead from the certificate to one of these authorities; matching
   * names alone prove nothing. Since Node.js 24 servers do not see clients' intermediates.
   */
  hasIssued({ leaf, intermediates, isVerified }: PeerCertificates, now: Date = new Date()): boolean {
    if (!isVerified || !isValidAt(leaf, now)) return false;
    if (this.#isSole) return true;
    let certificate = leaf;
    let candidates = intermediates.slice(0, MAX_PATH_CERTIFICATES);
    for (;;) {
      if (this.#authorities.some((authority) => isIssuer(authority, certificate, now))) return true;
      const issuer = candidates.find((candidate) => candidate.ca && isIssuer(candidate, certificate, now));
      if (issuer === undefined) return false;
      candidates = candidates.filter((candidate) => candidate !== issuer);
      certificate = issuer;
    }
  }
}

function isIssuer(issuer: X509Certificate, certificate: X509Certificate, now: Date): boolean {
  return certificate.checkIssued(issuer) && isValidAt(issuer, now) && certificate.verify(issuer.publicKey);
}

function isValidAt(certificate: X509Certificate, now: Date): boolean {
  return now >= new Date(certificate.validFrom) && now <= new Date(certificate.validTo);
}

function parse(pem: string): X509Certificate[] {
  const certificates = (pem.match(PEM_CERTIFICATE) ?? []).map((block) => new X509Certificate(block));
  if (certificates.length === 0) throw new Error("holds no PEM certificate");
  return certificates;
}

/** kube-apiserver's --client-ca-file: the common name is the user, the organizations are the groups. */
export class ClientCertificates implements RequestAuthenticator {
  readonly #authority: CertificateAuthority;
  readonly #refusesMasters: boolean;

  constructor(authority: CertificateAuthority, refusesMasters = false) {
    this.#authority = authority;
    this.#refusesMasters = refusesMasters;
  }

  async attempt({ peer }: CredentialsRequest): Promise<Attempt> {
    if (peer === undefined) return NO_CREDENTIAL;
    if (!this.#authority.hasIssued(peer)) return invalidCredential("certificate-unverified");
    const subject = subjectOf(peer.leaf);
    if (subject === undefined) return invalidCredential("certificate-unverified");
    const { commonName, organizations } = subject;
    if (commonName === "") return NO_CREDENTIAL;
    if (this.#refusesMasters && organizations.includes(SUPERUSER_GROUP))
      return invalidCredential("certificate-name-not-allowed");
    const fingerprint = peer.leaf.fingerprint256.replaceAll(":", "").toLowerCase();
    return {
      type: "known",
      user: {
        name: commonName,
        uid: "",
        groups: organizations,
        extra: { [CREDENTIAL_ID]: [`X509SHA256=${fingerprint}`] },
        expiresAtMs: Date.parse(peer.leaf.validTo),
      },
    };
  }
}

/** A DER value: its tag and contents. */
interface DerValue {
  readonly tag: number;
  readonly contents: Uint8Array;
}

const DER_SEQUENCE = 0x30;
const DER_SET = 0x31;

/**
 * The sequence of values in `bytes`. Throws Error if it is not DER (X.690): high tags, indefinite
 * or overlong lengths.
 */
function readDer(bytes: Uint8Array): DerValue[] {
  const values: DerValue[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    const tag = bytes[at] ?? 0;
    if ((tag & 0x1f) === 0x1f) throw new Error("a DER tag of several bytes");
    const { length, start } = readLength(bytes, at + 1);
    if (start + length > bytes.byteLength) throw new Error("a DER value is cut off");
    values.push({ tag, contents: bytes.subarray(start, start + length) });
    at = start + length;
  }
  return values;
}

const MAX_LENGTH_BYTES = 4;

function readLength(bytes: Uint8Array, at: number): { length: number; start: number } {
  const first = bytes[at] ?? 0x80;
  if (first < 0x80) return { length: first, start: at + 1 };
  const count = first & 0x7f;
  const digits = bytes.subarray(at + 1, at + 1 + count);
  if (count === 0 || count > MAX_LENGTH_BYTES || digits.byteLength < count)
    throw new Error("a DER length is wrong");
  const length = digits.reduce((sum, digit) => sum * 256 + digit, 0);
  if (length < 0x80 || digits[0] === 0) throw new Error("a DER length is not the shortest");
  return { length, start: at + 1 + count };
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Types with one byte per character, and the characters they allow. */
const PATTERN_OF_TAG: Readonly<Record<number, RegExp>> = {
  // NumericString; PrintableString plus `*` and `&`, which real certificates contain; T61String as
  // Latin-1; IA5String.
  18: /^[0-9 ]*$/,
  19: /^[A-Za-z0-9'()+,./:=? *&-]*$/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every byte is allowed.
  20: /^[\x00-\xff]*$/,
  // biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is allowed.
  22: /^[\x00-\x7f]*$/,
};
const UTF8_STRING = 12;
const BMP_STRING = 30;

/**
 * Decodes a string type as Go's crypto/x509 does. Throws Error for other types, and for invalid
 * bytes.
 */
export function decodeDerText({ tag, contents }: DerValue): string {
  if (tag === UTF8_STRING) return UTF8.decode(contents);
  if (tag === BMP_STRING) return bmpText(contents);
  const text = Buffer.from(contents).toString("latin1");
  if (PATTERN_OF_TAG[tag]?.test(text) !== true) throw new Error("no text of a known type");
  return text;
}

/** UCS-2 without a terminator; refuses surrogates and noncharacters. */
function bmpText(contents: Uint8Array): string {
  if (contents.byteLength % 2 !== 0) throw new Error("half a character");
  const text = Buffer.from(contents).swap16().toString("utf16le").replace(/\0$/, "");
  if (/[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]/.test(text)) throw new Error("a character that is none");
  return text;
}

interface Subject {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

const VERSION_TAG = 0xa0;
const OBJECT_IDENTIFIER = 0x06;
const COMMON_NAME = "550403";
const ORGANIZATION = "55040a";

const known = new WeakMap<X509Certificate, Subject | undefined>();

/**
 * A subject's common name and organizations, from its DER: printed names confuse characters with
 * escapes. The last common name counts, as in Go's x509. Undefined if Go refuses the subject.
 */
export function subjectOf(certificate: X509Certificate): Subject | undefined {
  if (!known.has(certificate)) known.set(certificate, readSubject(certificate.raw));
  return known.get(certificate);
}

function readSubject(der: Uint8Array): Subject | undefined {
  try {
    const attributes = attributesOf(subjectName(der));
    const valuesOf = (type: string) =>
      attributes.filter(([found]) => found === type).map(([, value]) => value);
    return { commonName: valuesOf(COMMON_NAME).at(-1) ?? "", organizations: valuesOf(ORGANIZATION) };
  } catch {
    return undefined;
  }
}

/**
 * RFC 5280: version, serial number, signature, issuer, validity, subject. Only the version is
 * optional.
 */
function subjectName(der: Uint8Array): DerValue {
  const [certificate] = readDer(der);
  const [toBeSigned] = membersOf(certificate, DER_SEQUENCE);
  const members = membersOf(toBeSigned, DER_SEQUENCE);
  return members[members[0]?.tag === VERSION_TAG ? 5 : 4] as DerValue;
}

function attributesOf(name: DerValue): [type: string, value: string][] {
  return membersOf(name, DER_SEQUENCE).flatMap((relativeName) =>
    membersOf(relativeName, DER_SET).map((attribute): [string, string] => {
      const [type, value] = membersOf(attribute, DER_SEQUENCE);
      if (type?.tag !== OBJECT_IDENTIFIER || value === undefined) throw new Error("no attribute of a name");
      return [Buffer.from(type.contents).toString("hex"), decodeDerText(value)];
    }),
  );
}

function membersOf(value: DerValue | undefined, tag: number): DerValue[] {
  if (value?.tag !== tag) throw new Error("another type of DER than expected");
  return readDer(value.contents);
}
