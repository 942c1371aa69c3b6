const SEXTET = /^[A-Za-z0-9+/]$/;
const LINE_END = /^[\r\n]$/;

/** Go's base64.StdEncoding error for a text; undefined if it is valid. Line ends are skipped. */
export function goBase64Problem(text: string): string | undefined {
  const at = firstBadByte(Buffer.from(text, "utf8").toString("latin1"));
  return at === undefined ? undefined : `illegal base64 data at input byte ${at}`;
}

/**
 * The offset that Go reports: the byte before the expected one, or the end (encoding/base64,
 * decodeQuantum).
 */
function firstBadByte(bytes: string): number | undefined {
  let inQuantum = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes.charAt(at);
    if (LINE_END.test(byte)) continue;
    if (SEXTET.test(byte)) inQuantum = (inQuantum + 1) % 4;
    else return byte === "=" && inQuantum >= 2 ? badPadding(bytes, at + 1, inQuantum) : at;
  }
  return inQuantum === 0 ? undefined : bytes.length - inQuantum;
}

function badPadding(bytes: string, start: number, inQuantum: number): number | undefined {
  let at = afterLineEnds(bytes, start);
  if (inQuantum === 2) {
    if (at === bytes.length) return at;
    if (bytes.charAt(at) !== "=") return at - 1;
    at = afterLineEnds(bytes, at + 1);
  }
  return at < bytes.length ? at : undefined;
}

function afterLineEnds(bytes: string, start: number): number {
  let at = start;
  while (at < bytes.length && LINE_END.test(bytes.charAt(at))) at += 1;
  return at;
}
