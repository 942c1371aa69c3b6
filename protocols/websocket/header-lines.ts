/**
 * Header lines as they were received, name and value in turn: `["Host", "a", "Connection", "Upgrade", ...]`, which is
 * `rawHeaders` of Node's requests and responses. It keeps repeated lines apart, which some rules of the handshake need.
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

/** The first line's value, "" when there is none: what Go's `Header.Get` answers, and so what its servers look at. */
export function firstHeaderValue(lines: HeaderLines, name: string): string {
  return headerValues(lines, name)[0] ?? "";
}

/** The elements of comma separated lists over all lines, in order and as written; empty ones are dropped (RFC 9110 5.6.1). */
export function tokenList(values: readonly string[]): string[] {
  return values.flatMap((value) => value.split(",").map(trimmed)).filter((token) => token !== "");
}

/** Is the token in the list? In any case: for `Connection` and `Upgrade`, not for subprotocols. */
export function hasToken(values: readonly string[], token: string): boolean {
  return tokenList(values).some((element) => element.toLowerCase() === token);
}

/** Only space and tab are white space in a header (RFC 9110 section 5.6.3); `trim` would also take U+00A0 and more. */
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
