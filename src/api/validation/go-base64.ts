const NEITHER_SEXTET_NOR_LINE_END = /[^A-Za-z0-9+/\r\n]/;
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
  const found = bytes.search(NEITHER_SEXTET_NOR_LINE_END);
  const at = found === -1 ? bytes.length : found;
  const inQuantum = bytes.slice(0, at).replace(/[\r\n]/g, "").length % 4;
  if (found === -1) return inQuantum === 0 ? undefined : bytes.length - inQuantum;
  return bytes.charAt(at) === "=" && inQuantum >= 2 ? badPadding(bytes, at + 1, inQuantum) : at;
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
