import { X509Certificate } from "node:crypto";

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
        : [0x82, byteLength >> 8, byteLength & 0xff];
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
