import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import { BACKEND_CA_SECRET_ANNOTATION, type Ingress } from "../api/networking-objects.ts";
import { type Secret, TLS_SECRET_TYPE } from "../api/service-objects.ts";
import { readAuthority } from "./backend-tls.ts";
import { wildcardOf } from "./request-host.ts";

/** A Secret that is not served as written: a Warning Event of the Ingress that names it. */
export interface CertificateProblem {
  readonly ingress: Ingress;
  readonly message: string;
}

interface ServingCertificate {
  readonly context: SecureContext;
  /** DNS names of the certificate, lower case. */
  readonly names: readonly string[];
  readonly isRsa: boolean;
}

/** What is served to names that no Secret has a certificate for. */
export interface DefaultCertificate {
  readonly context: SecureContext;
  readonly isRsa: boolean;
}

export function defaultCertificateOf(tls: {
  readonly cert: string;
  readonly key: string;
}): DefaultCertificate {
  return {
    context: createSecureContext({ ...tls, minVersion: "TLSv1.2" }),
    isRsa: isRsa(new X509Certificate(tls.cert)),
  };
}

/**
 * Chooses a certificate by server name: a host that an Ingress names for it, then that host's wildcard, then a name in a
 * certificate, then the default. A server name only ends TLS; routes go by Host.
 */
export class CertificateTable {
  readonly #default: SecureContext;
  readonly #byHost = new Map<string, SecureContext>();
  readonly #byName = new Map<string, SecureContext>();

  constructor(defaultContext: SecureContext) {
    this.#default = defaultContext;
  }

  /** In order of precedence: whoever names a host first has it. */
  add(hosts: readonly string[], { context, names }: ServingCertificate): void {
    for (const host of hosts) addFirst(this.#byHost, host.toLowerCase(), context);
    for (const name of names) addFirst(this.#byName, name, context);
  }

  contextFor(serverName: string | undefined): SecureContext {
    const name = serverName?.toLowerCase() ?? "";
    const wildcard = wildcardOf(name) ?? "";
    return (
      this.#byHost.get(name) ??
      this.#byHost.get(wildcard) ??
      this.#byName.get(name) ??
      this.#byName.get(wildcard) ??
      this.#default
    );
  }
}

/** Secrets are immutable here: another version is another object. */
const read = new WeakMap<Secret, ServingCertificate | string>();

export function compileCertificates(
  ingresses: readonly Ingress[],
  secretOf: (namespace: string, name: string) => Secret | undefined,
  fallback: DefaultCertificate,
): { table: CertificateTable; problems: CertificateProblem[] } {
  const table = new CertificateTable(fallback.context);
  const problems: CertificateProblem[] = [];
  for (const ingress of ingresses) {
    const authority = ingress.metadata.annotations?.[BACKEND_CA_SECRET_ANNOTATION];
    if (authority !== undefined) {
      const found = readAuthority(secretOf(ingress.metadata.namespace ?? "default", authority));
      const name = JSON.stringify(authority.slice(0, 253));
      if ("problem" in found) {
        const message = `secret ${name} ${found.problem}; backends that speak TLS are answered 503`;
        problems.push({ ingress, message });
      }
    }
    for (const { hosts, secretName } of ingress.spec?.tls ?? []) {
      if (secretName === undefined || secretName === "") continue;
      const secret = secretOf(ingress.metadata.namespace ?? "default", secretName);
      const found = secret === undefined ? "does not exist" : certificateOf(secret);
      if (typeof found === "string") {
        problems.push({
          ingress,
          message: `secret ${JSON.stringify(secretName)} ${found}; the default certificate is served`,
        });
        continue;
      }
      table.add(hosts?.length ? hosts : hostsOfRules(ingress), found);
      if (!found.isRsa || fallback.isRsa) continue;
      // Node adds the chosen certificate to the default one, and OpenSSL prefers ECDSA of the two.
      const message = `secret ${JSON.stringify(secretName)} has an RSA key, and the default certificate has not: clients that know ECDSA get the default`;
      problems.push({ ingress, message });
    }
  }
  return { table, problems };
}

/** What is wrong with it, as a string, otherwise the certificate. The key's bytes are in no message. */
function certificateOf(secret: Secret): ServingCertificate | string {
  const known = read.get(secret);
  if (known !== undefined) return known;
  const certificate = readCertificate(secret);
  read.set(secret, certificate);
  return certificate;
}

function readCertificate({ type, data = {} }: Secret): ServingCertificate | string {
  if (type !== undefined && type !== TLS_SECRET_TYPE) return `is not of type ${TLS_SECRET_TYPE}`;
  const cert = decoded(data["tls.crt"]);
  const key = decoded(data["tls.key"]);
  if (cert === undefined) return "has no tls.crt";
  if (key === undefined) return "has no tls.key";
  try {
    const certificate = new X509Certificate(cert);
    const names = certificate.subjectAltName ?? "";
    return {
      isRsa: isRsa(certificate),
      context: createSecureContext({ cert, key, minVersion: "TLSv1.2" }),
      names: names
        .split(", ")
        .filter((name) => name.startsWith("DNS:"))
        .map((name) => name.slice("DNS:".length).toLowerCase()),
    };
  } catch {
    return "holds no certificate and key that belong together";
  }
}

function isRsa({ publicKey }: X509Certificate): boolean {
  return publicKey.asymmetricKeyType === "rsa";
}

function decoded(base64: string | undefined): Buffer | undefined {
  return base64 === undefined || base64 === "" ? undefined : Buffer.from(base64, "base64");
}

function hostsOfRules({ spec }: Ingress): string[] {
  return (spec?.rules ?? []).map(({ host }) => host ?? "").filter((host) => host !== "");
}

function addFirst(map: Map<string, SecureContext>, name: string, context: SecureContext): void {
  if (!map.has(name)) map.set(name, context);
}
