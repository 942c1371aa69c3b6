import { subdomainProblems } from "../api/validation/name-rules.ts";
import { requestPathOf, rulePathOf } from "./ingress-request.ts";

const PREFIX = "nginx.ingress.kubernetes.io/";
export const AFFINITY_ANNOTATIONS = [
  "affinity",
  "affinity-mode",
  "session-cookie-name",
  "session-cookie-path",
  "session-cookie-domain",
  "session-cookie-secure",
  "session-cookie-samesite",
  "session-cookie-max-age",
  "session-cookie-expires",
  "session-cookie-change-on-failure",
].map((name) => PREFIX + name);

/**
 * Sends a client's requests to one endpoint, by a cookie. Names and defaults come from
 * ingress-nginx.
 */
export interface Affinity {
  /**
   * `balanced`: new endpoints get their share of the sessions. `persistent`: a session keeps its
   * endpoint while that exists.
   */
  readonly mode: "balanced" | "persistent";
  readonly name: string;
  /** Absent means the rule's path (`cookiePathOf`). */
  readonly path: string | undefined;
  /** Attributes that are the same for all clients. */
  readonly attributes: string;
  readonly expiresSeconds: number | undefined;
  /** Absent: only for clients over HTTPS. */
  readonly isSecure: boolean | undefined;
  /**
   * If a session's endpoint cannot be reached, the session moves to the endpoint that answered
   * instead.
   */
  readonly changesOnFailure: boolean;
}

const DEFAULT_NAME = "INGRESSCOOKIE";
const NAME = /^[\w-]{1,64}$/;
const SECONDS = /^-?\d{1,10}$/;
const PATH = /^\/[\w~.!&'()*+,=:@%/-]*$/;

/**
 * Reports a malformed annotation as a problem and applies its default. Clients stick to an endpoint
 * only with `affinity: cookie`.
 */
export function affinityOf(
  annotations: Readonly<Record<string, string>>,
  problems: string[],
): Affinity | undefined {
  const kind = annotations[`${PREFIX}affinity`];
  if (kind === undefined || kind === "") return undefined;
  const read = (name: string, isValid: (text: string) => boolean, expected: string): string | undefined => {
    const text = annotations[PREFIX + name];
    if (text === undefined || isValid(text)) return text;
    problems.push(
      `annotation ${PREFIX}${name} must be ${expected}, got ${JSON.stringify(text.slice(0, 60))}`,
    );
    return undefined;
  };
  const among = (name: string, ...values: readonly string[]): string | undefined =>
    read(name, (text) => values.includes(text), values.map((value) => `"${value}"`).join(" or "));
  if (among("affinity", "cookie") === undefined) return undefined;
  const isSeconds = (text: string): boolean => SECONDS.test(text);
  const maxAge = read("session-cookie-max-age", isSeconds, "a number of seconds");
  const expires = read("session-cookie-expires", isSeconds, "a number of seconds");
  const domain = read("session-cookie-domain", isDomain, "a DNS name");
  const sameSite = among("session-cookie-samesite", "None", "Lax", "Strict");
  const secure = among("session-cookie-secure", "true", "false");
  const attributes = [
    ...(domain === undefined ? [] : [`Domain=${domain}`]),
    ...(maxAge === undefined ? [] : [`Max-Age=${maxAge}`]),
    "HttpOnly",
    ...(sameSite === undefined ? [] : [`SameSite=${sameSite}`]),
  ];
  return {
    mode: among("affinity-mode", "balanced", "persistent") === "persistent" ? "persistent" : "balanced",
    name:
      read("session-cookie-name", (text) => NAME.test(text), "of letters, digits, - and _") ?? DEFAULT_NAME,
    path: read("session-cookie-path", isPath, "an absolute path"),
    attributes: attributes.join("; "),
    expiresSeconds: expires === undefined ? undefined : Number(expires),
    isSecure: secure === undefined ? undefined : secure === "true",
    changesOnFailure: among("session-cookie-change-on-failure", "true", "false") === "true",
  };
}

/** The Set-Cookie line for this value. */
export function cookieLine(
  { name, path, attributes, expiresSeconds, isSecure }: Affinity,
  value: string,
  { cookiePath, isHttps }: { readonly cookiePath: string; readonly isHttps: boolean },
): string {
  const parts = [`${name}=${value}`, `Path=${path ?? cookiePath}`];
  if (expiresSeconds !== undefined)
    parts.push(`Expires=${new Date(Date.now() + expiresSeconds * 1000).toUTCString()}`);
  if (isSecure ?? isHttps) parts.push("Secure");
  return `${parts.join("; ")}; ${attributes}`;
}

/**
 * A rule's path in a cookie, escaped in the way that browsers compare it. A semicolon would end the
 * attribute, so the path is shortened to the folder above it.
 */
export function cookiePathOf(rulePath: string): string {
  const path = rulePathOf(rulePath);
  const semicolon = path.indexOf(";");
  const whole = semicolon === -1 ? path : path.slice(0, path.lastIndexOf("/", semicolon) + 1);
  // The rule /folder/ matches /folder, too: a browser takes the path /folder for both.
  return (whole.endsWith("/") ? whole.slice(0, -1) : whole) || "/";
}

function isDomain(text: string): boolean {
  return subdomainProblems(text.replace(/^\./, "")).length === 0;
}

/** A semicolon would begin another attribute. */
function isPath(text: string): boolean {
  return PATH.test(text) && requestPathOf(text) !== undefined;
}
