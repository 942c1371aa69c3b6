import type { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { keyPairOf } from "@sluice/client/internal/config/key-pair";
import {
  BACKEND_CA_SECRET_ANNOTATION,
  type Ingress,
  type Secret,
  TLS_SECRET_TYPE,
} from "../api/networking-objects.ts";
import { validityOf } from "../config/certificate-validity.ts";
import type { HostOwnership } from "../config/sections/ingress-listener.ts";
import { readAuthority } from "./backend-tls.ts";
import { HostOwners } from "./ingress-classes.ts";
import { wildcardOf } from "./ingress-request.ts";
import type { RouteOrigin } from "./route.ts";

/**
 * A Secret that cannot be served as it is written; reported as a Warning Event on the Ingress that
 * names it.
 */
interface CertificateProblem {
  readonly origin: RouteOrigin;
  readonly message: string;
}

/** A certificate chain and its private key as PEM; OpenSSL has accepted them together. */
export interface CertificateAndKey {
  readonly cert: string;
  readonly key: string;
}

interface ServingCertificate extends CertificateAndKey {
  /** The certificate's DNS names, in lower case. */
  readonly names: readonly string[];
  /** OpenSSL's name for the key's type: `rsa`, `ec`. */
  readonly keyType: string;
}

/** The certificate in a Secret that an Ingress names. */
export interface SecretCertificate {
  readonly namespace: string;
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
  readonly lifetimeMs: number;
}

/**
 * One name's certificates in order of precedence. All belong to one namespace and have different
 * key types.
 */
interface NamedCertificates {
  readonly namespace: string;
  readonly certificates: ServingCertificate[];
}

/**
 * Chooses certificates by server name: for an Ingress's host, then for its wildcard, then for a
 * name in a certificate. The server name only selects TLS; Host decides about routing.
 */
export class CertificateTable {
  readonly #byHost = new Map<string, NamedCertificates>();
  readonly #byName = new Map<string, NamedCertificates>();

  /**
   * Call this in order of precedence: the first namespace to name a host owns it. Others cannot add
   * a certificate with another key type, which would get them some of the owner's clients.
   */
  add(
    hosts: readonly string[],
    names: readonly string[],
    namespace: string,
    certificate: ServingCertificate,
  ): void {
    for (const host of hosts) addTo(this.#byHost, host.toLowerCase(), namespace, certificate);
    for (const name of names) addTo(this.#byName, name, namespace, certificate);
  }

  /** Empty if there is none. */
  certificatesFor(serverName: string): readonly CertificateAndKey[] {
    // Some clients send the host as it was typed. A trailing dot is ignored, as in Host.
    const name = serverName.toLowerCase().replace(/\.$/, "");
    const wildcard = wildcardOf(name) ?? "";
    const found =
      this.#byHost.get(name) ??
      this.#byHost.get(wildcard) ??
      this.#byName.get(name) ??
      this.#byName.get(wildcard);
    return found?.certificates ?? [];
  }
}

type ReadCertificate = ServingCertificate & Pick<SecretCertificate, "expiresAtMs" | "lifetimeMs">;

/** Stored Secrets are immutable, so each version is another object. */
const read = new WeakMap<Secret, ReadCertificate | string>();

interface CompiledCertificates {
  readonly table: CertificateTable;
  readonly problems: readonly CertificateProblem[];
  readonly secrets: readonly SecretCertificate[];
}

/** Yields after each Ingress and after each certificate: OpenSSL takes 0.2 ms to read one. */
export function* compilingCertificates(
  ingresses: readonly Ingress[],
  secretOf: (namespace: string, name: string) => Secret | undefined,
  hostOwnership: HostOwnership,
): Generator<void, CompiledCertificates> {
  const table = new CertificateTable();
  const secrets = new Map<string, SecretCertificate>();
  const problems: CertificateProblem[] = [];
  const owners = yield* HostOwners.finding(hostOwnership === "first" ? ingresses : []);
  for (const ingress of ingresses) {
    const { namespace = "default", annotations } = ingress.metadata;
    const isOwn = (host: string) =>
      owners.foreignOwnerOf(host.toLowerCase(), ingress.metadata.namespace) === undefined;
    const authority = annotations?.[BACKEND_CA_SECRET_ANNOTATION];
    if (authority !== undefined) {
      const found = readAuthority(secretOf(namespace, authority));
      const name = JSON.stringify(authority.slice(0, 253));
      if ("problem" in found) {
        const message = `secret ${name} ${found.problem}; backends that speak TLS are answered 503`;
        problems.push({ origin: ingress, message });
      }
    }
    yield;
    for (const { hosts, secretName } of ingress.spec?.tls ?? []) {
      if (secretName === undefined || secretName === "") continue;
      const secret = secretOf(namespace, secretName);
      const found = secret === undefined ? "does not exist" : certificateOf(secret);
      yield;
      if (typeof found === "string") {
        problems.push({
          origin: ingress,
          message: `secret ${JSON.stringify(secretName)} ${found}; the default certificate is served`,
        });
        continue;
      }
      const { expiresAtMs, lifetimeMs } = found;
      const shown = { namespace, secret: secretName, expiresAtMs, lifetimeMs };
      secrets.set(`${namespace}/${secretName}`, shown);
      const named = hosts?.length ? hosts : hostsOfRules(ingress);
      table.add(named.filter(isOwn), found.names.filter(isOwn), namespace, found);
    }
  }
  return { table, problems, secrets: [...secrets.values()] };
}

/** The certificate, or its problem as a string. No message contains the key. */
function certificateOf(secret: Secret): ReadCertificate | string {
  const known = read.get(secret);
  if (known !== undefined) return known;
  const certificate = readCertificate(secret);
  read.set(secret, certificate);
  return certificate;
}

function readCertificate({ type, data = {} }: Secret): ReadCertificate | string {
  if (type !== undefined && type !== TLS_SECRET_TYPE) return `is not of type ${TLS_SECRET_TYPE}`;
  const cert = decoded(data["tls.crt"]);
  const key = decoded(data["tls.key"]);
  if (cert === undefined) return "has no tls.crt";
  if (key === undefined) return "has no tls.key";
  try {
    const [certificate] = keyPairOf(cert, key) as [X509Certificate];
    // OpenSSL may reject a certificate and its key together. Contexts are closed now: if left to
    // the garbage collector, thousands would be freed in one turn.
    createSecureContext({ cert, key }).context.close();
    const names = certificate.subjectAltName ?? "";
    return {
      cert,
      key,
      ...validityOf(certificate),
      keyType: certificate.publicKey.asymmetricKeyType ?? "",
      names: names
        .split(", ")
        .filter((name) => name.startsWith("DNS:"))
        .map((name) => name.slice("DNS:".length).toLowerCase()),
    };
  } catch (error) {
    const { message } = error as Error;
    const problem = /^(?:tls|x509): /.test(message) ? `: ${message}` : "";
    return `holds no certificate and key that belong together${problem}`;
  }
}

function decoded(base64: string | undefined): string | undefined {
  return base64 === undefined || base64 === "" ? undefined : Buffer.from(base64, "base64").toString();
}

function hostsOfRules({ spec }: Ingress): string[] {
  return (spec?.rules ?? []).map(({ host }) => host ?? "").filter((host) => host !== "");
}

function addTo(
  map: Map<string, NamedCertificates>,
  name: string,
  namespace: string,
  certificate: ServingCertificate,
): void {
  const known = map.get(name);
  if (known === undefined) {
    map.set(name, { namespace, certificates: [certificate] });
  } else if (
    known.namespace === namespace &&
    known.certificates.every(({ keyType }) => keyType !== certificate.keyType)
  ) {
    known.certificates.push(certificate);
  }
}
