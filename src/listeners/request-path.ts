import { WIRE_ERRORS } from "../api/wire-errors/wire-errors.ts";

/** The rest is a path of the pod's or Service's own server, which may be spelt in any way. */
const OWN_SERVER = /^\/api\/v1\/namespaces\/[^/]+\/(?:pods|services)\/[^/]+\/proxy(?=\/)/;
/** RFC 3986 section 2.3: escaped letters, digits, `-`, `.`, `_` and `~`, which mean the same unescaped. */
const ESCAPED_UNRESERVED = /%(?:2[de]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9ae])/i;
const ESCAPED_SEPARATOR = /%(?:2f|5c)/i;

/**
 * Throws StatusError 400 for a path that two readers could understand differently. kube-apiserver
 * decodes once and keeps dot segments; URL parsers remove them, and read `\` as `/` and `#` as an end.
 */
export function requireOneSpelling(target: string): void {
  // Absolute-form targets are for forward proxies, and `//host/path` could be read as one.
  if (!target.startsWith("/") || target.startsWith("//")) {
    throw WIRE_ERRORS["target-not-path"].streaming();
  }
  const [path = ""] = target.split("?", 1);
  // Most paths match this.
  if (/^(?:\/[\w~-][\w.:@~-]*)+\/?$/.test(path) && !target.includes("#")) return;
  if (/[^\x21-\x7e]|\\/.test(path) || target.includes("#")) {
    throw ambiguous("it has a character that must be percent-encoded");
  }
  if (/%(?![0-9a-f]{2})/i.test(path)) throw ambiguous("it has a percent sign that escapes nothing");
  const head = OWN_SERVER.exec(path)?.[0] ?? path;
  if (ESCAPED_UNRESERVED.test(head))
    throw ambiguous("it has an escape of a letter, digit, '-', '.', '_' or '~'");
  if (ESCAPED_SEPARATOR.test(head)) throw ambiguous("it has an escaped slash");
  if (head.includes("//")) throw ambiguous("it has an empty segment");
  requireUtf8(head);
  // One character for each escape: it does not matter here whether the bytes are UTF-8.
  const decoded = path.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  if (decoded.split(/[/\\]/).some((segment) => segment === "." || segment === "..")) {
    throw ambiguous("it has a dot segment");
  }
}

function requireUtf8(path: string): void {
  try {
    decodeURIComponent(path);
  } catch {
    throw ambiguous("it has escapes that are no UTF-8");
  }
}

function ambiguous(why: string) {
  return WIRE_ERRORS["path-ambiguous"].streaming({ why });
}
