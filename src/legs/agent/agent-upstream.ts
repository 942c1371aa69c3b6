import type { Socket } from "node:net";
import { serviceUnavailable } from "../../api/status.ts";
import { type ConnectTrace, kubeconfigTarget, type Target } from "../../client/index.ts";
import type { HeaderList } from "../../http/header-list.ts";
import { connectThroughProxy } from "../../http/proxies/proxy-connection.ts";
import { HttpUpstream } from "../../http/upstream/http-upstream.ts";
import type { Kubeconfig } from "../../kubernetes/kubeconfig.ts";
import { type DialOptions, dial, type UpstreamEndpoint } from "../../net/dial.ts";

/** The API server of the user's kubeconfig, with the credentials and the proxy that stand there. */
export class AgentUpstream {
  readonly #kubeconfig: Kubeconfig;
  readonly #target: Target;
  readonly #dialTimeoutMs: number;
  #http: HttpUpstream | undefined;

  /** Throws as `Target` does. `environment`: where proxy variables are read; process.env unless given. */
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

  /** `host:port` as the kubeconfig has it; the value of Host. */
  get authority(): string {
    return this.#target.url.host;
  }

  get origin(): string {
    return this.#target.url.origin;
  }

  get trace(): ConnectTrace {
    return this.#target.trace;
  }

  /** With the certificates as of the last `credentials()`. */
  get endpoint(): UpstreamEndpoint {
    return this.#target.endpoint;
  }

  /** Connections for plain requests. Those that show replaced certificates are not used again. */
  get http(): HttpUpstream {
    const { endpoint } = this;
    if (this.#http?.endpoint !== endpoint) {
      this.#http?.close();
      const dialTimeoutMs = this.#dialTimeoutMs;
      this.#http = new HttpUpstream({ endpoint, dialTimeoutMs, connect: this.connect });
    }
    return this.#http;
  }

  /** As `dial`, through the kubeconfig's proxy or that of the environment where there is one. */
  readonly connect = (endpoint: UpstreamEndpoint, options: DialOptions): Promise<Socket> => {
    const { proxy } = this.#target;
    return proxy === undefined ? dial(endpoint, options) : connectThroughProxy(proxy, endpoint, options);
  };

  /** The request target for a path with query, below the server's own path. */
  pathOf(path: string): string {
    return this.#target.pathOf(path);
  }

  /** The user's Authorization and impersonation lines. Throws StatusError 503 when files or plugins fail; no secret is in it. */
  async credentials(): Promise<HeaderList> {
    try {
      return await this.#target.headers();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw serviceUnavailable(`the agent has no credentials for the API server: ${message}`);
    }
  }

  /** After a 401: files and plugins are asked anew. */
  forgetCredentials(): void {
    this.#kubeconfig.forget();
  }

  close(): void {
    this.#http?.close();
  }
}
