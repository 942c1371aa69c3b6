import type { ValuesOf } from "../field.ts";
import { boolean, type FieldOptions, file } from "../fields.ts";
import type { Section } from "../section.ts";

/**
 * Settings that verify an upstream's certificate, and the gateway's own certificate. Files are PEM.
 * `options` are keyed by field name.
 */
export function upstreamTrustFields(options: TrustOptions = {}) {
  return {
    certificateAuthorityFile: file(
      "CA certificates that sign the server's certificate. Absent: Node.js's own list.",
      "certificates",
      options.certificateAuthorityFile,
    ),
    insecureSkipTLSVerify: boolean("Accept any certificate.", {
      ...options.insecureSkipTLSVerify,
      default: false,
    }),
    clientCertificateFile: file(
      "The client certificate, with its chain.",
      "certificates",
      options.clientCertificateFile,
    ),
    clientKeyFile: file("The key of the client certificate.", "private key", {
      ...options.clientKeyFile,
      certificate: "clientCertificateFile",
    }),
  };
}

interface TrustOptions {
  readonly certificateAuthorityFile?: FieldOptions;
  readonly insecureSkipTLSVerify?: FieldOptions;
  readonly clientCertificateFile?: FieldOptions;
  readonly clientKeyFile?: FieldOptions;
}

export type UpstreamTrust = ValuesOf<ReturnType<typeof upstreamTrustFields>>;

/** `flags` are those of the client certificate and its key. */
export function checkUpstreamTrust(
  trust: Pick<UpstreamTrust, "certificateAuthorityFile"> & {
    readonly insecureSkipTLSVerify: boolean | undefined;
  },
  section: Section,
  [certificateFlag, keyFlag]: readonly string[] = [],
): void {
  if (trust.insecureSkipTLSVerify && trust.certificateAuthorityFile !== undefined) {
    section.problem("insecureSkipTLSVerify", "must be false if certificateAuthorityFile is given");
  }
  section.together(
    { name: "clientCertificateFile", flag: certificateFlag },
    { name: "clientKeyFile", flag: keyFlag },
  );
}
