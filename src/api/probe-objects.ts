import type { Extensible } from "./object-meta.ts";

/** A container's liveness, readiness or startup probe: one handler, and when it is run and believed. Defaults in brackets. */
export interface Probe extends ProbeHandler {
  /** Seconds after the container's start [0]. */
  readonly initialDelaySeconds?: number;
  /** Seconds that one run may take [1]. */
  readonly timeoutSeconds?: number;
  /** Seconds from one run to the next [10]. */
  readonly periodSeconds?: number;
  /** Runs in a row [1]; liveness and startup know 1 only. */
  readonly successThreshold?: number;
  /** Runs in a row [3]. */
  readonly failureThreshold?: number;
  /** Seconds; stands above the pod's own where a liveness or startup probe ends the container. */
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
  /** Program and arguments; no shell. */
  readonly command?: readonly string[];
}

export interface HTTPGetAction extends Extensible {
  /** Path and query ["/"]. */
  readonly path?: string;
  /** A number, or the name of one of the container's ports. */
  readonly port: number | string;
  /** Absent or empty: the pod's IP. */
  readonly host?: string;
  readonly scheme?: string;
  readonly httpHeaders?: readonly HTTPHeader[];
  /** `HTTP1` or `HTTP2`; absent is HTTP/1.1 (KEP-5999, gate H2CContainerProbe). */
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
  /** The service that is asked about [""]. */
  readonly service?: string;
  /** `Plaintext` or `TLS`; absent is plaintext (KEP-4939, gate GRPCContainerProbeTLS). */
  readonly mode?: string;
}

export interface Lifecycle extends Extensible {
  readonly postStart?: LifecycleHandler;
  readonly preStop?: LifecycleHandler;
}

/** What runs at a container's start or before its end: one of these, `grpc` never. */
export interface LifecycleHandler extends ProbeHandler {
  readonly sleep?: Extensible & { readonly seconds?: number };
}
