import type { Section } from "./section.ts";

/** Whom we believe to be the upstream, and who we are to it. Files are PEM. */
export interface UpstreamTrust {
  /** Absent: the authorities that Node.js ships. */
  readonly certificateAuthorityFile: string | undefined;
  /** Take any certificate. */
  readonly insecureSkipTLSVerify: boolean;
  /** Certificate and key stand together or not at all. */
  readonly clientCertificateFile: string | undefined;
  readonly clientKeyFile: string | undefined;
}

/** `skipsWithoutAuthority`: what an absent insecureSkipTLSVerify means where no authority is given either. */
export function readUpstreamTrust(section: Section, skipsWithoutAuthority: boolean): UpstreamTrust {
  const certificateAuthorityFile = section.optionalFile("certificateAuthorityFile", "certificates");
  const skipDefault = skipsWithoutAuthority && certificateAuthorityFile === undefined;
  const insecureSkipTLSVerify = section.boolean("insecureSkipTLSVerify", skipDefault);
  const clientCertificateFile = section.optionalFile("clientCertificateFile", "certificates");
  const clientKeyFile = section.optionalFile("clientKeyFile", "private key", clientCertificateFile);
  if (insecureSkipTLSVerify && certificateAuthorityFile !== undefined) {
    section.problem("insecureSkipTLSVerify", "must be false where certificateAuthorityFile is given");
  }
  if (clientCertificateFile !== undefined && !section.has("clientKeyFile")) {
    section.problem("clientKeyFile", "is required with clientCertificateFile");
  }
  if (clientKeyFile !== undefined && !section.has("clientCertificateFile")) {
    section.problem("clientCertificateFile", "is required with clientKeyFile");
  }
  return { certificateAuthorityFile, insecureSkipTLSVerify, clientCertificateFile, clientKeyFile };
}
