import { isIP, type Socket } from "node:net";
import { AddressList, canonicalAddress, checkNetwork, isLoopback } from "./config/address-list.ts";
import { withoutUserinfo } from "./config/configuration-error.ts";
import { type HeaderList, isHeaderName, isHeaderValue } from "./http/header-list.ts";
import { connectThroughProxy, type ProxyServer, proxyServerOf } from "./http/proxies/proxy-connection.ts";
import { CredentialsError } from "./kubernetes/credentials-error.ts";
import type { Kubeconfig } from "./kubernetes/kubeconfig.ts";
import { type DialOptions, dial, type UpstreamEndpoint } from "./net/dial.ts";
import { IdleConnection } from "./net/idle-connection.ts";
import { UpstreamTls, type UpstreamTlsOptions } from "./net/tls.ts";

const PROXY_SCHEMES = ["http:", "https:", "socks5:", "socks5h:"];
const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** A streaming server: an API server, a kubelet or a gateway. */
export interface TargetOptions {
  /** `https://host:port`, with a path if the server has a base path. */
  readonly url: string | URL;
  /**
   * Trusted authorities and the client's identity; PEM texts. Ignored for `http:`. A function runs
   * before each connection, after `headers`, and returns another object for new certificates. Default: `{}`.
   */
  readonly tls?: UpstreamTlsOptions | (() => UpstreamTlsOptions | undefined) | undefined;
  /**
   * Called for each request, so that tokens can renew: Authorization, impersonation, User-Agent.
   * Default: none.
   */
  readonly headers?: (() => HeaderList | Promise<HeaderList>) | undefined;
  /** "environment" (the default) reads the usual variables; "none"; or the proxy's URL. */
  readonly proxy?: "environment" | "none" | string | undefined;
  /** The source of the variables; defaults to process.env. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Receives every request and answer; it must keep header values secret. Default: nothing does. */
  readonly trace?: ConnectTrace | undefined;
}

/** Receives what `-v 7` prints. */
export interface ConnectTrace {
  /** Default: ignored. */
  request?(method: string, url: string, headers: HeaderList): void;
  /** Default: ignored. */
  response?(status: number, statusText: string, headers: HeaderList, elapsedMs: number): void;
}

/**
 * How long the connection that read a pod waits for the session in that pod. Past it, it is closed,
 * and the session dials.
 */
const IDLE_MS = 1_000;
const NO_TLS_OPTIONS: UpstreamTlsOptions = {};

/**
 * A target is prepared once and dialled often: it parses certificates, keeps TLS sessions for
 * resumption, and chooses the proxy. Throws Error for a URL that is invalid or not http(s),
 * OpenSSL's error for unreadable certificates, and ConnectError "proxy" for an unsupported proxy.
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

  /** Keeps TLS sessions while the certificates stay the same. */
  get endpoint(): UpstreamEndpoint {
    const tlsOptions = this.#tlsOptions();
    if (tlsOptions !== this.#usedTlsOptions) {
      this.#usedTlsOptions = tlsOptions;
      this.#endpoint = endpointOf(this.url, tlsOptions);
    }
    return this.#endpoint;
  }

  /**
   * Connects to the endpoint, through the proxy if there is one, or returns the idle connection,
   * paused. Throws UpstreamError and ConnectError "proxy".
   */
  async connect(endpoint: UpstreamEndpoint, options: DialOptions): Promise<Socket> {
    const { proxy } = this;
    const idle = this.#idleEndpoint === endpoint ? this.#idle.take() : undefined;
    if (idle !== undefined) return idle;
    return proxy === undefined ? dial(endpoint, options) : connectThroughProxy(proxy, endpoint, options);
  }

  /** Returns a connection after a complete response, for a request within the next second. */
  release(socket: Socket, endpoint: UpstreamEndpoint): void {
    this.#idle.put(socket);
    this.#idleEndpoint = endpoint;
  }

  /** Throws Error for a line that HTTP cannot carry; the message omits its value. */
  async headers(): Promise<HeaderList> {
    const headers = await this.#headers();
    const wrong = headers.find(([name, value]) => !isHeaderName(name) || !isHeaderValue(value));
    if (wrong !== undefined) throw new Error(`invalid header ${JSON.stringify(wrong[0])}`);
    return headers;
  }

  /** The request target for a path relative to the server's base path. */
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

/** The environment variables that Go programs read; upper case takes precedence over lower case. */
type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/**
 * The proxy for a URL from HTTP_PROXY, HTTPS_PROXY and NO_PROXY as httpproxy.go reads them, then from
 * ALL_PROXY as curl does. Throws Error for an invalid proxy URL, and for HTTP_PROXY in a CGI program
 * (a request's `Proxy` header sets it).
 */
export function proxyFromEnvironment(url: URL, environment: ProxyEnvironment): URL | undefined {
  const read = (name: string): string => environment[name] || environment[name.toLowerCase()] || "";
  const isSecure = url.protocol === "https:" || url.protocol === "wss:";
  const ofScheme = read(isSecure ? "HTTPS_PROXY" : "HTTP_PROXY");
  const proxy = ofScheme || read("ALL_PROXY");
  if (proxy === "" || !usesProxy(url, read("NO_PROXY"))) return undefined;
  if (!isSecure && ofScheme !== "" && environment.REQUEST_METHOD) {
    throw new Error("refusing to use HTTP_PROXY value in CGI environment; see golang.org/s/cgihttpproxy");
  }
  return parseProxy(proxy);
}

/**
 * Reads a bare `host:port` as an HTTP proxy. Throws Error if it is not a URL; the message omits a
 * password.
 */
function parseProxy(text: string): URL {
  const candidate = text.includes("://") ? text : `http://${text}`;
  const url = URL.canParse(candidate) ? new URL(candidate) : undefined;
  if (url !== undefined && PROXY_SCHEMES.includes(url.protocol) && url.hostname !== "") return url;
  throw new Error(`invalid proxy address ${JSON.stringify(withoutUserinfo(candidate))}`);
}

function usesProxy(url: URL, noProxy: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const port = url.port || DEFAULT_PORTS[url.protocol.replace(/^ws/, "http")] || "";
  if (host === "localhost" || isLoopback(host)) return false;
  return !noProxy.split(",").some((rule) => excludes(rule.trim().toLowerCase(), host, port));
}

/**
 * One element of NO_PROXY: `*`, an address, a CIDR block, `name`, `.name` or `*.name`; all but the
 * block may have a port.
 */
function excludes(rule: string, host: string, port: string): boolean {
  if (rule === "") return false;
  if (rule === "*") return true;
  if (rule.includes("/")) return isInBlock(rule, host);
  const [, bracketed, plain, rulePort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d*))?$/.exec(rule) ?? [];
  const name = bracketed ?? plain ?? rule;
  if (name === "" || (rulePort && rulePort !== port)) return false;
  if (isIP(name) !== 0 || isIP(host) !== 0) return canonicalAddress(name) === canonicalAddress(host);
  const domain = name.startsWith("*.") ? name.slice(1) : name;
  return domain.startsWith(".") ? host.endsWith(domain) : host === domain || host.endsWith(`.${domain}`);
}

function isInBlock(rule: string, host: string): boolean {
  return checkNetwork(rule) === undefined && new AddressList([rule]).has(host);
}

/**
 * A kubeconfig's API server, with its proxy and with credentials that renew as they expire. Throws
 * CredentialsError for a certificate, key or proxy that cannot be used.
 */
export function kubeconfigTarget(
  kubeconfig: Kubeconfig,
  options: Pick<TargetOptions, "headers" | "trace" | "environment"> = {},
): Target {
  const { server, proxyUrl } = kubeconfig;
  try {
    return new Target({
      ...options,
      url: server,
      tls: () => kubeconfig.tls,
      proxy: proxyUrl ?? "environment",
      headers: async () => [...(await kubeconfig.headers()), ...((await options.headers?.()) ?? [])],
    });
  } catch (error) {
    throw new CredentialsError((error as Error).message, { cause: error });
  }
}
