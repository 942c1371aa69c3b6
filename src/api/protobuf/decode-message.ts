/** Kubernetes' envelope: these four bytes, then a runtime.Unknown (k8s.io/apimachinery/pkg/runtime/generated.proto). */
const MAGIC = [0x6b, 0x38, 0x73, 0x00];

const typeMeta: MessageSchema = { 1: { name: "apiVersion" }, 2: { name: "kind" } };

/** The fields of k8s.io/api/authorization/v1/generated.proto that Sluice uses. */
const resourceAttributes: MessageSchema = {
  1: { name: "namespace" },
  2: { name: "verb" },
  3: { name: "group" },
  4: { name: "version" },
  5: { name: "resource" },
  6: { name: "subresource" },
  7: { name: "name" },
};

const nonResourceAttributes: MessageSchema = { 1: { name: "path" }, 2: { name: "verb" } };

const reviewSchemas: Readonly<Record<string, MessageSchema>> = {
  SelfSubjectAccessReview: {
    2: {
      name: "spec",
      message: {
        1: { name: "resourceAttributes", message: resourceAttributes },
        2: { name: "nonResourceAttributes", message: nonResourceAttributes },
      },
    },
  },
  SelfSubjectRulesReview: { 2: { name: "spec", message: { 1: { name: "namespace" } } } },
  SelfSubjectReview: {},
};

/**
 * A message's fields by number: each is a string or a nested message. Unknown fields are skipped.
 */
interface MessageSchema {
  readonly [fieldNumber: number]: { readonly name: string; readonly message?: MessageSchema };
}

/** The bytes are not a protobuf message of this schema. */
export class ProtobufError extends Error {
  override readonly name = "ProtobufError";
}

const WIRE = { VARINT: 0, FIXED64: 1, BYTES: 2, FIXED32: 5 } as const;

/**
 * Decodes a protobuf message of strings and messages into a plain object; the last of repeated
 * fields counts. Depth is limited by the schema. Throws ProtobufError.
 */
function decodeMessage(bytes: Uint8Array, schema: MessageSchema): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[at];
      if (byte === undefined) break;
      at += 1;
      // Values above 2^53 are only inexact, and too large for the checks that follow.
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new ProtobufError("a number does not end");
  };
  const take = (length: number): Uint8Array => {
    if (length > bytes.byteLength - at) throw new ProtobufError("a field ends behind its message");
    at += length;
    return bytes.subarray(at - length, at);
  };
  while (at < bytes.byteLength) {
    const tag = varint();
    const [number, wireType] = [Math.floor(tag / 8), tag % 8];
    const field = Object.hasOwn(schema, number) ? schema[number] : undefined;
    if (wireType === WIRE.BYTES) {
      const value = take(varint());
      if (field?.message !== undefined) message[field.name] = decodeMessage(value, field.message);
      else if (field !== undefined) message[field.name] = textOf(value);
    } else if (field !== undefined) {
      throw new ProtobufError(`field ${field.name} has another type`);
    } else if (wireType === WIRE.VARINT) varint();
    else if (wireType === WIRE.FIXED64) take(8);
    else if (wireType === WIRE.FIXED32) take(4);
    else throw new ProtobufError("a field has an unknown type");
  }
  return message;
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ProtobufError("a text is no UTF-8");
  }
}

/**
 * Decodes a review from kubectl 1.32 or newer into the object of its JSON form. Throws
 * ProtobufError.
 */
export function decodeReview(bytes: Uint8Array): Record<string, unknown> {
  if (MAGIC.some((byte, index) => bytes[index] !== byte)) throw new ProtobufError("no Kubernetes object");
  const envelope = decodeMessage(bytes.subarray(MAGIC.length), { 1: { name: "type", message: typeMeta } });
  const { apiVersion, kind } = (envelope.type ?? {}) as { apiVersion?: string; kind?: string };
  const schema = kind !== undefined && Object.hasOwn(reviewSchemas, kind) ? reviewSchemas[kind] : undefined;
  if (schema === undefined) throw new ProtobufError("no review that is known");
  const whole = decodeMessage(bytes.subarray(MAGIC.length), { 2: { name: "raw", message: schema } });
  return { ...(whole.raw as object | undefined), apiVersion, kind };
}
