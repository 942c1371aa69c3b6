import { spawnSync } from "node:child_process";
import type { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeDerText, subjectOf } from "../../../../src/access/authn/certificate-authority.ts";
import { certificateWith, type DerAttribute } from "../../../support/der-certificate.ts";

type Subject = NonNullable<ReturnType<typeof subjectOf>>;

const COMMON_NAME = 3;
const ORGANIZATION = 10;
const utf8 = (type: number, text: string): DerAttribute => ({ type, tag: 12, value: Buffer.from(text) });
const commonName = (text: string) => utf8(COMMON_NAME, text);
const organization = (text: string) => utf8(ORGANIZATION, text);

describe("the subject of a certificate", () => {
  it.each<[string, DerAttribute[][], Subject]>([
    ["a common name alone", [[commonName("jane")]], { commonName: "jane", organizations: [] }],
    [
      "organizations in their order",
      [[organization("dev")], [organization("on, call")], [commonName("jane")]],
      { commonName: "jane", organizations: ["dev", "on, call"] },
    ],
    [
      "the last common name",
      [[commonName("one")], [commonName("two")]],
      { commonName: "two", organizations: [] },
    ],
    [
      "what looks like an escape of RFC 2253",
      [[organization("\\73ystem:masters")], [commonName("jane\\20")]],
      { commonName: "jane\\20", organizations: ["\\73ystem:masters"] },
    ],
    [
      "a backslash before the next attribute of the same relative name",
      [[organization("dev\\"), commonName("jane")]],
      { commonName: "jane", organizations: ["dev\\"] },
    ],
    [
      "what looks like another attribute",
      [[commonName("x\nO=system:masters + O=system:masters")]],
      { commonName: "x\nO=system:masters + O=system:masters", organizations: [] },
    ],
    ["no attribute", [], { commonName: "", organizations: [] }],
    [
      "every type of text",
      [
        [{ type: ORGANIZATION, tag: 19, value: Buffer.from("printable *&") }],
        [{ type: ORGANIZATION, tag: 20, value: Buffer.from([0xe4]) }],
        [{ type: ORGANIZATION, tag: 22, value: Buffer.from("ia5@") }],
        [{ type: ORGANIZATION, tag: 30, value: Buffer.from([0x20, 0xac, 0, 0]) }],
        [{ type: ORGANIZATION, tag: 18, value: Buffer.from("12 3") }],
      ],
      { commonName: "", organizations: ["printable *&", "ä", "ia5@", "€", "12 3"] },
    ],
  ])("is read as it stands: %s", (_, subject, expected) => {
    expect(subjectOf(certificateWith(subject))).toEqual(expected);
  });

  // OpenSSL itself refuses certificates with some of them, so the values are shown to the decoder alone.
  it.each<[string, number, number[]]>([
    ["UTF-8 that is none", 12, [0xff]],
    ["a printable text with an underscore", 19, [0x5f]],
    ["a surrogate", 30, [0xd8, 0x00, 0xdc, 0x00]],
    ["half a character", 30, [0x00]],
    ["ASCII that is none", 22, [0x80]],
    ["a type that Go does not read", 28, [0, 0, 0, 0x61]],
  ])("has no text for %s", (_, tag, bytes) => {
    expect(() => decodeDerText({ tag, contents: Uint8Array.from(bytes) })).toThrow();
  });

  it("is none when one value is no text of its type", () => {
    const value = Buffer.from("under_score");
    expect(
      subjectOf(certificateWith([[commonName("jane")], [{ type: 11, tag: 19, value }]])),
    ).toBeUndefined();
  });

  it("is OpenSSL's, attribute by attribute, for whatever stands in it", () => {
    const rounds = Number(process.env.SLUICE_FUZZ_ROUNDS ?? 600);
    const texts = fc.oneof(
      fc.string({ unit: "binary", maxLength: 12 }),
      fc
        .array(
          fc.constantFrom(
            "\\",
            "+",
            " + ",
            ",",
            "=",
            "O=",
            "CN=",
            "\n",
            '"',
            "\\73",
            "\\2C",
            "#",
            ";",
            "ä",
            "\0",
            " ",
          ),
          {
            maxLength: 8,
          },
        )
        .map((parts) => parts.join("")),
    );
    const attribute = fc.oneof(
      fc.record({
        type: fc.constantFrom(COMMON_NAME, ORGANIZATION, 11, 7),
        tag: fc.constant(12),
        value: texts.map((text) => Buffer.from(text)),
      }),
      fc.record({
        type: fc.constantFrom(COMMON_NAME, ORGANIZATION),
        tag: fc.constant(20),
        value: fc.uint8Array({ maxLength: 12 }),
      }),
    );
    const subjects = fc.sample(
      fc.array(fc.array(attribute, { minLength: 1, maxLength: 3 }), { maxLength: 4 }),
      { numRuns: rounds, seed: 20_261_123 },
    );
    const certificates = subjects.map(certificateWith);
    const expected = subjectsByOpenSsl(certificates);
    expect(expected).toHaveLength(rounds);
    expect(certificates.map(subjectOf)).toEqual(expected);
  });
});

/** OpenSSL prints each value as the hex of its DER, so that nothing is escaped; its texts are decoded here, by their tags. */
function subjectsByOpenSsl(certificates: readonly X509Certificate[]): Subject[] {
  const run = (args: readonly string[], input: string | Buffer) => {
    const { status, stdout, stderr } = spawnSync("openssl", args, { input, maxBuffer: 64 * 1024 * 1024 });
    if (status !== 0) throw new Error(String(stderr));
    return stdout;
  };
  const folder = mkdtempSync(path.join(tmpdir(), "sluice-subjects-"));
  const file = path.join(folder, "certificates.pem");
  writeFileSync(file, certificates.map(String).join(""));
  const bundle = run(["crl2pkcs7", "-nocrl", "-certfile", file], "");
  rmSync(folder, { recursive: true });
  const printed = run(
    ["cms", "-cmsout", "-print", "-inform", "PEM", "-nameopt", "oid,dump_all,dump_der"],
    bundle,
  );
  const names = String(printed).matchAll(/^ *subject: *(.*)$/gm);
  return [...names].map(([, name = ""]) => {
    const attributes = [...name.matchAll(/([0-9.]+)=#([0-9A-F]+)/g)].map(([, type, hex = ""]) => {
      const value = Buffer.from(hex, "hex");
      return { type, text: value.subarray(2).toString(value[0] === 12 ? "utf8" : "latin1") };
    });
    const textsOf = (wanted: string) =>
      attributes.filter(({ type }) => type === wanted).map(({ text }) => text);
    return { commonName: textsOf("2.5.4.3").at(-1) ?? "", organizations: textsOf("2.5.4.10") };
  });
}
