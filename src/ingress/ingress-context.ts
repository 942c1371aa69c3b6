import { type FileHandle, open } from "node:fs/promises";
import { type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import type { RequestTrace, Tracing } from "@sluice/client/internal/observability/trace";
import { EventQueue } from "../access/audit/event-queue.ts";
import type { Limits } from "../config/sections/limits.ts";
import type { SlowBodies } from "../http/slow-bodies.ts";
import type { ConnectionOrigin, EdgeRules } from "../listeners/edge-rules.ts";
import type { Listener } from "../listeners/listener.ts";
import type { PlainRequests } from "../listeners/plain-requests.ts";
import type { ProxyHeaderRefusal } from "../listeners/proxy-protocol.ts";
import type { FairQueue } from "../net/fair-queue.ts";
import type { IngressMetrics, RouteNames } from "../observability/ingress-metrics.ts";
import type { Logger } from "../observability/logger.ts";
import { quietJson } from "../observability/mask-controls.ts";
import type { ForwardingContext } from "../sessions/carry-forwarded.ts";
import type { EndpointUpstream } from "./endpoint-upstream.ts";
import type { Route } from "./route.ts";
import type { RouteProblems } from "./route-problems.ts";
import type { RouteTable } from "./route-table.ts";
import type { ServiceBalancer } from "./service-balancer.ts";

/** What all requests of the front door share. */
export interface IngressContext extends ForwardingContext {
  /** The current table; the next request may see another one. */
  readonly routes: { readonly table: RouteTable<Route> };
  readonly balancer: ServiceBalancer;
  /** Problems that only become visible in requests. */
  readonly problems: RouteProblems;
  /** Gateways that a `StreamingGateway` backend may name. */
  readonly streamingGateways: ReadonlyMap<string, StreamingGateway>;
  /** False if the gateway's health checks fail. */
  isGatewayHealthy(name: string): boolean;
  readonly edge: EdgeRules;
  /** Requests in progress, except those of a gateway's own API leg. */
  readonly requests: PlainRequests;
  /** Client addresses share the places for requests in progress. */
  readonly seats: FairQueue;
  /** Requests whose bodies do not arrive; they hold no seat. */
  readonly slowBodies: SlowBodies;
  readonly limits: Limits;
  readonly metrics: IngressMetrics;
  /** Undefined if no access log is configured. */
  readonly accessLog: AccessLog | undefined;
  /** Undefined if tracing is off. */
  readonly tracing?: Tracing | undefined;
  /** A connection was refused: its address has too many, or its PROXY protocol header is wrong. */
  onConnectionRefused(reason: "too-many-of-address" | ProxyHeaderRefusal): void;
  readonly logger: Logger;
}

/** Serves a path prefix's streaming requests: another API server, or this gateway's own API leg. */
export type StreamingGateway =
  | { readonly type: "upstream"; readonly upstream: EndpointUpstream }
  | LocalGateway;

export interface LocalGateway {
  readonly type: "local";
  /** Requests reach it with the targets that the listener received. */
  readonly listener: Pick<Listener, "answerRequest" | "answerUpgrade">;
}

/**
 * Lines that wait until the file or pipe accepts them. Past it further lines are dropped and
 * counted.
 */
const MAX_QUEUED_LINES = 10_000;
/** The characters of these lines. Past it further lines are dropped and counted. */
const MAX_QUEUED_CHARACTERS = 16 * 1024 * 1024;
const MAX_BATCH_LINES = 1_000;
const MAX_BATCH_CHARACTERS = 1024 * 1024;
const MAX_WAIT_MS = 100;
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;
const STOP_MS = 1_000;

/**
 * A host, path or user agent in the access log; clients choose its length. Past it the text is cut.
 */
const MAX_TEXT_CHARACTERS = 1_024;

/** One finished exchange of the front door. */
export interface ExchangeEnd extends ConnectionOrigin {
  /** The time by performance.now(). */
  readonly startedMs: number;
  readonly protocol: "http/1.1" | "h2";
  readonly method: string;
  readonly target: string;
  readonly headers: HeaderList;
  readonly route: RouteNames | undefined;
  /** The endpoint that the request was last sent to. */
  readonly endpoint?: string | undefined;
  /** 0 if the client left before an answer. */
  readonly status: number;
  /** Bytes of the answer's body, or bytes to the client on an upgraded connection. */
  readonly responseBytes: number;
  /** Bytes to the backend on an upgraded connection. */
  readonly requestBytes?: number | undefined;
  readonly trace?: RequestTrace | undefined;
}

interface AccessLogOptions {
  /** Undefined: standard output. */
  readonly path: string | undefined;
  readonly edge: EdgeRules;
  readonly metrics: Pick<IngressMetrics, "accessLogged">;
  readonly logger: Logger;
}

/**
 * Writes a JSON line for each exchange (docs/logs.md). Processes may share the file. A reload
 * reopens it, for log rotation. Requests never wait: past the bound, lines are dropped and counted.
 */
export class AccessLog {
  readonly #options: AccessLogOptions;
  readonly #queue: EventQueue;
  #handle: FileHandle | undefined;

  constructor(options: AccessLogOptions) {
    const { metrics, logger } = options;
    this.#options = options;
    this.#queue = new EventQueue({
      deliver: (lines) => this.#append(lines),
      maxQueuedEvents: MAX_QUEUED_LINES,
      maxQueuedCharacters: MAX_QUEUED_CHARACTERS,
      maxBatchEvents: MAX_BATCH_LINES,
      maxBatchCharacters: MAX_BATCH_CHARACTERS,
      maxWaitMs: MAX_WAIT_MS,
      retryMs: RETRY_MS,
      maxRetryMs: MAX_RETRY_MS,
      onStored: (count) => metrics.accessLogged("stored", count),
      onLost: (count) => metrics.accessLogged("lost", count),
      onFailure: ({ message }) => logger.error({ problem: message }, "the access log could not be written"),
    });
  }

  write(end: ExchangeEnd): void {
    this.#queue.push(quietJson(this.#lineOf(end)));
  }

  /** Closes the file; the next line opens it again. */
  async reopen(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }

  /** Writes the queued lines, for at most a second. */
  async stop(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const overdue = new Promise((resolve) => {
      timer = setTimeout(resolve, STOP_MS);
    });
    await Promise.race([this.#queue.flush().catch(() => {}), overdue]);
    clearTimeout(timer);
    this.#queue.stop();
    await this.reopen();
  }

  /**
   * Leaves out the query, which may contain tokens and commands, and every header but User-Agent.
   */
  #lineOf({ startedMs, isTls, remoteAddress, target, headers, route, status, ...end }: ExchangeEnd): object {
    const { method, protocol, endpoint, responseBytes, requestBytes, trace } = end;
    const path = /^[^?#]*/.exec(target)?.[0].replace(/^https?:\/\/[^/]*/i, "");
    return {
      time: new Date().toISOString(),
      client: this.#options.edge.sourceAddressesOf(headers, remoteAddress)[0],
      method,
      scheme: this.#options.edge.isHttps(headers, { isTls, remoteAddress }) ? "https" : "http",
      host: cut(headerValue(headers, "host")),
      path: cut(path),
      protocol,
      ...(status !== 0 && { status }),
      durationMs: Math.round((performance.now() - startedMs) * 10) / 10,
      responseBytes,
      requestBytes,
      ...route,
      endpoint,
      traceId: trace?.traceId,
      userAgent: cut(headerValue(headers, "user-agent")),
    };
  }

  async #append(lines: readonly string[]): Promise<void> {
    const text = lines.map((line) => `${line}\n`).join("");
    const { path } = this.#options;
    if (path === undefined) {
      await new Promise<void>((resolve, reject) => {
        process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
      });
      return;
    }
    this.#handle ??= await open(path, "a", 0o640);
    await this.#handle.appendFile(text);
  }
}

function cut(text: string | undefined): string | undefined {
  return text?.slice(0, MAX_TEXT_CHARACTERS);
}
