import { readNamedFile } from "../config/named-file-text.ts";
import type { UpstreamTrust } from "../config/upstream-trust.ts";
import type { UpstreamEndpoint } from "./dial.ts";
import { UpstreamTls } from "./tls.ts";

/**
 * Where an http or https URL leads, with the TLS that its configuration says; files of certificates are read only for https. Rejects
 * with what the file system or OpenSSL says about them.
 */
export async function endpointOfUrl(url: string, trust: UpstreamTrust): Promise<UpstreamEndpoint> {
  const { isTls, ...address } = addressOfUrl(url);
  return { ...address, tls: isTls ? await readUpstreamTls(trust) : undefined };
}

export function addressOfUrl(url: string): { host: string; port: number; isTls: boolean } {
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === "https:";
  return {
    // URLs keep the brackets of IPv6 addresses, sockets want none.
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? (isTls ? 443 : 80) : Number(port),
    isTls,
  };
}

/** The TLS identity that a configuration's files make. Rejects as `endpointOfUrl` does. */
export async function readUpstreamTls(trust: UpstreamTrust): Promise<UpstreamTls> {
  const read = async (file: string | undefined) =>
    file === undefined ? undefined : await readNamedFile(file);
  return new UpstreamTls({
    ca: await read(trust.certificateAuthorityFile),
    certificate: await read(trust.clientCertificateFile),
    key: await read(trust.clientKeyFile),
    insecureSkipVerify: trust.insecureSkipTLSVerify,
  });
}
