import { certificatesOf } from "@sluice/client/internal/config/key-pair";
import type { UpstreamTrust } from "@sluice/client/internal/config/sections/upstream-trust";
import { addressOfUrl, type UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { UpstreamTls, type UpstreamTlsOptions } from "@sluice/client/internal/net/tls";
import type { Logger } from "../observability/logger.ts";
import { FollowedFiles, type ReadFile } from "./followed-files.ts";

/** A connection's purpose, as logs and metrics name it. */
export type UpstreamUse =
  | "kubelet"
  | "kubeletUpstream"
  | "egressProxy"
  | "streamingServer"
  | "streamingGateway"
  | "upstreamAPIServer"
  | "tokenReview"
  | "authorizationWebhook"
  | "auditWebhook"
  | "recordingStore"
  | "quotaStore"
  | "oidc";

/** `client`: our own certificate; `authority`: those that may have signed the server's. */
type UpstreamCertificate = "client" | "authority";

interface UpstreamTlsFilesOptions {
  readonly logger: Pick<Logger, "info" | "error">;
  /** Called with the certificates that apply from now on; PEM. */
  readonly onRead?: (use: UpstreamUse, certificate: UpstreamCertificate, pem: string) => void;
}

/**
 * Follows the TLS files for upstreams. New connections use the new contents; open ones keep theirs.
 * Invalid files are logged, and the old contents stay.
 */
export class UpstreamTlsFiles {
  readonly #options: UpstreamTlsFilesOptions;
  readonly #followed = new Set<FollowedFiles<unknown>>();

  constructor(options: UpstreamTlsFilesOptions) {
    this.#options = options;
  }

  /**
   * The TLS identity from a section's files, kept up to date. Rejects with the file system's or
   * OpenSSL's error.
   */
  async tls(use: UpstreamUse, trust: UpstreamTrust): Promise<UpstreamTls> {
    const options = await this.follow(
      use,
      (read) => tlsOptionsOf(trust, read),
      (next) => {
        tls.replace(next);
        this.note(use, next);
      },
    );
    const tls = new UpstreamTls(options);
    this.note(use, options);
    return tls;
  }

  /** The endpoint of a URL, with its section's TLS. Reads files for https only. Rejects as `tls` does. */
  async endpoint(use: UpstreamUse, url: string, trust: UpstreamTrust): Promise<UpstreamEndpoint> {
    const { isTls, ...address } = addressOfUrl(url);
    return { ...address, tls: isTls ? await this.tls(use, trust) : undefined };
  }

  /** Builds a value from other files, now and after each change. Rejects as `read` does. */
  async follow<T>(
    use: UpstreamUse,
    read: (file: ReadFile) => Promise<T>,
    changed: (value: T) => void,
  ): Promise<T> {
    const { logger } = this.#options;
    const what = "what TLS to an upstream goes by";
    const { value, files } = await FollowedFiles.open<T>({ what, fields: { use }, read, changed, logger });
    this.#followed.add(files as FollowedFiles<unknown>);
    return value;
  }

  /** Reports the certificates that apply from now on. */
  note(use: UpstreamUse, { certificate, ca }: Pick<UpstreamTlsOptions, "certificate" | "ca">): void {
    const { onRead } = this.#options;
    if (certificate !== undefined) onRead?.(use, "client", certificate.toString());
    if (ca !== undefined) onRead?.(use, "authority", ca.toString());
  }

  /** Reads all files again. Never rejects. */
  async reload(): Promise<void> {
    await Promise.all(Array.from(this.#followed, (files) => files.reload()));
  }

  stop(): void {
    for (const files of this.#followed) files.stop();
    this.#followed.clear();
  }
}

/** The TLS options in a section's files. Rejects for authorities that OpenSSL would silently ignore. */
export async function tlsOptionsOf(trust: UpstreamTrust, read: ReadFile): Promise<UpstreamTlsOptions> {
  const textOf = async (file: string | undefined) => (file === undefined ? undefined : await read(file));
  const ca = await textOf(trust.certificateAuthorityFile);
  if (ca !== undefined) certificatesOf(ca);
  return {
    ca,
    certificate: await textOf(trust.clientCertificateFile),
    key: await textOf(trust.clientKeyFile),
    insecureSkipVerify: trust.insecureSkipTLSVerify,
  };
}
