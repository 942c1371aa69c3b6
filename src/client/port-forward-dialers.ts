import { PORT_FORWARD_PROTOCOL, tunnelSubprotocolOf } from "../../protocols/portforward/index.ts";
import { type DialRequest, dial } from "./connect.ts";
import { ConnectError } from "./connect-error.ts";
import { dialWith } from "./dial-resumable.ts";
import { type ExecutorOptions, shouldFallBack } from "./executors.ts";
import { PortForwardConnection } from "./port-forward-connection.ts";
import { defaultSessionTimes } from "./session-times.ts";
import type { Target } from "./target.ts";
import { TunnelSocket } from "./tunnel-socket.ts";

/** Opens port-forward sessions with one pod. Throws ConnectError. */
export interface PortForwardDialer {
  dial(signal?: AbortSignal): Promise<PortForwardConnection>;
}

/** SPDY inside of a WebSocket: API servers from 1.31 on, and gateways. */
export class TunnelDialer implements PortForwardDialer {
  readonly #target: Target;
  readonly #path: string;
  readonly #options: ExecutorOptions;

  constructor(target: Target, path: string, options: ExecutorOptions = {}) {
    this.#target = target;
    this.#path = path;
    this.#options = options;
  }

  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    const protocols = [tunnelSubprotocolOf(PORT_FORWARD_PROTOCOL)];
    const request = requestOf("websocket", this.#path, protocols, this.#options, signal);
    const connection = await dialWith(this.#target, request, this.#options.resume);
    const times = { ...defaultSessionTimes, ...this.#options.times };
    const tunnel = new TunnelSocket(connection, times);
    // Whether anybody is there, a resumable connection watches itself.
    const deadlineMs = connection.isResumable ? Number.POSITIVE_INFINITY : times.deadlineMs;
    return new PortForwardConnection(tunnel, Buffer.alloc(0), "websocket", { ...times, deadlineMs });
  }
}

/** Bare SPDY/3.1: every API server and kubelet. */
export class SpdyDialer implements PortForwardDialer {
  readonly #target: Target;
  readonly #path: string;
  readonly #options: ExecutorOptions;

  constructor(target: Target, path: string, options: ExecutorOptions = {}) {
    this.#target = target;
    this.#path = path;
    this.#options = options;
  }

  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    const request = requestOf("spdy", this.#path, [PORT_FORWARD_PROTOCOL], this.#options, signal);
    const { socket, head, protocol } = await dial(this.#target, request);
    if (protocol !== PORT_FORWARD_PROTOCOL) {
      socket.destroy();
      const text = `unable to negotiate protocol: client supports "${PORT_FORWARD_PROTOCOL}", server returned ${JSON.stringify(protocol)}`;
      throw new ConnectError("handshake", text, { httpStatus: 101 });
    }
    const times = { ...defaultSessionTimes, ...this.#options.times };
    return new PortForwardConnection(socket, head, "spdy", times);
  }
}

/** Tries the first, and the second where the first could not upgrade: see `shouldFallBack`. */
export class FallbackDialer implements PortForwardDialer {
  readonly #primary: PortForwardDialer;
  readonly #secondary: PortForwardDialer;
  readonly #mayFallBack: (error: unknown) => boolean;

  constructor(
    primary: PortForwardDialer,
    secondary: PortForwardDialer,
    mayFallBack: (error: unknown) => boolean = shouldFallBack,
  ) {
    this.#primary = primary;
    this.#secondary = secondary;
    this.#mayFallBack = mayFallBack;
  }

  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    try {
      return await this.#primary.dial(signal);
    } catch (error) {
      if (!this.#mayFallBack(error)) throw error;
      return this.#secondary.dial(signal);
    }
  }
}

function requestOf(
  transport: DialRequest["transport"],
  path: string,
  protocols: readonly string[],
  { dialTimeoutMs, responseHeaderTimeoutMs }: ExecutorOptions,
  signal: AbortSignal | undefined,
): DialRequest {
  return { path, transport, protocols, dialTimeoutMs, responseHeaderTimeoutMs, signal };
}
