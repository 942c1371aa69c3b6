import { SUPERUSER_GROUP } from "../authz/authorizer.ts";
import type { Attempt, CredentialsRequest, RequestAuthenticator } from "./authenticator.ts";
import { invalidCredential, NO_CREDENTIAL } from "./authenticator.ts";
import type { CertificateAuthority } from "./certificate-authority.ts";
import { subjectOf } from "./certificate-subject.ts";

/** Kubernetes' extra that says which of a user's credentials was used. */
const CREDENTIAL_ID = "authentication.kubernetes.io/credential-id";

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
