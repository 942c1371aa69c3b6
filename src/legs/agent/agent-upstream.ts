import type { Socket } from "node:net";
import { ConnectError, type ConnectTrace, kubeconfigTarget, type Target } from "@sluice/client";
import type { StatusError } from "@sluice/client/internal/api/status";
import {
  type HeaderLine,
  type HeaderList,
  withHeader,
  withoutHeaders,
} from "@sluice/client/internal/http/header-list";
import { connectThroughProxy } from "@sluice/client/internal/http/proxies/proxy-connection";
import { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import type { Kubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { type DialOptions, dial, type UpstreamEndpoint } from "@sluice/client/internal/net/dial";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { Authenticator } from "../../access/authn/authenticator.ts";
import { withoutIdentity } from "../../access/authn/identity-headers.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { ListenerContext } from "../../listeners/edge-rules.ts";
import type { KnownNodes } from "../../nodes/known-nodes.ts";
import type { SessionRunContext } from "../../sessions/context.ts";
import { forwardingError } from "../../sessions/upstream-errors.ts";

/** Everything the agent's request handling needs; component.ts builds it once. */
export interface AgentContext extends ListenerContext, SessionRunContext {
  /** Accepts only the agent's own token. */
  readonly authenticator: Authenticator;
  readonly upstream: AgentUpstream;
  /** Observed behaviour of the API server; the agent treats it as its only node. */
  readonly nodes: KnownNodes;
  /** Prints the reason for the path that a session takes. */
  note(text: string): void;
}

/** The agent acts as the user's client, so it does not announce itself as a hop. */
const HOP_HEADERS = [
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
];

/** The API server in the user's kubeconfig, with that file's credentials and proxy. */
export class AgentUpstream {
  readonly #kubeconfig: Kubeconfig;
  readonly #target: Target;
  readonly #dialTimeoutMs: number;
  #http: HttpUpstream | undefined;

  /**
   * Throws as `Target` does. `environment`: the source of proxy variables, by default process.env.
   */
  constructor(
    kubeconfig: Kubeconfig,
    options: {
      readonly dialTimeoutMs: number;
      readonly trace?: ConnectTrace | undefined;
      readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
    },
  ) {
    this.#kubeconfig = kubeconfig;
    this.#dialTimeoutMs = options.dialTimeoutMs;
    this.#target = kubeconfigTarget(kubeconfig, { trace: options.trace, environment: options.environment });
  }

  /** `host:port` from the kubeconfig; the value of Host. */
  get authority(): string {
    return this.#target.url.host;
  }

  get origin(): string {
    return this.#target.url.origin;
  }

  get trace(): ConnectTrace {
    return this.#target.trace;
  }

  /** Uses the certificates from the last `credentials()`. */
  get endpoint(): UpstreamEndpoint {
    return this.#target.endpoint;
  }

  /** Connections for plain requests. One with a replaced certificate is not reused. */
  get http(): HttpUpstream {
    const { endpoint } = this;
    if (this.#http?.endpoint !== endpoint) {
      this.#http?.close();
      const dialTimeoutMs = this.#dialTimeoutMs;
      this.#http = new HttpUpstream({ endpoint, dialTimeoutMs, connect: this.connect });
    }
    return this.#http;
  }

  /** Like `dial`, through the proxy of the kubeconfig or the environment, if there is one. */
  readonly connect = (endpoint: UpstreamEndpoint, options: DialOptions): Promise<Socket> => {
    const { proxy } = this.#target;
    return proxy === undefined ? dial(endpoint, options) : connectThroughProxy(proxy, endpoint, options);
  };

  /** The request target for a path with query, under the server's base path. */
  pathOf(path: string): string {
    return this.#target.pathOf(path);
  }

  /**
   * The user's Authorization and impersonation headers. Throws StatusError 503 if files or plugins
   * fail; its message contains no secret.
   */
  async credentials(): Promise<HeaderList> {
    try {
      return await this.#target.headers();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw WIRE_ERRORS["agent-no-credentials"].forwarding({ error: message });
    }
  }

  /** After a 401, reads files and runs plugins again. */
  forgetCredentials(): void {
    this.#kubeconfig.forget();
  }

  close(): void {
    this.#http?.close();
  }
}

/**
 * Replaces the agent's token with the user's credentials. The client's impersonation (`--as`)
 * overrides the kubeconfig's. Hop-by-hop headers must be gone already.
 */
export function inUsersName(
  headers: HeaderList,
  { credentials, authority }: { readonly credentials: HeaderList; readonly authority: string },
): HeaderLine[] {
  const impersonated = headers.filter(isImpersonation);
  const own = impersonated.length === 0 ? credentials : credentials.filter((line) => !isImpersonation(line));
  const kept = withoutHeaders(withoutIdentity(headers), HOP_HEADERS);
  return [...withHeader(kept, "Host", authority), ...impersonated, ...own];
}

function isImpersonation([name]: HeaderLine): boolean {
  return name.toLowerCase().startsWith("impersonate-");
}

/**
 * The client's answer if the upstream gave none: a StatusError, or the error itself if the client
 * has left.
 */
export function unansweredError(error: unknown): unknown {
  if (error instanceof UpstreamError && error.code !== "aborted") return unreachedError(error);
  if (error instanceof ConnectError) return unreachedError(error);
  return error;
}

function unreachedError(error: UpstreamError | ConnectError): StatusError {
  if (error instanceof UpstreamError) return forwardingError(error);
  return WIRE_ERRORS["dial-failed"].forwarding({ error: error.message, upstream: "the API server" });
}
