import { createPrivateKey, generateKeyPairSync, sign, X509Certificate } from "node:crypto";
import type { TestCertificate } from "./test-certificates.ts";

/**
 * An attribute of a name: the last arc below 2.5.4 (3: common name, 10: organization), its string
 * type's tag, its bytes.
 */
export interface DerAttribute {
  readonly type: number;
  readonly tag: number;
  readonly value: Uint8Array;
}

export function der(tag: number, ...contents: Uint8Array[]): Buffer {
  const body = Buffer.concat(contents);
  const { byteLength } = body;
  const length =
    byteLength < 0x80
      ? [byteLength]
      : byteLength < 0x100
        ? [0x81, byteLength]
        : byteLength < 0x1_0000
          ? [0x82, byteLength >> 8, byteLength & 0xff]
          : [0x83, byteLength >> 16, (byteLength >> 8) & 0xff, byteLength & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const ECDSA_WITH_SHA256 = Buffer.from("300a06082a8648ce3d040302", "hex");
const P256_KEY = Buffer.from("301306072a8648ce3d020106082a8648ce3d030107", "hex");
/** The curve's generator, a point that OpenSSL accepts. */
const POINT = Buffer.from(
  "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296" +
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
  "hex",
);

/**
 * An unsigned certificate with exactly this subject: its relative names' attributes, with the given
 * bytes.
 */
export function certificateWith(subject: readonly (readonly DerAttribute[])[]): X509Certificate {
  const name = der(
    0x30,
    ...subject.map((attributes) =>
      der(
        0x31,
        ...attributes.map(({ type, tag, value }) =>
          der(0x30, der(0x06, Buffer.from([0x55, 0x04, type])), der(tag, value)),
        ),
      ),
    ),
  );
  const time = der(0x17, Buffer.from("260101000000Z"));
  const key = der(0x30, P256_KEY, der(0x03, Buffer.from([0]), POINT));
  const version = der(0xa0, der(0x02, Buffer.from([2])));
  const toBeSigned = der(
    0x30,
    version,
    der(0x02, Buffer.from([1])),
    ECDSA_WITH_SHA256,
    der(0x30),
    der(0x30, time, time),
    name,
    key,
  );
  return new X509Certificate(der(0x30, toBeSigned, ECDSA_WITH_SHA256, der(0x03, Buffer.from([0, 0]))));
}

/** A client's certificate with a key of its own, which other generators refuse to make. */
export interface SignedFields {
  readonly commonName: string;
  readonly names?: readonly string[];
  readonly isAuthority?: boolean;
}

export interface SignedCertificate extends TestCertificate {
  readonly commonName: string;
}

/** Signed by `issuer`; absent: by itself. */
export function signedCertificate(
  { commonName, names = [], isAuthority = false }: SignedFields,
  issuer?: SignedCertificate,
): SignedCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const extension = (oid: string, value: Uint8Array): Buffer =>
    der(0x30, der(0x06, Buffer.from(oid, "hex")), der(0x04, value));
  const extensions = [
    isAuthority
      ? extension("551d13", der(0x30, der(0x01, Buffer.of(0xff))))
      : extension("551d25", der(0x30, der(0x06, Buffer.from("2b06010505070302", "hex")))),
    ...(names.length === 0
      ? []
      : [extension("551d11", der(0x30, ...names.map((name) => der(0x82, Buffer.from(name)))))]),
  ];
  const toBeSigned = der(
    0x30,
    der(0xa0, der(0x02, Buffer.of(2))),
    der(0x02, Buffer.of(1 + Math.floor(Math.random() * 127))),
    ECDSA_WITH_SHA256,
    nameOf(issuer?.commonName ?? commonName),
    der(0x30, der(0x17, Buffer.from("250101000000Z")), der(0x17, Buffer.from("450101000000Z"))),
    nameOf(commonName),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, ...extensions)),
  );
  const signature = sign(
    "sha256",
    toBeSigned,
    issuer === undefined ? privateKey : createPrivateKey(issuer.key),
  );
  const whole = der(0x30, toBeSigned, ECDSA_WITH_SHA256, der(0x03, Buffer.of(0), signature));
  return {
    commonName,
    cert: `-----BEGIN CERTIFICATE-----\n${whole.toString("base64").replace(/.{1,64}/g, "$&\n")}-----END CERTIFICATE-----\n`,
    key: String(privateKey.export({ type: "pkcs8", format: "pem" })),
  };
}

function nameOf(commonName: string): Buffer {
  return der(
    0x30,
    der(0x31, der(0x30, der(0x06, Buffer.from("550403", "hex")), der(0x0c, Buffer.from(commonName)))),
  );
}
