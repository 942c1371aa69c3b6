import type { Socket } from "node:net";
import { type HeaderList, isHeaderName, isHeaderValue } from "../http/header-list.ts";
import { connectThroughProxy, type ProxyServer, proxyServerOf } from "../http/proxies/proxy-connection.ts";
import { parseProxy, proxyFromEnvironment } from "../http/proxies/proxy-environment.ts";
import { type DialOptions, dial, type UpstreamEndpoint } from "../net/dial.ts";
import { IdleConnection } from "../net/idle-connection.ts";
import { UpstreamTls, type UpstreamTlsOptions } from "../net/tls.ts";

/** A server that streams: an API server, a kubelet, a gateway. */
export interface TargetOptions {
  /** `https://host:port`, with a path where the server is mounted below one. */
  readonly url: string | URL;
  /**
   * Trust in the server and the client's identity; PEM texts. Ignored for `http:`. A function is asked before each
   * connection, after `headers`, and gives another object when certificates were replaced.
   */
  readonly tls?: UpstreamTlsOptions | (() => UpstreamTlsOptions | undefined) | undefined;
  /** Asked anew for each request, so that a token may be renewed: Authorization, impersonation, User-Agent. */
  readonly headers?: (() => HeaderList | Promise<HeaderList>) | undefined;
  /** "environment" (the default) reads the usual variables; "none"; or the proxy's URL. */
  readonly proxy?: "environment" | "none" | string | undefined;
  /** Where the variables are read; process.env unless given. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Is told of every request and answer. Header values are the caller's to keep secret. */
  readonly trace?: ConnectTrace | undefined;
}

/** What `-v 7` shows. */
export interface ConnectTrace {
  request?(method: string, url: string, headers: HeaderList): void;
  response?(status: number, statusText: string, headers: HeaderList, elapsedMs: number): void;
}

/** The connection that read a pod is there for so long for the session in it. */
const IDLE_MS = 1_000;
const NO_TLS_OPTIONS: UpstreamTlsOptions = {};

/**
 * A target made ready once and dialled often: certificates are parsed, TLS sessions are kept for resumption, and the proxy
 * is chosen. Throws Error for a URL that is none or not http(s), OpenSSL's error for certificates that it cannot read, and
 * ConnectError "proxy" for a proxy that we cannot speak to.
 */
export class Target {
  readonly url: URL;
  readonly proxy: ProxyServer | undefined;
  readonly trace: ConnectTrace;
  readonly #headers: () => HeaderList | Promise<HeaderList>;
  readonly #tlsOptions: () => UpstreamTlsOptions;
  #usedTlsOptions: UpstreamTlsOptions;
  #endpoint: UpstreamEndpoint;
  readonly #idle = new IdleConnection(IDLE_MS);
  #idleEndpoint: UpstreamEndpoint | undefined;

  constructor(options: TargetOptions) {
    const url = new URL(options.url);
    if (url.protocol !== "https:" && url.protocol !== "http:") {
      throw new Error(`${JSON.stringify(url.protocol)} is not http: or https:`);
    }
    const { tls } = options;
    this.url = url;
    this.#tlsOptions =
      typeof tls === "function" ? () => tls() ?? NO_TLS_OPTIONS : () => tls ?? NO_TLS_OPTIONS;
    this.#usedTlsOptions = this.#tlsOptions();
    this.#endpoint = endpointOf(url, this.#usedTlsOptions);
    this.trace = options.trace ?? {};
    this.#headers = options.headers ?? (() => []);
    const proxyUrl = proxyOf(url, options);
    const { ca, insecureSkipVerify } = this.#usedTlsOptions;
    this.proxy = proxyUrl && proxyServerOf(proxyUrl, ca, insecureSkipVerify);
  }

  /** TLS sessions are remembered for as long as the certificates stay the same. */
  get endpoint(): UpstreamEndpoint {
    const tlsOptions = this.#tlsOptions();
    if (tlsOptions !== this.#usedTlsOptions) {
      this.#usedTlsOptions = tlsOptions;
      this.#endpoint = endpointOf(this.url, tlsOptions);
    }
    return this.#endpoint;
  }

  /**
   * A connection to the endpoint, through the proxy where there is one, as `dial` gives it, or the idle one, paused. Throws
   * UpstreamError and ConnectError "proxy".
   */
  async connect(endpoint: UpstreamEndpoint, options: DialOptions): Promise<Socket> {
    const { proxy } = this;
    const idle = this.#idleEndpoint === endpoint ? this.#idle.take() : undefined;
    if (idle !== undefined) return idle;
    return proxy === undefined ? dial(endpoint, options) : connectThroughProxy(proxy, endpoint, options);
  }

  /** Returns a connection of `connect` after a complete response, for a request that follows within a second. */
  release(socket: Socket, endpoint: UpstreamEndpoint): void {
    this.#idle.put(socket);
    this.#idleEndpoint = endpoint;
  }

  /** Throws Error for a line that HTTP cannot carry; its value is not in the message. */
  async headers(): Promise<HeaderList> {
    const headers = await this.#headers();
    const wrong = headers.find(([name, value]) => !isHeaderName(name) || !isHeaderValue(value));
    if (wrong !== undefined) throw new Error(`invalid header ${JSON.stringify(wrong[0])}`);
    return headers;
  }

  /** The request target for a path below the server's own. */
  pathOf(path: string): string {
    return this.url.pathname.replace(/(?<!\/)\/+$/, "") + path;
  }
}

function endpointOf(url: URL, tlsOptions: UpstreamTlsOptions): UpstreamEndpoint {
  const isSecure = url.protocol === "https:";
  return {
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (isSecure ? 443 : 80) : Number(url.port),
    tls: isSecure ? new UpstreamTls(tlsOptions) : undefined,
  };
}

function proxyOf(
  url: URL,
  { proxy = "environment", environment = process.env }: TargetOptions,
): URL | undefined {
  if (proxy === "none" || proxy === "") return undefined;
  return proxy === "environment" ? proxyFromEnvironment(url, environment) : parseProxy(proxy);
}
