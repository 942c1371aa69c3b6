// src/admin: health, metrics and debug pages, on a listener of their own

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { isIP } from "node:net";
import { createHttp1Server, type Http1Bounds } from "@sluice/client/internal/http/downstream/http1-server";
import type { Logger } from "../observability/logger.ts";
import { OPEN_METRICS_TYPE, TEXT_METRICS_TYPE } from "../observability/open-metrics.ts";
import { boundAdminConnections } from "./admin-connections.ts";
import { answerHealth, answerSingleCheck, type HealthAnswer, type HealthChecks } from "./health.ts";
import { INDEX_PAGE, INDEX_PAGE_POLICY } from "./index-page.ts";

/**
 * One running session, as `/debug/sessions` and the page show it: without its command line, payload
 * or headers, except User-Agent.
 */
export interface AdminSession {
  readonly id: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly pod: string;
  readonly node: string;
  readonly user: string;
  readonly requestedBy?: string;
  /** Absent for sessions without a container, and from replicas of an older release. */
  readonly container?: string;
  readonly ephemeral?: true;
  readonly tty?: boolean;
  readonly stdin?: boolean;
  /** The users that have joined the session; absent if there are none. */
  readonly joiners?: readonly string[];
  readonly client?: { readonly address: string; readonly agent: string };
  readonly protocol?: string;
  readonly plan: { readonly kind: string; readonly reason: string };
  readonly startedAt: Date;
  /** The worker process that carries the session, if there are several. */
  readonly worker?: number;
  /** `host:port` of the replica that carries the session; absent for the replica that answers. */
  readonly replica?: string;
  /** Payload bytes towards the client, and towards the node. */
  readonly downstreamBytes: number;
  readonly upstreamBytes: number;
}

/** Sessions of several processes. `/sessions` shows those of all replicas in this form. */
export interface SessionLists {
  readonly sessions: readonly AdminSession[];
  /** The processes whose sessions are missing, and why. */
  readonly partial: readonly MissingSessions[];
}

/** A process that did not answer, or a whole replica. */
export interface MissingSessions {
  /** `host:port`; absent for the replica that answers. */
  readonly replica?: string;
  /** Absent if the whole replica is missing. */
  readonly worker?: number;
  readonly problem: string;
}

/** Processes that a Warning names. Past it the rest are counted. */
const MAX_NAMED_MISSING = 16;

/** The Warning header of a list; undefined if it is complete. */
export function partialWarningOf(partial: SessionLists["partial"]): string | undefined {
  if (partial.length === 0) return undefined;
  const silent = partial.slice(0, MAX_NAMED_MISSING).map(({ replica, worker }) => {
    const names = [worker === undefined ? "" : `worker ${worker}`, replica ? `replica ${replica}` : ""];
    return names.filter((name) => name !== "").join(" of ");
  });
  if (partial.length > silent.length) silent.push(`and ${partial.length - silent.length} more`);
  return `299 - ${JSON.stringify(`the list may be incomplete: no answer from ${silent.join(", ")}`)}`;
}

/** One node of `/debug/nodes`, with the fields that the page shows. */
interface AdminNode {
  readonly name: string;
  readonly address?: string;
  readonly capability: {
    readonly declaresWebSocket: boolean;
    readonly mode: string;
    readonly avoidedPaths: readonly string[];
  };
  readonly learned?: { readonly circuit: { readonly state: string; readonly reason: string } };
}

interface ExposedMetrics {
  /** In Prometheus' text format. */
  expose(): Promise<string>;
  exposeOpenMetrics(): Promise<string>;
}

export interface AdminServerOptions {
  /**
   * Liveness checks, which fail only if a restart would help. Absent: any answer proves liveness.
   */
  readonly livenessChecks?: HealthChecks;
  /** Checks that fail while new sessions should go elsewhere: at start, and while draining. */
  readonly readinessChecks: HealthChecks;
  readonly metrics: ExposedMetrics;
  readonly listSessions: () => SessionLists | Promise<SessionLists>;
  /** The sessions of all replicas; absent if there are no others. */
  readonly listAllSessions?: () => Promise<SessionLists>;
  /** All nodes, or the node with that name. Absent if there are no nodes, as in `sluice agent`. */
  readonly listNodes?: (name?: string) => readonly AdminNode[] | Promise<readonly AdminNode[]>;
  /** What `/debug/probes` shows; absent: 404. */
  readonly listProbes?: () => readonly object[] | Promise<readonly object[]>;
  /** Answers the paths that this listener does not serve; absent: 404. */
  readonly others?: (request: IncomingMessage, response: ServerResponse) => void;
  /** Accepted Host names, besides those that no stranger can register. */
  readonly allowedHosts?: readonly string[] | undefined;
  readonly limits: { readonly maxAdminConnections: number };
  readonly logger: Logger;
}

/**
 * How long a client of the admin listener may take none of the bytes that wait for it. Past it its
 * connection is closed.
 */
const ADMIN_TAKING_MS = 10_000;

/** A probe or a scraper sends a few hundred bytes. */
const BOUNDS: Http1Bounds = {
  maxHeaderBytes: 8 * 1024,
  headMs: 10_000,
  requestMs: 10_000,
  keepAliveMs: 5_000,
  takingMs: ADMIN_TAKING_MS,
};

const ALIVE: HealthChecks = { ping: () => undefined };

/**
 * The admin listener: /livez, /readyz, /metrics, /sessions, /debug/sessions, /debug/nodes,
 * /debug/probes and a page at /. Read-only and without authentication, so only operators may reach
 * it.
 */
export function createAdminServer(options: AdminServerOptions): Server {
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    answer(request, response, options).catch((error: unknown) => {
      options.logger.error({ error, path: request.url }, "an admin request failed");
      sendText(response, 500, "internal server error\n");
    });
  };
  const server = createHttp1Server(BOUNDS, { onRequest: serve });
  boundAdminConnections(server, options.limits.maxAdminConnections);
  return server;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  options: AdminServerOptions,
): Promise<void> {
  // The request's body is not read, so the connection ends with the answer.
  if (request.headers["content-length"] !== undefined || request.headers["transfer-encoding"] !== undefined) {
    response.setHeader("Connection", "close");
  }
  if (!isAllowedHost(request.headers.host, options.allowedHosts)) {
    sendText(response, 403, "the Host of the request is not among listeners.admin.allowedHosts\n");
    return;
  }
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("Allow", "GET, HEAD");
    sendText(response, 405, "method not allowed\n");
    return;
  }
  const [path = "", query = ""] = (request.url ?? "").split("?", 2);
  const [, endpoint, checkName] = /^\/(livez|readyz)(?:\/([^/]+))?$/.exec(path) ?? [];
  if (endpoint !== undefined) {
    answerChecks(response, endpoint, checkName, new URLSearchParams(query), options);
    return;
  }
  switch (path) {
    case "/":
      response.setHeader("Content-Security-Policy", INDEX_PAGE_POLICY);
      send(response, 200, "text/html; charset=utf-8", INDEX_PAGE);
      break;
    case "/metrics":
      response.setHeader("Vary", "Accept");
      if (takesOpenMetrics(request)) {
        send(response, 200, OPEN_METRICS_TYPE, await options.metrics.exposeOpenMetrics());
      } else send(response, 200, TEXT_METRICS_TYPE, await options.metrics.expose());
      break;
    case "/debug/sessions": {
      const { sessions, partial } = await options.listSessions();
      const warning = partialWarningOf(partial);
      if (warning !== undefined) response.setHeader("Warning", warning);
      send(response, 200, "application/json", `${JSON.stringify(sessions)}\n`);
      break;
    }
    case "/sessions": {
      const { listSessions, listAllSessions } = options;
      const lists = await (listAllSessions ?? listSessions)();
      send(response, 200, "application/json", `${JSON.stringify(lists)}\n`);
      break;
    }
    case "/debug/nodes": {
      const { listNodes = () => [] } = options;
      const nodes = await listNodes(new URLSearchParams(query).get("name") ?? undefined);
      send(response, 200, "application/json", `${JSON.stringify(nodes)}\n`);
      break;
    }
    case "/debug/probes":
      if (options.listProbes === undefined) return answerOther(request, response, options);
      send(response, 200, "application/json", `${JSON.stringify(await options.listProbes())}\n`);
      break;
    default:
      answerOther(request, response, options);
  }
}

/** Prometheus lists OpenMetrics first if it accepts it, so the only weight that matters is 0. */
function takesOpenMetrics({ headers }: IncomingMessage): boolean {
  return (headers.accept ?? "")
    .split(",")
    .some((range) => /^\s*application\/openmetrics-text\b/.test(range) && !/;\s*q=0(\.0*)?\s*$/.test(range));
}

function answerOther(
  request: IncomingMessage,
  response: ServerResponse,
  { others }: AdminServerOptions,
): void {
  if (others === undefined) sendText(response, 404, "404 page not found\n");
  else others(request, response);
}

function answerChecks(
  response: ServerResponse,
  endpoint: string,
  checkName: string | undefined,
  query: URLSearchParams,
  { livenessChecks = ALIVE, readinessChecks, logger }: AdminServerOptions,
): void {
  const checks = endpoint === "livez" ? livenessChecks : readinessChecks;
  let health: HealthAnswer;
  if (checkName === undefined) {
    health = answerHealth(endpoint, checks, {
      isVerbose: query.has("verbose"),
      excluded: query.getAll("exclude"),
    });
  } else {
    const check = Object.hasOwn(checks, checkName) ? checks[checkName] : undefined;
    if (check === undefined) {
      sendText(response, 404, "404 page not found\n");
      return;
    }
    health = answerSingleCheck(checkName, check);
  }
  if (health.failures.length > 0) {
    // Probes repeat every few seconds and fail throughout a drain, so this is not logged at info.
    logger.debug({ endpoint, failures: health.failures }, "a health check failed");
  }
  sendText(response, health.status, health.body);
}

function sendText(response: ServerResponse, status: number, body: string): void {
  send(response, status, "text/plain; charset=utf-8", body);
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, {
    "Content-Type": contentType,
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  response.end(body);
}

/** Names that no stranger can register: single labels, .localhost, and the cluster's Services. */
const LOCAL_NAME = /^[^.]+$|\.localhost$|\.svc$|\.svc\.cluster\.local$/;

/**
 * Whether Host names this listener: a foreign site's name may resolve to this address (DNS
 * rebinding). Browsers always send Host, so a request without one is allowed.
 */
function isAllowedHost(host: string | undefined, allowed: readonly string[] = []): boolean {
  if (host === undefined) return true;
  const name = host.replace(/:\d*$/, "").replace(/\.$/, "").toLowerCase();
  const isAddress = isIP(name.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || LOCAL_NAME.test(name) || allowed.some((each) => each.toLowerCase() === name);
}
