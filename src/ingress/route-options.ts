import { BACKEND_CA_SECRET_ANNOTATION, type Ingress } from "../api/networking-objects.ts";
import { subdomainProblems } from "../api/validation/name-rules.ts";
import { AFFINITY_ANNOTATIONS, type Affinity, affinityOf } from "./affinity.ts";
import { NGINX_PATH_ANNOTATIONS, type Rewriting, rewritingOf } from "./path-rewrite.ts";

/** Route options from an Ingress's annotations. */
export interface RouteOptions {
  /** From sending the request to receiving the response's head, in milliseconds. */
  readonly responseTimeoutMs: number;
  /** How long a client may pause while it sends a declared body, in milliseconds. */
  readonly bodyTimeoutMs: number;
  /**
   * How long a tunnel (an upgraded connection) may be silent before it is ended, in milliseconds; 0
   * means forever.
   */
  readonly tunnelIdleTimeoutMs: number;
  /** Redirects plain HTTP to https with 308. */
  readonly redirectsToTls: boolean;
  /** Rewrites paths for backends; absent means unchanged. */
  readonly rewriting?: Rewriting | undefined;
  /** Chooses the endpoint of a client's requests; absent means round robin. */
  readonly affinity?: Affinity | undefined;
  /** Verifies TLS backends; absent means no annotation is set. */
  readonly backendTrust?: BackendTrust | undefined;
}

/** Annotations about backend certificates. */
export interface BackendTrust {
  /**
   * A Secret in the Ingress's namespace whose `ca.crt` signed them; absent means that they are not
   * verified.
   */
  readonly caSecret: string | undefined;
  /** The name in the certificate, sent as SNI; absent means SERVICE.NAMESPACE.svc. */
  readonly serverName: string | undefined;
}

const RESPONSE_TIMEOUT_ANNOTATION = "sluice.dev/response-timeout-seconds";
const BODY_TIMEOUT_ANNOTATION = "sluice.dev/body-timeout-seconds";
const TUNNEL_IDLE_TIMEOUT_ANNOTATION = "sluice.dev/tunnel-idle-timeout-seconds";
const TLS_REDIRECT_ANNOTATION = "sluice.dev/tls-redirect";
const BACKEND_SERVER_NAME_ANNOTATION = "sluice.dev/backend-server-name";

const DEFAULT_RESPONSE_TIMEOUT_MS = 60_000;
/**
 * Silence within a request's body of declared length at the ingress listener, if no annotation sets
 * another limit. Past it: 408.
 */
const DEFAULT_BODY_TIMEOUT_MS = 60_000;
/**
 * The shortest accepted value, because people leave shells open over lunch; nginx's 60 s would cut
 * them.
 */
const MIN_TUNNEL_IDLE_TIMEOUT_MS = 3_600_000;
/**
 * Silence of an upgraded connection through the ingress listener, unless an annotation sets 1 h or
 * more. Past it the connection is ended.
 */
export const DEFAULT_TUNNEL_IDLE_TIMEOUT_MS = 4 * MIN_TUNNEL_IDLE_TIMEOUT_MS;
const MAX_SECONDS = 7 * 24 * 3600;

/** Other controllers' annotations that have the same effect here. */
export const SERVED_FOREIGN_ANNOTATIONS: ReadonlySet<string> = new Set([
  ...NGINX_PATH_ANNOTATIONS,
  ...AFFINITY_ANNOTATIONS,
]);

interface ReadOptions {
  readonly options: RouteOptions;
  /** Problems to report as Events; the default applies instead. */
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

/**
 * A malformed CA name counts as a missing CA: its backends are refused, and never reached
 * unverified.
 */
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
