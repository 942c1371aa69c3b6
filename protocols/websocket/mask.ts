const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/**
 * XORs `bytes` in place with the masking key (RFC 6455 section 5.3; the key as the big-endian number of its four
 * bytes). `phase` is how many bytes of the payload came before, modulo 4; returns the next phase.
 *
 * Works in 32-bit words where the memory is aligned: bytewise, masking would cost more than all else in an upload.
 */
export function applyMask(bytes: Uint8Array, maskKey: number, phase: number): number {
  const length = bytes.byteLength;
  let index = 0;
  const misalignedBytes = Math.min((4 - (bytes.byteOffset & 3)) & 3, length);
  for (; index < misalignedBytes; index++) {
    bytes[index] = (bytes[index] as number) ^ maskByte(maskKey, phase + index);
  }
  const wordCount = (length - index) >>> 2;
  if (wordCount > 0) {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset + index, wordCount);
    const wordMask = wordMaskAt(maskKey, phase + index);
    for (let word = 0; word < wordCount; word++) words[word] = (words[word] as number) ^ wordMask;
    index += wordCount * 4;
  }
  for (; index < length; index++) {
    bytes[index] = (bytes[index] as number) ^ maskByte(maskKey, phase + index);
  }
  return (phase + length) & 3;
}

function maskByte(maskKey: number, position: number): number {
  return (maskKey >>> (24 - 8 * (position & 3))) & 0xff;
}

/** The key rotated to this position, in the byte order of the machine's words. */
function wordMaskAt(maskKey: number, position: number): number {
  const byte = (offset: number): number => maskByte(maskKey, position + offset);
  return isLittleEndian
    ? byte(0) | (byte(1) << 8) | (byte(2) << 16) | (byte(3) << 24)
    : (byte(0) << 24) | (byte(1) << 16) | (byte(2) << 8) | byte(3);
}
