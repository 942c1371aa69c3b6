import type { Extensible } from "./api-object.ts";

/**
 * A container's liveness, readiness or startup probe: one handler, its timing and its thresholds.
 * Defaults in brackets.
 */
export interface Probe extends ProbeHandler {
  /** Seconds after the container's start [0]. */
  readonly initialDelaySeconds?: number;
  /** Maximum seconds for one run [1]. */
  readonly timeoutSeconds?: number;
  /** Seconds between runs [10]. */
  readonly periodSeconds?: number;
  /** Consecutive successes [1]; must be 1 for liveness and startup. */
  readonly successThreshold?: number;
  /** Consecutive failures [3]. */
  readonly failureThreshold?: number;
  /**
   * Seconds; overrides the pod's grace period if a liveness or startup probe ends the container.
   */
  readonly terminationGracePeriodSeconds?: number;
}

/** Exactly one of these is set. */
export interface ProbeHandler extends Extensible {
  readonly exec?: ExecAction;
  readonly httpGet?: HTTPGetAction;
  readonly tcpSocket?: TCPSocketAction;
  readonly grpc?: GRPCAction;
}

export interface ExecAction extends Extensible {
  /** Program and arguments, without a shell. */
  readonly command?: readonly string[];
}

export interface HTTPGetAction extends Extensible {
  /** Path and query ["/"]. */
  readonly path?: string;
  /** A number, or a named port of the container. */
  readonly port: number | string;
  /** Absent or empty means the pod's IP. */
  readonly host?: string;
  readonly scheme?: string;
  readonly httpHeaders?: readonly HTTPHeader[];
  /** `HTTP1` or `HTTP2`; absent means HTTP/1.1 (KEP-5999, gate H2CContainerProbe). */
  readonly protocol?: string;
}

export interface HTTPHeader extends Extensible {
  readonly name: string;
  readonly value: string;
}

export interface TCPSocketAction extends Extensible {
  readonly port: number | string;
  readonly host?: string;
}

export interface GRPCAction extends Extensible {
  readonly port: number;
  /** The gRPC service to check [""]. */
  readonly service?: string;
  /** `Plaintext` or `TLS`; absent means plaintext (KEP-4939, gate GRPCContainerProbeTLS). */
  readonly mode?: string;
}

export interface Lifecycle extends Extensible {
  readonly postStart?: LifecycleHandler;
  readonly preStop?: LifecycleHandler;
}

/** Runs after a container's start or before its end; exactly one is set, never `grpc`. */
export interface LifecycleHandler extends ProbeHandler {
  readonly sleep?: Extensible & { readonly seconds?: number };
}
