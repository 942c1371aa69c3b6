/**
 * Header lines in their order, case and number on the wire. Everything upstream uses this form: a map
 * joins repeated lines and loses their case, which some peers and signatures depend on.
 */
export type HeaderLine = readonly [name: string, value: string];
export type HeaderList = readonly HeaderLine[];
/** Lines to be written: a list, or an edit (`HeaderEdit`), which is applied as they are written. */
export type HeaderLines = HeaderList | { forEachLine(visit: (name: string, value: string) => void): void };

// RFC 9110 section 5.6.2 (token) and 5.5 (field value: anything but controls; tab is allowed).
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is refused
const FORBIDDEN_IN_VALUE = /[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]/;

/** Decodes a head's bytes as Latin-1, one character for each byte. */
export function latin1Of(bytes: Buffer, start: number, end: number): string {
  return bytes.toString("latin1", start, end);
}

/** From Node's flat `rawHeaders` or `rawTrailers`: name, value, name, value. */
export function headerListOf(rawHeaders: readonly string[]): HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    lines.push([rawHeaders[index] as string, rawHeaders[index + 1] as string]);
  }
  return lines;
}

/** Node's flat form, with which `http.request` and `ServerResponse.writeHead` keep case and repetitions. */
export function flatHeaders(headers: HeaderLines): string[] {
  const flat: string[] = [];
  const add = (name: string, value: string): void => void flat.push(name, value);
  if ("forEachLine" in headers) headers.forEachLine(add);
  else for (const [name, value] of headers) add(name, value);
  return flat;
}

/** True if a line's name, in any case, is this one, given in lower case. */
export function isNamed(name: string, lowerName: string): boolean {
  return name.length === lowerName.length && name.toLowerCase() === lowerName;
}

/** The values of all lines with that name, in order. */
export function headerValues(headers: HeaderList, name: string): string[] {
  const wanted = name.toLowerCase();
  let values: string[] | undefined;
  for (const [lineName, value] of headers) {
    if (!isNamed(lineName, wanted)) continue;
    // Most names occur once, and an array that grows has room for 17.
    if (values === undefined) values = [value];
    else values.push(value);
  }
  return values ?? [];
}

/** The value of the first line with that name. */
export function headerValue(headers: HeaderList, name: string): string | undefined {
  const wanted = name.toLowerCase();
  for (const [lineName, value] of headers) if (isNamed(lineName, wanted)) return value;
  return undefined;
}

export function hasHeader(headers: HeaderList, name: string): boolean {
  return headerValue(headers, name) !== undefined;
}

/** If `names` is a Set, its names must be in lower case. */
export function withoutHeaders(
  headers: HeaderList,
  names: readonly string[] | ReadonlySet<string>,
): HeaderLine[] {
  const unwanted = Array.isArray(names)
    ? new Set(names.map((name) => name.toLowerCase()))
    : (names as ReadonlySet<string>);
  const kept: HeaderLine[] = [];
  for (const line of headers) if (!unwanted.has(line[0].toLowerCase())) kept.push(line);
  return kept;
}

/** Replaces all lines with that name by one, at the place of the first, or at the end. */
export function withHeader(headers: HeaderList, name: string, value: string): HeaderLine[] {
  const wanted = name.toLowerCase();
  const lines: HeaderLine[] = [];
  let isThere = false;
  for (const line of headers) {
    if (!isNamed(line[0], wanted)) lines.push(line);
    else if (!isThere) {
      lines.push([name, value]);
      isThere = true;
    }
  }
  if (!isThere) lines.push([name, value]);
  return lines;
}

/**
 * The elements of a comma list over any number of lines, trimmed, without empty ones (RFC 9110 section
 * 5.6.1).
 */
export function listElements(values: readonly string[]): string[] {
  const elements: string[] = [];
  for (const value of values) {
    for (const element of value.includes(",") ? value.split(",") : [value]) {
      const trimmed = trimWhitespace(element);
      if (trimmed !== "") elements.push(trimmed);
    }
  }
  return elements;
}

/**
 * Removes leading and trailing spaces and tabs. `trim()` would also remove 0xA0, the last byte of many
 * UTF-8 texts.
 */
export function trimWhitespace(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isWhitespace(text.charCodeAt(start))) start++;
  while (end > start && isWhitespace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

function isWhitespace(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** The lower-cased comma elements of all lines with that name. */
export function headerTokens(headers: HeaderList, name: string): string[] {
  return listElements(headerValues(headers, name)).map((token) => token.toLowerCase());
}

export function isHeaderName(name: string): boolean {
  return TOKEN.test(name);
}

/**
 * False for values with CR, LF or NUL, which would split a message, with other control characters, or
 * with characters above one byte.
 */
export function isHeaderValue(value: string): boolean {
  return !FORBIDDEN_IN_VALUE.test(value);
}
