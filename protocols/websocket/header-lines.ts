/**
 * Header lines as received, with name and value alternating like Node's `rawHeaders`: `["Host", "a", "Connection",
 * "Upgrade", ...]`. Repeated lines stay separate, because some handshake rules depend on them.
 */
export type HeaderLines = readonly string[];

/** The values of every line with this name (any case), in order, without surrounding white space. */
export function headerValues(lines: HeaderLines, name: string): string[] {
  const wanted = name.toLowerCase();
  const values: string[] = [];
  for (let at = 0; at + 1 < lines.length; at += 2) {
    if (lines[at]?.toLowerCase() === wanted) values.push(trimmed(lines[at + 1] ?? ""));
  }
  return values;
}

/**
 * The first line's value; "" if there is none. Go's `Header.Get` returns the same, so its servers see no more.
 */
export function firstHeaderValue(lines: HeaderLines, name: string): string {
  return headerValues(lines, name)[0] ?? "";
}

/**
 * The elements of comma-separated lists over all lines, in order and as written; empty ones are
 * dropped (RFC 9110 5.6.1).
 */
export function tokenList(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",").map(trimmed)).filter((token) => token !== "");
}

/** Whether the list contains the token, in any case: for `Connection` and `Upgrade`, not for subprotocols. */
export function hasToken(values: readonly string[], token: string): boolean {
  return tokenList(values).some((element) => element.toLowerCase() === token);
}

/**
 * Only space and tab are white space in a header (RFC 9110 section 5.6.3); `trim` would also remove U+00A0.
 */
function trimmed(value: string): string {
  let start = 0;
  let end = value.length;
  while (start < end && isWhitespace(value.charCodeAt(start))) start += 1;
  while (end > start && isWhitespace(value.charCodeAt(end - 1))) end -= 1;
  return value.slice(start, end);
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
