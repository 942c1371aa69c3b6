/** A `%` that escapes nothing, or a `;`, which Go has not taken for a separator since 1.17. */
const REFUSED_IN_PAIRS = /%(?![0-9a-f]{2})|;/i;

/** The URL of a request's target, without the pairs of its query that Go's `url.ParseQuery` drops: no reader of it finds them. */
export function requestUrlOf(target: string): URL {
  const at = target.indexOf("?");
  if (at === -1 || !REFUSED_IN_PAIRS.test(target.slice(at))) return new URL(`http://gateway${target}`);
  const pairs = target.slice(at + 1).split("&");
  const query = pairs.filter((pair) => !REFUSED_IN_PAIRS.test(pair)).join("&");
  return new URL(`http://gateway${target.slice(0, at)}?${query}`);
}
