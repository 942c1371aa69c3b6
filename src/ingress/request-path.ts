/** A request's path as routes see it, and the target as the backend is sent it. */
export interface RequestPath {
  /** Decoded where decoding changes nothing (unreserved characters), dot segments resolved, without query. */
  readonly path: string;
  /** Path and query for the backend: the original bytes, unless there were dot segments: then what was matched. */
  readonly target: string;
}

const UNRESERVED = /%(?:2[DdEe]|3[0-9]|4[1-9A-Fa-f]|5[0-9AaFf]|6[1-9A-Fa-f]|7[0-9AaEe])/g;
// Controls, space, `#` and anything beyond ASCII have no place in a request target (RFC 9112 section 3.2).
const TARGET = /^[\x21\x22\x24-\x7e]*$/;

/**
 * Reads the path of an origin-form target; undefined for a bad request. Matched and forwarded path are the same: `%2F` and `%5C` are
 * never decoded, encoded dots are dots, dot segments are removed.
 */
export function requestPathOf(target: string): RequestPath | undefined {
  const queryAt = target.indexOf("?");
  const raw = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? "" : target.slice(queryAt);
  if (!TARGET.test(target)) return undefined;
  if (raw === "") return { path: "/", target: `/${query}` };
  if (!raw.startsWith("/") || hasBrokenEscape(raw)) return undefined;
  const decoded = raw.includes("%") ? raw.replace(UNRESERVED, (encoded) => decodeURIComponent(encoded)) : raw;
  if (!decoded.includes("/.")) return { path: decoded, target };
  const resolved = withoutDotSegments(decoded);
  if (resolved === undefined) return undefined;
  return { path: resolved, target: resolved === decoded ? target : `${resolved}${query}` };
}

function hasBrokenEscape(path: string): boolean {
  return path.includes("%") && /%(?![0-9A-Fa-f]{2})/.test(path);
}

/** RFC 3986 section 5.2.4, but undefined where `..` would climb above the root. */
function withoutDotSegments(path: string): string | undefined {
  const segments = path.slice(1).split("/");
  const kept: string[] = [];
  for (const [index, segment] of segments.entries()) {
    if (segment === "..") {
      if (kept.pop() === undefined) return undefined;
    } else if (segment !== ".") {
      kept.push(segment);
    }
    const isLast = index === segments.length - 1;
    if (isLast && (segment === "." || segment === "..")) kept.push("");
  }
  return `/${kept.join("/")}`;
}
