import { isIP } from "node:net";
import { ERRNO_TEXTS } from "../config/system-error.ts";

/** The fields of Node's socket and TLS errors that are used here. */
interface SocketError extends Error {
  readonly code?: string;
  readonly syscall?: string;
  readonly address?: string;
  readonly port?: number;
  readonly hostname?: string;
  readonly reason?: string;
  readonly host?: string;
  readonly cert?: { readonly subjectaltname?: string };
}

const UNKNOWN_AUTHORITY = "x509: certificate signed by unknown authority";
const verifyTexts: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  CERT_UNTRUSTED: UNKNOWN_AUTHORITY,
  CERT_SIGNATURE_FAILURE: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: "x509: certificate has expired or is not yet valid",
  CERT_NOT_YET_VALID: "x509: certificate has expired or is not yet valid",
  INVALID_PURPOSE: "x509: certificate specifies an incompatible key usage",
  CERT_REVOKED: "x509: certificate is revoked",
  PATH_LENGTH_EXCEEDED: "x509: too many intermediates for path length constraint",
};

// TLS alerts, by the end of OpenSSL's error code (ERR_SSL_SSLV3_ALERT_..., ERR_SSL_TLSV1_ALERT_...,
// ERR_SSL_TLSV13_ALERT_...).
const alertTexts: Readonly<Record<string, string>> = {
  ALERT_CERTIFICATE_REQUIRED: "certificate required",
  ALERT_BAD_CERTIFICATE: "bad certificate",
  ALERT_UNKNOWN_CA: "unknown certificate authority",
  ALERT_CERTIFICATE_UNKNOWN: "unknown certificate",
  ALERT_CERTIFICATE_EXPIRED: "expired certificate",
  ALERT_CERTIFICATE_REVOKED: "revoked certificate",
  ALERT_UNSUPPORTED_CERTIFICATE: "unsupported certificate",
  ALERT_HANDSHAKE_FAILURE: "handshake failure",
  ALERT_PROTOCOL_VERSION: "protocol version not supported",
  ALERT_ACCESS_DENIED: "access denied",
  ALERT_INTERNAL_ERROR: "internal error",
  ALERT_NO_APPLICATION_PROTOCOL: "no application protocol",
  TLSV1_UNRECOGNIZED_NAME: "unrecognized name",
};

/** host:port, with brackets around an IPv6 address. */
export function joinHostPort(host: string, port: number): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Go's text for a failed TCP connect or TLS handshake; TLS texts are approximate. `address`: host:port
 * as dialled, replaced by the address that Node tried, if it reports one.
 */
export function goDialErrorText(error: unknown, address: string): string {
  const cause = firstCause(error);
  const code = cause.code ?? "";
  if (cause.syscall === "getaddrinfo" || code === "ENOTFOUND") return lookupErrorText(cause, address);

  const tlsText = tlsErrorText(cause);
  if (tlsText !== undefined) return tlsText;

  const tried = cause.address === undefined ? address : joinHostPort(cause.address, cause.port ?? 0);
  if (cause.syscall === "read" || cause.syscall === "write") {
    return `${cause.syscall} tcp ${tried}: ${cause.syscall}: ${ERRNO_TEXTS[code] ?? code}`;
  }
  // If the peer closes during the TLS handshake, Node reports ECONNRESET without a system call.
  if (code === "ECONNRESET" && cause.syscall === undefined) return "EOF";
  if (code === "ETIMEDOUT") return `dial tcp ${tried}: connect: connection timed out`;
  const text = ERRNO_TEXTS[code];
  if (text === undefined) return `dial tcp ${tried}: ${code || cause.message}`;
  return `dial tcp ${tried}: ${cause.syscall ?? "connect"}: ${text}`;
}

function firstCause(error: unknown): SocketError {
  // A name with several addresses fails with one error for each; Go reports the first.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0];
  return error instanceof Error ? error : new Error(String(error));
}

function lookupErrorText(error: SocketError, address: string): string {
  const host = error.hostname ?? address.slice(0, address.lastIndexOf(":"));
  if (error.code === "EAI_AGAIN") return `dial tcp: lookup ${host}: Temporary failure in name resolution`;
  return `dial tcp: lookup ${host}: no such host`;
}

function tlsErrorText(error: SocketError): string | undefined {
  const code = error.code ?? "";
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return `tls: failed to verify certificate: ${nameText(error)}`;
  const verifyText = verifyTexts[code];
  if (verifyText !== undefined) return `tls: failed to verify certificate: ${verifyText}`;
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || /wrong version number/.test(error.message)) {
    return "tls: first record does not look like a TLS handshake";
  }
  const alert = Object.keys(alertTexts).find((name) => code.endsWith(name));
  if (alert !== undefined) return `remote error: tls: ${alertTexts[alert]}`;
  return code.startsWith("ERR_SSL_") ? `tls: ${error.reason ?? code}` : undefined;
}

/** Names of a certificate that an error quotes, as in Go. Past it only their number is given. */
const MAX_QUOTED_NAMES = 99;
/** Characters of the names that an error quotes. Past it only their number is given. */
const MAX_QUOTED_NAME_CHARACTERS = 4_096;

function nameText(error: SocketError): string {
  const host = error.host ?? "";
  const names = (error.cert?.subjectaltname ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
  const ofKind = names.filter((entry) => entry.startsWith(isIP(host) === 0 ? "DNS:" : "IP Address:"));
  if (ofKind.length > 0) {
    const valid = ofKind.map((entry) => entry.slice(entry.indexOf(":") + 1)).join(", ");
    if (ofKind.length <= MAX_QUOTED_NAMES && valid.length <= MAX_QUOTED_NAME_CHARACTERS)
      return `x509: certificate is valid for ${valid}, not ${host}`;
    const what = isIP(host) === 0 ? "names" : "IP SANs";
    return `x509: certificate is valid for ${ofKind.length} ${what}, but none matched ${host}`;
  }
  if (isIP(host) !== 0)
    return `x509: cannot validate certificate for ${host} because it doesn't contain any IP SANs`;
  return `x509: certificate is not valid for any names, but wanted to match ${host}`;
}
