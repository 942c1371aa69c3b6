import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeReview, ProtobufError } from "../../../../src/api/protobuf/decode-message.ts";

const field = (number: number, value: string | Buffer): Buffer => {
  const bytes = Buffer.from(value);
  const length = bytes.length < 128 ? [bytes.length] : [(bytes.length & 0x7f) | 0x80, bytes.length >> 7];
  return Buffer.concat([Buffer.of((number << 3) | 2, ...length), bytes]);
};
const envelope = (kind: string, raw: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from("k8s\0"),
    field(1, Buffer.concat([field(1, "authorization.k8s.io/v1"), field(2, kind)])),
    field(2, raw),
  ]);

describe("a review in protobuf", () => {
  it("gives the object that JSON would have been", () => {
    const asked = Buffer.concat([field(1, "ns"), field(2, "get"), field(5, "pods"), field(6, "exec")]);
    // Metadata, an unknown number and an empty status around it.
    const raw = Buffer.concat([field(1, ""), field(2, field(1, asked)), field(3, Buffer.of(8, 0))]);
    expect(decodeReview(envelope("SelfSubjectAccessReview", raw))).toEqual({
      apiVersion: "authorization.k8s.io/v1",
      kind: "SelfSubjectAccessReview",
      spec: { resourceAttributes: { namespace: "ns", verb: "get", resource: "pods", subresource: "exec" } },
    });
    expect(decodeReview(envelope("SelfSubjectRulesReview", field(2, field(1, "ns")))).spec).toEqual({
      namespace: "ns",
    });
  });

  it.each([
    ["no envelope", Buffer.from("{}")],
    ["nothing", Buffer.alloc(0)],
    ["another kind", envelope("Pod", Buffer.alloc(0))],
    ["a kind of every object", envelope("constructor", Buffer.alloc(0))],
    ["a field behind its message", envelope("SelfSubjectReview", Buffer.of(0x0a, 0x7f))],
    ["an endless number", Buffer.concat([Buffer.from("k8s\0"), Buffer.alloc(20, 0xff)])],
    ["a group", envelope("SelfSubjectReview", Buffer.of(0x0b))],
    ["a number for a text", envelope("SelfSubjectRulesReview", field(2, Buffer.of(8, 1)))],
    ["no UTF-8", envelope("SelfSubjectRulesReview", field(2, field(1, Buffer.of(0xff))))],
  ])("%s is refused", (_, bytes) => {
    expect(() => decodeReview(bytes)).toThrow(ProtobufError);
  });

  it("random bytes give an object or a ProtobufError", () => {
    const property = fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      for (const input of [bytes, envelope("SelfSubjectAccessReview", Buffer.from(bytes))]) {
        try {
          expect(typeof decodeReview(input)).toBe("object");
        } catch (error) {
          expect(error).toBeInstanceOf(ProtobufError);
        }
      }
    });
    fc.assert(property, { numRuns: 2_000 });
  });
});
