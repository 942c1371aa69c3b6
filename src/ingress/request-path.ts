/** A request's path for routing, and its target for the backend. */
interface RequestPath {
  /** Normalized (RFC 3986 section 6.2.2), without dot segments and query. */
  readonly path: string;
  /**
   * Path and query for the backend: the original bytes, or the normalized ones if there were dot
   * segments.
   */
  readonly target: string;
}

const UNRESERVED = /^%(?:2[DE]|3[0-9]|4[1-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])$/;
// Printable, but forbidden in a path (RFC 3986 section 3.3); some clients send them unescaped.
const EXCLUDED = /["<>\\^`{|}]/;
const ESCAPE_OR_EXCLUDED = /%[0-9A-Fa-f]{2}|["<>\\^`{|}]/g;
/** Also escapes `?` and `#`, which would end the path. */
const NOT_IN_PATH = /%(?![0-9A-Fa-f]{2})|[^\x21\x24-\x7e]|[<>?\\^`{|}]/gu;
// A request target has no controls, spaces, `#` or non-ASCII characters (RFC 9112 section 3.2).
const TARGET = /^[\x21\x22\x24-\x7e]*$/;

/**
 * Reads an origin-form target's path; undefined for a bad request. The backend gets the path that
 * was matched: `%2F` and `%5C` stay encoded, encoded dots count as dots, dot segments are removed.
 */
export function requestPathOf(target: string): RequestPath | undefined {
  const queryAt = target.indexOf("?");
  const raw = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? "" : target.slice(queryAt);
  if (!TARGET.test(target)) return undefined;
  if (raw === "") return { path: "/", target: `/${query}` };
  if (!raw.startsWith("/") || hasBrokenEscape(raw)) return undefined;
  const path = raw.includes("%") || EXCLUDED.test(raw) ? normalized(raw) : raw;
  if (!path.includes("/.")) return { path, target };
  const resolved = withoutDotSegments(path);
  if (resolved === undefined) return undefined;
  return { path: resolved, target: resolved === path ? target : `${resolved}${query}` };
}

/**
 * A rule's path in the form of `RequestPath.path`, so that it matches a request for the same text.
 */
export function rulePathOf(path: string): string {
  const escaped = path.replace(NOT_IN_PATH, percentEncoded);
  return escaped.includes("%") ? normalized(escaped) : escaped;
}

/** Removes the first `count` segments of the target's path; always leaves a path. */
export function withoutSegments(target: string, count: number): string {
  const left = remainderOf(target, count);
  return left.startsWith("/") ? left : `/${left}`;
}

/**
 * The rest after the first `count` segments: from the next slash on, or only the query. Counts
 * segments, because a client may spell them differently than the rule.
 */
export function remainderOf(target: string, count: number): string {
  const queryAt = target.indexOf("?");
  const pathEnd = queryAt === -1 ? target.length : queryAt;
  let start = 0;
  for (let left = count; left > 0 && start < pathEnd; left--) {
    const slash = target.indexOf("/", start + 1);
    start = slash === -1 || slash > pathEnd ? pathEnd : slash;
  }
  return target.slice(start);
}

/**
 * Decodes unreserved characters, puts other escapes in capitals, and escapes forbidden characters.
 */
function normalized(path: string): string {
  return path.replace(ESCAPE_OR_EXCLUDED, (found) => {
    if (found.length === 1) return encodeURIComponent(found);
    const triplet = found.toUpperCase();
    return UNRESERVED.test(triplet) ? decodeURIComponent(triplet) : triplet;
  });
}

/** A lone surrogate becomes U+FFFD in UTF-8. */
function percentEncoded(character: string): string {
  return encodeURIComponent(/\p{Surrogate}/u.test(character) ? "\ufffd" : character);
}

function hasBrokenEscape(path: string): boolean {
  return path.includes("%") && /%(?![0-9A-Fa-f]{2})/.test(path);
}

/** RFC 3986 section 5.2.4, but undefined if `..` would climb above the root. */
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
