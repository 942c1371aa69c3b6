/** A `%` that escapes nothing, or a `;`, which Go has not accepted as a separator since 1.17. */
const REFUSED_IN_PAIRS = /%(?![0-9a-f]{2})|;/i;
/** A raw byte of a request line, as Node's one character; `URL` would read it as a Unicode character. */
const UNESCAPED_BYTE = /[\x80-\xff]/g;

/**
 * A request target's URL. Its query is read like Go's `url.ParseQuery`: bytes stay bytes, and pairs
 * that Go drops are removed.
 */
export function requestUrlOf(target: string): URL {
  const at = target.indexOf("?");
  if (at === -1) return new URL(`http://gateway${target}`);
  const query = target.slice(at + 1).replace(UNESCAPED_BYTE, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
  const kept = REFUSED_IN_PAIRS.test(query)
    ? query.split("&").filter((pair) => !REFUSED_IN_PAIRS.test(pair))
    : [query];
  return new URL(`http://gateway${target.slice(0, at)}?${kept.join("&")}`);
}

/**
 * The first parameter whose name or value is not UTF-8. `searchParams` would replace its bytes by
 * U+FFFD, which is another text.
 */
export function nonUtf8Parameter({ search }: URL): string | undefined {
  if (!/%[89a-f]/i.test(search)) return undefined;
  for (const pair of search.slice(1).split("&")) {
    try {
      decodeURIComponent(pair);
    } catch {
      return new URLSearchParams(pair).keys().next().value;
    }
  }
  return undefined;
}
