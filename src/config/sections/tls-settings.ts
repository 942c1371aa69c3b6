import { isIP } from "node:net";
import { checkNetwork } from "@sluice/client/internal/config/address-list";
import { table, type ValueOf } from "@sluice/client/internal/config/field";
import { choice, type FieldOptions, file, string } from "@sluice/client/internal/config/fields";
import { count } from "../number-fields.ts";
import { choices, optionalSection, strings } from "../section-fields.ts";

/** Go's and OpenSSL's names of suites. As in Go, TLS 1.3 suites are always offered. */
const FORWARD_SECRET = {
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: "ECDHE-ECDSA-AES128-GCM-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: "ECDHE-RSA-AES128-GCM-SHA256",
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: "ECDHE-ECDSA-AES256-GCM-SHA384",
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: "ECDHE-RSA-AES256-GCM-SHA384",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: "ECDHE-ECDSA-AES128-SHA",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: "ECDHE-RSA-AES128-SHA",
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: "ECDHE-ECDSA-AES256-SHA",
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: "ECDHE-RSA-AES256-SHA",
} as const;
const OTHERS = {
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: "ECDHE-ECDSA-CHACHA20-POLY1305",
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: "ECDHE-RSA-CHACHA20-POLY1305",
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: "ECDHE-ECDSA-AES128-SHA256",
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: "ECDHE-RSA-AES128-SHA256",
  TLS_RSA_WITH_AES_128_GCM_SHA256: "AES128-GCM-SHA256",
  TLS_RSA_WITH_AES_256_GCM_SHA384: "AES256-GCM-SHA384",
  TLS_RSA_WITH_AES_128_CBC_SHA: "AES128-SHA",
  TLS_RSA_WITH_AES_256_CBC_SHA: "AES256-SHA",
  TLS_RSA_WITH_AES_128_CBC_SHA256: "AES128-SHA256",
} as const;
const TLS_13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"] as const;

const OPENSSL_NAMES: Readonly<Record<string, string>> = { ...FORWARD_SECRET, ...OTHERS };
const namesOf = <Names extends object>(names: Names) => Object.keys(names) as (keyof Names & string)[];

type CipherSuite = keyof typeof FORWARD_SECRET | keyof typeof OTHERS | (typeof TLS_13)[number];

export const DEFAULT_CIPHER_SUITES: readonly CipherSuite[] = namesOf(FORWARD_SECRET);

export const CIPHER_SUITES: readonly CipherSuite[] = [
  ...DEFAULT_CIPHER_SUITES,
  ...namesOf(OTHERS),
  ...TLS_13,
];

/** The flags set the API listener's fields. */
const tlsSettingFields = {
  cipherSuites: choices(
    "Cipher suites of TLS 1.2 by Go's names, preferred ones first; those of TLS 1.3 are always offered.",
    CIPHER_SUITES,
    { default: DEFAULT_CIPHER_SUITES, flag: "tls-cipher-suites" },
  ),
  minVersion: choice("Oldest TLS version that clients may use.", ["VersionTLS12", "VersionTLS13"], {
    default: "VersionTLS12",
    flag: "tls-min-version",
  }),
};

export const tlsSettings = table(tlsSettingFields);

export type TlsSettings = ValueOf<typeof tlsSettings>;

/**
 * Options for a node:tls context. As in Go's servers, TLS 1.3 prefers AES-128, which saves clients
 * 5 % CPU.
 */
export function cipherOptionsOf({
  cipherSuites = DEFAULT_CIPHER_SUITES,
  minVersion = "VersionTLS12",
}: Partial<TlsSettings>): { readonly ciphers: string; readonly minVersion: "TLSv1.2" | "TLSv1.3" } {
  const ofTls12 = cipherSuites.flatMap((name) => OPENSSL_NAMES[name] ?? []);
  return {
    ciphers: [...TLS_13, ...new Set(ofTls12)].join(":"),
    minVersion: minVersion === "VersionTLS13" ? "TLSv1.3" : "TLSv1.2",
  };
}

const REQUIRED = "is required: a listener with TLS needs certFile and keyFile";

/** A listener's certificate chain and private key. The flags set the API listener's. */
const fields = {
  certFile: file("Certificate chain, PEM.", "certificates", { required: REQUIRED, flag: "tls-cert-file" }),
  keyFile: file("Private key, PEM.", "private key", {
    required: REQUIRED,
    certificate: "certFile",
    flag: "tls-private-key-file",
  }),
};

export const certificateFiles = table(fields);

/** A listener's `tls`. */
export const listenerTls = table({ ...fields, ...tlsSettingFields });

export type ListenerTls = ValueOf<typeof certificateFiles> & Partial<TlsSettings>;

interface ListenerAddress {
  readonly address: string;
  /** 0 means any free port. */
  readonly port: number;
}

/** Listeners default to loopback, which other machines cannot reach. */
export function addressFields(
  port: number,
  flags: { readonly [Name in keyof ListenerAddress]?: FieldOptions } = {},
) {
  return {
    address: string("IP address or host name to listen on.", {
      ...flags.address,
      default: "127.0.0.1",
      check: checkHost,
    }),
    port: listenerPort("Port to listen on; 0: any free one.", port, flags.port),
  };
}

export function listenerPort(sentence: string, port: number, options: FieldOptions = {}) {
  return count(sentence, { ...options, as: "*", default: port, from: 0, to: 65_535 });
}

/** Parses a flag's port; the message is the flag's own. */
export function portOf(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new RangeError(`must be a port between 0 (any free one) and 65535, got ${JSON.stringify(text)}`);
}

/** The problem with a host to listen on; undefined if there is none. */
export function checkHost(value: string): string | undefined {
  // A name that ends in digits is a mistyped IPv4 address, and no resolver finds it.
  const isName = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i.test(
    value,
  );
  if (isIP(value) !== 0 || (isName && !/(^|\.)\d+$/.test(value))) {
    return undefined;
  }
  return `must be an IP address or a host name without port, got ${JSON.stringify(value)}`;
}

const proxyProtocolFields = table({
  from: strings(
    "Addresses and networks of the proxies. Each of their connections must begin with a header.",
    {
      required: "is required: proxies whose headers are read",
      check: checkNetwork,
    },
  ),
});

/** For a listener behind TCP proxies. */
export const proxyProtocol = () =>
  optionalSection(
    "Reads the client's address from PROXY protocol headers, version 1 or 2, before TLS. Absent: such headers are bad requests.",
    proxyProtocolFields,
  );
