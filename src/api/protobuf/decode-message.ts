/**
 * A message's fields by number: each is a string or a nested message. Unknown fields are skipped.
 */
export interface MessageSchema {
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
export function decodeMessage(bytes: Uint8Array, schema: MessageSchema): Record<string, unknown> {
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
