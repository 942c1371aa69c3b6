import { PORT_FORWARD_PROTOCOL, tunnelSubprotocolOf } from "@sluice/protocols/portforward";
import { type DialRequest, dial, type UpgradedConnection } from "./connect.ts";
import { dialWith } from "./dial-with.ts";
import { type ExecutorOptions, shouldFallBack } from "./executors.ts";
import { ConnectError } from "./http/upstream/connect-error.ts";
import { PortForwardConnection } from "./port-forward-connection.ts";
import { defaultSessionTimes, type SessionTimes } from "./session-times.ts";
import type { Target } from "./target.ts";
import { TunnelSocket } from "./tunnel-socket.ts";

/** Opens port-forward sessions with one pod. Throws ConnectError. */
export interface PortForwardDialer {
  dial(signal?: AbortSignal): Promise<PortForwardConnection>;
}

/** One transport to the port-forward path of one pod. */
class PathDialer {
  readonly #target: Target;
  readonly #path: string;
  readonly #options: ExecutorOptions;
  protected readonly times: SessionTimes;

  constructor(target: Target, path: string, options: ExecutorOptions = {}) {
    this.#target = target;
    this.#path = path;
    this.#options = options;
    this.times = { ...defaultSessionTimes, ...options.times };
  }

  protected upgrade(
    transport: DialRequest["transport"],
    protocol: string,
    signal: AbortSignal | undefined,
  ): Promise<UpgradedConnection> {
    const { dialTimeoutMs, responseHeaderTimeoutMs, resume } = this.#options;
    const times = { dialTimeoutMs, responseHeaderTimeoutMs };
    const request = { path: this.#path, transport, protocols: [protocol], signal, ...times };
    return transport === "websocket" ? dialWith(this.#target, request, resume) : dial(this.#target, request);
  }
}

/** SPDY inside a WebSocket: API servers since 1.31, and gateways. */
export class TunnelDialer extends PathDialer implements PortForwardDialer {
  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    const connection = await this.upgrade("websocket", tunnelSubprotocolOf(PORT_FORWARD_PROTOCOL), signal);
    const tunnel = new TunnelSocket(connection, this.times);
    // A resumable connection checks its peer itself.
    const deadlineMs = connection.isResumable ? Number.POSITIVE_INFINITY : this.times.deadlineMs;
    return new PortForwardConnection(tunnel, Buffer.alloc(0), "websocket", { ...this.times, deadlineMs });
  }
}

/** Bare SPDY/3.1: every API server and kubelet. */
export class SpdyDialer extends PathDialer implements PortForwardDialer {
  async dial(signal?: AbortSignal): Promise<PortForwardConnection> {
    const { socket, head, protocol } = await this.upgrade("spdy", PORT_FORWARD_PROTOCOL, signal);
    if (protocol !== PORT_FORWARD_PROTOCOL) {
      socket.destroy();
      const text = `unable to negotiate protocol: client supports "${PORT_FORWARD_PROTOCOL}", server returned ${JSON.stringify(protocol)}`;
      throw new ConnectError("handshake", text, { httpStatus: 101 });
    }
    return new PortForwardConnection(socket, head, "spdy", this.times);
  }
}

/** Tries the first, then the second if the first could not upgrade: see `shouldFallBack`. */
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
