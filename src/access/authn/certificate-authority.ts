import { X509Certificate } from "node:crypto";
import { SUPERUSER_GROUP } from "../authz/authorizer.ts";
import {
  type Attempt,
  type CredentialsRequest,
  invalidCredential,
  NO_CREDENTIAL,
  type PeerCertificates,
  type RequestAuthenticator,
} from "./authenticator.ts";
import { subjectOf } from "./certificate-subject.ts";

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
   * Whether verified signatures lead from the certificate to one of these authorities; names alone
   * prove nothing. Since Node.js 24 servers do not see clients' intermediates.
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
