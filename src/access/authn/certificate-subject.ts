import type { X509Certificate } from "node:crypto";
import { DER_SEQUENCE, DER_SET, type DerValue, readDer } from "./der-reader.ts";
import { decodeDerText } from "./der-text.ts";

export interface Subject {
  readonly commonName: string;
  readonly organizations: readonly string[];
}

const VERSION_TAG = 0xa0;
const OBJECT_IDENTIFIER = 0x06;
const COMMON_NAME = "550403";
const ORGANIZATION = "55040a";

const known = new WeakMap<X509Certificate, Subject | undefined>();

/**
 * A subject's common name and organizations, from its DER: printed names confuse characters with
 * escapes. The last common name counts, as in Go's x509. Undefined if Go refuses the subject.
 */
export function subjectOf(certificate: X509Certificate): Subject | undefined {
  if (!known.has(certificate)) known.set(certificate, readSubject(certificate.raw));
  return known.get(certificate);
}

function readSubject(der: Uint8Array): Subject | undefined {
  try {
    const attributes = attributesOf(subjectName(der));
    const valuesOf = (type: string) =>
      attributes.filter(([found]) => found === type).map(([, value]) => value);
    return { commonName: valuesOf(COMMON_NAME).at(-1) ?? "", organizations: valuesOf(ORGANIZATION) };
  } catch {
    return undefined;
  }
}

/**
 * RFC 5280: version, serial number, signature, issuer, validity, subject. Only the version is
 * optional.
 */
function subjectName(der: Uint8Array): DerValue {
  const [certificate] = readDer(der);
  const [toBeSigned] = membersOf(certificate, DER_SEQUENCE);
  const members = membersOf(toBeSigned, DER_SEQUENCE);
  return members[members[0]?.tag === VERSION_TAG ? 5 : 4] as DerValue;
}

function attributesOf(name: DerValue): [type: string, value: string][] {
  return membersOf(name, DER_SEQUENCE).flatMap((relativeName) =>
    membersOf(relativeName, DER_SET).map((attribute): [string, string] => {
      const [type, value] = membersOf(attribute, DER_SEQUENCE);
      if (type?.tag !== OBJECT_IDENTIFIER || value === undefined) throw new Error("no attribute of a name");
      return [Buffer.from(type.contents).toString("hex"), decodeDerText(value)];
    }),
  );
}

function membersOf(value: DerValue | undefined, tag: number): DerValue[] {
  if (value?.tag !== tag) throw new Error("another type of DER than expected");
  return readDer(value.contents);
}
