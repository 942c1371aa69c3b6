import { keyPairOf } from "../config/key-pair.ts";
import { parseYamlDocuments } from "../config/yaml-documents.ts";

/** Credentials from a plugin or an identity provider; certificates and keys are PEM. */
export interface PluginCredentials {
  readonly authorization: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** Milliseconds since 1970; undefined means valid until the API server refuses them. */
  readonly expiresAtMs: number | undefined;
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/**
 * Parses a plugin's output, JSON or YAML. Throws client-go's messages
 * (plugin/pkg/client/auth/exec); none contains a value of the status.
 */
export function readExecCredential(text: string, apiVersion: string): PluginCredentials {
  const credential = parsed(text);
  if (credential.kind !== "ExecCredential")
    throw new Error("decoding stdout: the kind is not ExecCredential");
  if (credential.apiVersion !== apiVersion) {
    const returned = String(credential.apiVersion).slice(0, 80);
    throw new Error(
      `exec plugin is configured to use API version ${apiVersion}, plugin returned version ${returned}`,
    );
  }
  if (credential.status === undefined || credential.status === null) {
    throw new Error("exec plugin didn't return a status field");
  }
  if (!isMap(credential.status)) throw new Error("decoding stdout: status must be a map");
  const token = textOf(credential.status, "token");
  const certificate = textOf(credential.status, "clientCertificateData");
  const key = textOf(credential.status, "clientKeyData");
  const expires = textOf(credential.status, "expirationTimestamp");
  if (expires !== undefined && !RFC3339.test(expires)) {
    throw new Error("decoding stdout: status.expirationTimestamp must be a time as RFC 3339 writes it");
  }
  if (token === undefined && certificate === undefined && key === undefined) {
    throw new Error("exec plugin didn't return a token or cert/key pair");
  }
  if ((certificate === undefined) !== (key === undefined)) {
    throw new Error("exec plugin returned only certificate or key, not both");
  }
  if (token !== undefined && !/^[\x20-\x7e]+$/.test(token)) {
    throw new Error("exec plugin returned a token that no header can hold");
  }
  checkPair(certificate, key);
  return {
    authorization: token === undefined ? undefined : `Bearer ${token}`,
    certificate,
    key,
    expiresAtMs: expires === undefined ? undefined : Date.parse(expires),
  };
}

function parsed(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = parsedYaml(text);
  }
  if (!isMap(value)) throw new Error("decoding stdout: it is not a JSON or YAML map");
  return value;
}

/** The parser's own message would quote the secret text. */
function parsedYaml(text: string): unknown {
  try {
    return parseYamlDocuments(text, "stdout")[0]?.value;
  } catch {
    return undefined;
  }
}

/** Empty counts as absent, as in Go. */
function textOf(status: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const value = status[name] ?? "";
  if (typeof value !== "string") throw new Error(`decoding stdout: status.${name} must be a string`);
  return value === "" ? undefined : value;
}

function checkPair(certificate: string | undefined, key: string | undefined): void {
  if (certificate === undefined || key === undefined) return;
  try {
    keyPairOf(certificate, key);
  } catch (error) {
    throw new Error(`failed parsing client key/certificate: ${(error as Error).message}`);
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
