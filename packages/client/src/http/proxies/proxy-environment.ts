import { isIP } from "node:net";
import { AddressList, canonicalAddress, checkNetwork, isLoopback } from "../../config/address-list.ts";

/** The environment variables that Go programs read; upper case takes precedence over lower case. */
type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

const PROXY_SCHEMES = ["http:", "https:", "socks5:", "socks5h:"];
const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

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
export function parseProxy(text: string): URL {
  const candidate = text.includes("://") ? text : `http://${text}`;
  const url = URL.canParse(candidate) ? new URL(candidate) : undefined;
  if (url !== undefined && PROXY_SCHEMES.includes(url.protocol) && url.hostname !== "") return url;
  throw new Error(`invalid proxy address ${JSON.stringify(text.replace(/\/\/[^@/]*@/, "//xxxxx@"))}`);
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
