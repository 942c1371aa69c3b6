// Network byte order. A DataView would cost an allocation per frame. Callers check the length
// first.

export function readUint16(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset] as number) << 8) | (bytes[offset + 1] as number);
}

export function readUint24(bytes: Uint8Array, offset: number): number {
  return (
    ((bytes[offset] as number) << 16) | ((bytes[offset + 1] as number) << 8) | (bytes[offset + 2] as number)
  );
}

/** Unsigned: 0 to 2^32 - 1, although JavaScript's shifts are signed. */
export function readUint32(bytes: Uint8Array, offset: number): number {
  return (((bytes[offset] as number) << 24) | readUint24(bytes, offset + 1)) >>> 0;
}

export function writeUint24(target: Uint8Array, offset: number, value: number): void {
  target[offset] = value >>> 16;
  target[offset + 1] = value >>> 8;
  target[offset + 2] = value;
}

export function writeUint32(target: Uint8Array, offset: number, value: number): void {
  target[offset] = value >>> 24;
  writeUint24(target, offset + 1, value);
}
