/** grpc.health.v1.HealthCheckResponse.ServingStatus by number. */
const SERVING_STATUSES = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;

const SERVICE_FIELD = 0x0a; // field 1, length-delimited
const STATUS_FIELD = 1;
const MAX_VARINT_BYTES = 10;

/** grpc.health.v1.HealthCheckRequest{service} in its gRPC frame: compression flag 0, length, message. */
export function encodeCheckRequest(service: string): Buffer {
  const name = Buffer.from(service);
  const message =
    name.length === 0 ? name : Buffer.concat([Buffer.from([SERVICE_FIELD, ...varint(name.length)]), name]);
  const frame = Buffer.alloc(5 + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, 5);
  return frame;
}

/**
 * The status's name, or its number if the enumeration does not define it. Throws Error for bytes
 * that are not such a message.
 */
export function decodeCheckResponse(message: Buffer): string {
  let status = 0n;
  for (let at = 0; at < message.length; ) {
    const tag = readVarint(message, at);
    const field = Number(tag.value >> 3n);
    at = tag.end;
    switch (Number(tag.value & 7n)) {
      case 0: {
        const { value, end } = readVarint(message, at);
        if (field === STATUS_FIELD) status = value;
        at = end;
        break;
      }
      case 1:
        at += 8;
        break;
      case 2: {
        const { value, end } = readVarint(message, at);
        at = end + Number(value);
        break;
      }
      case 5:
        at += 4;
        break;
      default:
        throw new Error("proto: cannot parse invalid wire-format data");
    }
    if (at > message.length) throw new Error("proto: cannot parse invalid wire-format data");
  }
  const number = BigInt.asIntN(32, status);
  return SERVING_STATUSES[Number(number)] ?? String(number);
}

function readVarint(bytes: Buffer, start: number): { value: bigint; end: number } {
  let value = 0n;
  for (let at = start; at < bytes.length && at < start + MAX_VARINT_BYTES; at++) {
    const byte = bytes[at] as number;
    value |= BigInt(byte & 0x7f) << BigInt(7 * (at - start));
    if (byte < 0x80) return { value, end: at + 1 };
  }
  throw new Error("proto: cannot parse invalid wire-format data");
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value > 0x7f; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  return [...bytes, value];
}
