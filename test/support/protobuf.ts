/** The part of the protobuf wire format that CRI messages need: varints, length-delimited fields, nested messages. */

/**
 * A field's value. `undefined`, `false` and `0` are protobuf's defaults and are left out; an array
 * is a repeated field.
 */
export type FieldValue = string | Uint8Array | number | boolean | undefined | readonly FieldValue[];

/** Encodes a message given as `{ fieldNumber: value }`; nested messages are encoded first. */
export function encodeMessage(fields: Readonly<Record<number, FieldValue>>): Buffer {
  return Buffer.concat(
    Object.entries(fields).flatMap(([number, value]) => encodeField(Number(number), value)),
  );
}

function encodeField(number: number, value: FieldValue): Buffer[] {
  if (Array.isArray(value)) return value.flatMap((element) => encodeField(number, element));
  if (value === undefined || value === false || value === 0) return [];
  if (typeof value === "number" || value === true)
    return [encodeVarint(number << 3), encodeVarint(Number(value))];
  const bytes = Buffer.from(value as string | Uint8Array);
  return [encodeVarint((number << 3) | WIRE_TYPE.LENGTH_DELIMITED), encodeVarint(bytes.length), bytes];
}

const WIRE_TYPE = { VARINT: 0, LENGTH_DELIMITED: 2 } as const;

function encodeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Buffer.from([...bytes, rest]);
}

/** A decoded message: every occurrence of every field, in order, as bytes or number. */
export class DecodedMessage {
  readonly #fields = new Map<number, (Buffer | number)[]>();

  constructor(bytes: Buffer) {
    const reader = new VarintReader(bytes);
    while (!reader.isAtEnd) {
      const tag = reader.read();
      const wireType = tag & 7;
      if (wireType !== WIRE_TYPE.VARINT && wireType !== WIRE_TYPE.LENGTH_DELIMITED) {
        throw new Error(`protobuf wire type ${wireType} is not expected in a CRI message`);
      }
      const value = wireType === WIRE_TYPE.VARINT ? reader.read() : reader.readBytes(reader.read());
      this.#fields.set(tag >> 3, [...(this.#fields.get(tag >> 3) ?? []), value]);
    }
  }

  text(number: number): string {
    return this.bytes(number).toString();
  }

  bytes(number: number): Buffer {
    const value = this.#fields.get(number)?.[0];
    return typeof value === "object" ? value : Buffer.alloc(0);
  }

  number(number: number): number {
    const value = this.#fields.get(number)?.[0];
    return typeof value === "number" ? value : 0;
  }

  messages(number: number): DecodedMessage[] {
    const values = this.#fields.get(number) ?? [];
    return values.flatMap((value) => (typeof value === "object" ? [new DecodedMessage(value)] : []));
  }
}

class VarintReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#offset >= this.#bytes.length;
  }

  /** Exact to 2^53; larger values (nanosecond times) lose their last bits, which no test reads. */
  read(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.#bytes[this.#offset++];
      if (byte === undefined) throw new Error("truncated protobuf varint");
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
    }
  }

  readBytes(length: number): Buffer {
    const bytes = this.#bytes.subarray(this.#offset, this.#offset + length);
    if (bytes.length < length) throw new Error("truncated protobuf field");
    this.#offset += length;
    return bytes;
  }
}
