// src/nodes: declared and observed capabilities of nodes, circuit breakers

import type { NodeEndpoint } from "../cluster/locate.ts";
import type { NodeCircuit, NodeStreaming } from "../config/sections/kubelet.ts";
import type { Logger } from "../observability/logger.ts";
import type { NodeMetrics } from "../observability/node-metrics.ts";
import { CircuitBreaker, CircuitOpenError, type CircuitState } from "./circuit-breaker.ts";
import {
  declaresWebSocket,
  modeOf,
  type NodeCapability,
  type PathFailure,
  PathMemory,
  WEBSOCKET_PATHS,
  type WebSocketPath,
} from "./node-capability.ts";

interface KnownNodesOptions {
  readonly streaming: NodeStreaming;
  readonly circuit: NodeCircuit;
  /** The number of remembered nodes. Beyond it, the least recently used one is forgotten. */
  readonly maxNodes: number;
  /** A node that no session used for this long is forgotten. */
  readonly forgetAfterMs: number;
  readonly clock: { now(): number };
  readonly metrics: NodeMetrics;
  /** Logs each circuit that opens or closes. */
  readonly logger: Pick<Logger, "info" | "warn">;
}

/** Identifies a node together with its kubelet, runtime and address. */
export type NodeIncarnation = Pick<NodeEndpoint, "name" | "incarnation">;

/** Permission for one dial. The caller must report the outcome once; later calls do nothing. */
export interface DialTicket {
  /** The node sent any answer. */
  answered(): void;
  /**
   * The node could not be reached or did not answer. Later clients are shown `reason`, so it must
   * contain no secret.
   */
  failed(reason: string, wasRefused?: boolean): void;
  /** The outcome is unknown: the client left, or there was no dial. */
  abandoned(): void;
}

/** What the gateway learned about one node. */
export interface LearnedNode {
  readonly circuit: {
    readonly state: CircuitState;
    readonly failures: number;
    readonly reason: string;
    readonly retryInMs: number;
  };
  readonly paths: Readonly<Record<WebSocketPath, LearnedPath>>;
}

export interface LearnedPath {
  readonly successes: number;
  readonly failures: number;
  readonly lastFailure: PathFailure | undefined;
  /** The time until the path may be used again; 0 if it may be used now. */
  readonly retryInMs: number;
}

/**
 * Remembers which WebSocket paths of each node work, and whether it can be reached. Bounded in
 * number and time; another kubelet start, runtime or address makes a new node.
 */
export class KnownNodes {
  readonly #options: KnownNodesOptions;
  /** The least recently used node first. */
  readonly #nodes = new Map<string, KnownNode>();

  constructor(options: KnownNodesOptions) {
    this.#options = options;
    options.metrics.observe(() => this.#counts());
  }

  capabilityOf(node: NodeEndpoint): NodeCapability {
    return {
      declaresWebSocket: declaresWebSocket(node),
      mode: modeOf(node, this.#options.streaming).mode,
      avoidedPaths: this.avoidedPathsOf(node),
    };
  }

  /** Paths that failed recently and are avoided until their retry is due. */
  avoidedPathsOf({ name, incarnation }: NodeIncarnation): readonly WebSocketPath[] {
    const nowMs = this.#options.clock.now();
    const known = this.#nodes.get(name);
    const paths = known?.incarnation === incarnation ? known.paths : undefined;
    return WEBSOCKET_PATHS.filter((path) => paths?.[path].isAvoided(nowMs) === true);
  }

  /**
   * Permission to dial the node. Throws CircuitOpenError with the reason if its circuit is open.
   */
  admit(node: NodeIncarnation): DialTicket {
    const { clock, metrics } = this.#options;
    const known = this.#touch(node);
    const admission = known.breaker.admit(clock.now());
    if (admission.kind === "refused") {
      metrics.dialRefused();
      throw new CircuitOpenError(node.name, known.breaker.failures, admission.reason, admission.retryInMs);
    }
    let isOpen = true;
    const once = (settle: () => void) => () => {
      if (isOpen) settle();
      isOpen = false;
    };
    return {
      answered: once(() => this.#logged(node.name, known, () => known.breaker.succeeded())),
      failed: (reason, wasRefused) =>
        once(() => {
          metrics.dialFailed();
          const wasTrial = admission.kind === "trial";
          this.#logged(node.name, known, () =>
            known.breaker.failed(clock.now(), reason, wasTrial, wasRefused),
          );
        })(),
      abandoned: once(() => {
        if (admission.kind === "trial") known.breaker.abandoned();
      }),
    };
  }

  recordSuccess(node: NodeIncarnation, path: WebSocketPath): void {
    this.#touch(node).paths[path].succeeded();
    this.#options.metrics.pathSucceeded(path);
  }

  recordFailure(node: NodeIncarnation, path: WebSocketPath, how: PathFailure): void {
    this.#touch(node).paths[path].failed(this.#options.clock.now(), how);
    this.#options.metrics.pathFailed(path, how);
  }

  /**
   * Records a probe's result. A dead node is refused without a dial until a probe or a trial
   * reaches it.
   */
  reportProbe(name: string, isHealthy: boolean, reason: string): void {
    const known = this.#nodes.get(name) ?? this.#add(name, undefined);
    this.#logged(name, known, () => {
      if (isHealthy) known.breaker.succeeded();
      else known.breaker.declaredDead(this.#options.clock.now(), reason);
    });
  }

  /** Undefined if nothing was learned about the node. */
  learnedOf({ name, incarnation }: NodeIncarnation): LearnedNode | undefined {
    this.#forgetUnused();
    const known = this.#nodes.get(name);
    if (known === undefined || (known.incarnation ?? incarnation) !== incarnation) return undefined;
    const nowMs = this.#options.clock.now();
    const { breaker, paths } = known;
    const learnedPath = (path: PathMemory): LearnedPath => ({
      successes: path.successes,
      failures: path.failures,
      lastFailure: path.lastFailure,
      retryInMs: path.retryInMs(nowMs),
    });
    return {
      circuit: {
        state: breaker.state(nowMs),
        failures: breaker.failures,
        reason: breaker.reason,
        retryInMs: breaker.retryInMs(nowMs),
      },
      paths: { command: learnedPath(paths.command), tunnel: learnedPath(paths.tunnel) },
    };
  }

  get size(): number {
    return this.#nodes.size;
  }

  #touch({ name, incarnation }: NodeIncarnation): KnownNode {
    const found = this.#nodes.get(name);
    // A probe reports a node's name without its incarnation.
    const isSame = found !== undefined && (found.incarnation ?? incarnation) === incarnation;
    if (!isSame) return this.#add(name, incarnation);
    found.incarnation = incarnation;
    found.usedMs = this.#options.clock.now();
    this.#nodes.delete(name);
    this.#nodes.set(name, found);
    return found;
  }

  #add(name: string, incarnation: string | undefined): KnownNode {
    this.#forgetUnused();
    const { streaming, circuit, maxNodes, clock } = this.#options;
    const known: KnownNode = {
      incarnation,
      usedMs: clock.now(),
      breaker: new CircuitBreaker(circuit),
      paths: { command: new PathMemory(streaming), tunnel: new PathMemory(streaming) },
    };
    this.#forget(name);
    this.#nodes.set(name, known);
    if (this.#nodes.size > maxNodes) this.#forget(this.#nodes.keys().next().value ?? "");
    return known;
  }

  #forgetUnused(): void {
    const oldestMs = this.#options.clock.now() - this.#options.forgetAfterMs;
    for (const [name, { usedMs }] of this.#nodes) {
      if (usedMs >= oldestMs) return;
      this.#forget(name);
    }
  }

  #forget(name: string): void {
    const known = this.#nodes.get(name);
    if (known !== undefined) this.#logged(name, known, () => known.breaker.succeeded());
    this.#nodes.delete(name);
  }

  #logged(node: string, known: KnownNode, change: () => void): void {
    const { breaker } = known;
    const wasOpen = breaker.isOpen;
    change();
    // A late result for a forgotten node changes no current record.
    if (breaker.isOpen === wasOpen || this.#nodes.get(node) !== known) return;
    const { logger, clock } = this.#options;
    const { failures, reason } = breaker;
    const retryInMs = breaker.retryInMs(clock.now());
    if (wasOpen) logger.info({ node }, "a node's circuit is closed: it is dialled again");
    else logger.warn({ node, failures, reason, retryInMs }, "a node's circuit is open: it is not dialled");
  }

  #counts() {
    this.#forgetUnused();
    const nowMs = this.#options.clock.now();
    const nodes = [...this.#nodes.values()];
    const avoiding = (path: WebSocketPath) =>
      nodes.filter(({ paths }) => paths[path].isAvoided(nowMs)).length;
    return {
      remembered: nodes.length,
      dead: nodes.filter(({ breaker }) => breaker.state(nowMs) !== "closed").length,
      avoided: { command: avoiding("command"), tunnel: avoiding("tunnel") },
    };
  }
}

interface KnownNode {
  incarnation: string | undefined;
  usedMs: number;
  readonly breaker: CircuitBreaker;
  readonly paths: Readonly<Record<WebSocketPath, PathMemory>>;
}
