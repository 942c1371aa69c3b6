import { BACKEND_CA_SECRET_ANNOTATION, type Ingress } from "../api/networking-objects.ts";
import { subdomainProblems } from "../api/validation/name-rules.ts";
import { AFFINITY_ANNOTATIONS, type Affinity, affinityOf } from "./affinity.ts";
import {
  NGINX_FORWARDED_PREFIX_ANNOTATION,
  NGINX_REGEX_ANNOTATION,
  NGINX_REWRITE_ANNOTATION,
  type Rewriting,
  rewritingOf,
} from "./path-rewrite.ts";

/** What annotations of an Ingress say about its routes. */
export interface RouteOptions {
  /** From the request being sent to the response's head, in milliseconds. */
  readonly responseTimeoutMs: number;
  /** So long may a client send nothing of a body whose length it has declared, in milliseconds. */
  readonly bodyTimeoutMs: number;
  /** A tunnel (an upgraded connection) that is silent for this long is ended, in milliseconds; 0: never. */
  readonly tunnelIdleTimeoutMs: number;
  /** Answer plain HTTP by 308 to https. */
  readonly redirectsToTls: boolean;
  /** How paths of its rules reach backends; absent: as they came. */
  readonly rewriting?: Rewriting | undefined;
  /** Which endpoint a client's requests go to; absent: each to the next. */
  readonly affinity?: Affinity | undefined;
  /** How backends that speak TLS are trusted; absent: no annotation says. */
  readonly backendTrust?: BackendTrust | undefined;
}

/** What annotations say about the certificates of backends. */
export interface BackendTrust {
  /** A Secret of the Ingress' namespace whose `ca.crt` has signed them; absent: they are not verified. */
  readonly caSecret: string | undefined;
  /** The name that they carry and that is sent as SNI; absent: SERVICE.NAMESPACE.svc. */
  readonly serverName: string | undefined;
}

export const RESPONSE_TIMEOUT_ANNOTATION = "sluice.dev/response-timeout-seconds";
export const BODY_TIMEOUT_ANNOTATION = "sluice.dev/body-timeout-seconds";
export const TUNNEL_IDLE_TIMEOUT_ANNOTATION = "sluice.dev/tunnel-idle-timeout-seconds";
export const TLS_REDIRECT_ANNOTATION = "sluice.dev/tls-redirect";
export const BACKEND_SERVER_NAME_ANNOTATION = "sluice.dev/backend-server-name";

export const DEFAULT_RESPONSE_TIMEOUT_MS = 60_000;
export const DEFAULT_BODY_TIMEOUT_MS = 60_000;
/** Shells are left open over lunch: nothing shorter is accepted, whatever an annotation says (nginx's 60 s cut them). */
export const MIN_TUNNEL_IDLE_TIMEOUT_MS = 3_600_000;
export const DEFAULT_TUNNEL_IDLE_TIMEOUT_MS = 4 * MIN_TUNNEL_IDLE_TIMEOUT_MS;
const MAX_SECONDS = 7 * 24 * 3600;

/** Of other controllers, and served here as there. */
export const SERVED_FOREIGN_ANNOTATIONS: ReadonlySet<string> = new Set([
  NGINX_REWRITE_ANNOTATION,
  NGINX_REGEX_ANNOTATION,
  NGINX_FORWARDED_PREFIX_ANNOTATION,
  ...AFFINITY_ANNOTATIONS,
]);

export interface ReadOptions {
  readonly options: RouteOptions;
  /** What was wrong, for an Event; the default is used in its place. */
  readonly problems: readonly string[];
}

export function routeOptionsOf({ metadata }: Pick<Ingress, "metadata">): ReadOptions {
  const problems: string[] = [];
  const annotations = metadata.annotations ?? {};
  const milliseconds = (name: string, fallbackMs: number, minMs: number): number => {
    const text = annotations[name];
    if (text === undefined) return fallbackMs;
    const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
    if (seconds * 1000 >= minMs && seconds <= MAX_SECONDS) return seconds * 1000;
    problems.push(
      `annotation ${name} must be a number of seconds from ${minMs / 1000} to ${MAX_SECONDS}, got ${JSON.stringify(text.slice(0, 40))}`,
    );
    return fallbackMs;
  };
  const redirect = annotations[TLS_REDIRECT_ANNOTATION];
  if (redirect !== undefined && redirect !== "true" && redirect !== "false") {
    problems.push(`annotation ${TLS_REDIRECT_ANNOTATION} must be "true" or "false"`);
  }
  const options = {
    responseTimeoutMs: milliseconds(RESPONSE_TIMEOUT_ANNOTATION, DEFAULT_RESPONSE_TIMEOUT_MS, 1000),
    bodyTimeoutMs: milliseconds(BODY_TIMEOUT_ANNOTATION, DEFAULT_BODY_TIMEOUT_MS, 1000),
    tunnelIdleTimeoutMs: milliseconds(
      TUNNEL_IDLE_TIMEOUT_ANNOTATION,
      DEFAULT_TUNNEL_IDLE_TIMEOUT_MS,
      MIN_TUNNEL_IDLE_TIMEOUT_MS,
    ),
    redirectsToTls: redirect === "true",
    rewriting: rewritingOf(annotations, problems),
    affinity: affinityOf(annotations, problems),
    backendTrust: backendTrustOf(annotations, problems),
  };
  return { options, problems };
}

/** A CA that is named badly is one that is not there: its backends are refused, never spoken to unverified. */
function backendTrustOf(
  annotations: Readonly<Record<string, string>>,
  problems: string[],
): BackendTrust | undefined {
  const caSecret = annotations[BACKEND_CA_SECRET_ANNOTATION];
  let serverName = annotations[BACKEND_SERVER_NAME_ANNOTATION];
  if (serverName !== undefined && subdomainProblems(serverName).length > 0) {
    problems.push(
      `annotation ${BACKEND_SERVER_NAME_ANNOTATION} must be a DNS name, got ${JSON.stringify(serverName.slice(0, 40))}`,
    );
    serverName = undefined;
  }
  return caSecret === undefined && serverName === undefined ? undefined : { caSecret, serverName };
}
