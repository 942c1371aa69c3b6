import { fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { isSingleBinary, ownProgram } from "@sluice/client/internal/config/version";
import { SessionClock } from "@sluice/client/internal/net/session-clock";
import type { AuditDelivery } from "../../access/audit/component.ts";
import type { Quotas } from "../../access/policy/component.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { listenerPorts } from "../../config/sections/listeners.ts";
import type { Component } from "../../lifecycle/component.ts";
import { EdgeRules, networkOf } from "../../listeners/edge-rules.ts";
import { proxiesByListener } from "../../listeners/proxy-protocol.ts";
import type { Logger } from "../../observability/logger.ts";
import type { MergedMetrics } from "../../observability/merged-metrics.ts";
import type { EndRequest, EndResult } from "../../sessions/session-actions.ts";
import type { Acceptors } from "./acceptors.ts";
import {
  endWithin,
  factsWithin,
  KeptFiles,
  type KeptKind,
  outputWithin,
  type PrimaryCalls,
  typedWithin,
  type WorkerStart,
} from "./calls.ts";
import { ConnectionDispatcher } from "./connection-dispatcher.ts";
import type { Handlers } from "./link.ts";
import { MAX_SILENT_BEATS, PROBER_BEAT_MS, ProberWatchdog } from "./prober-watchdog.ts";
import { SharedProbing } from "./shared-probing.ts";
import { type Worker, WorkerPool } from "./worker-pool.ts";
import { SessionLimiter, WorkerSessions } from "./worker-sessions.ts";
import { sessionsOf } from "./workers-admin.ts";

/** OpenSSL's layout: 16 bytes of key name, 16 of HMAC key, 16 of AES key. */
const TICKET_KEY_BYTES = 48;

/** The configuration for workers; the mesh fills in the rest of `WorkerStart`. */
export type WorkerConfiguration = Pick<WorkerStart, "configurationText" | "configurationFile" | "flags">;

interface MeshParts {
  readonly configuration: GatewayConfiguration;
  readonly count: number;
  readonly forWorkers: WorkerConfiguration;
  readonly replicaId: string;
  readonly metrics: MergedMetrics;
  readonly logger: Logger;
  /** The parts of the primary that its workers use, started before them. */
  readonly quotas: () => Quotas;
  readonly auditLog: () => AuditDelivery | undefined;
  readonly acceptors: () => Acceptors;
  /** The Unix socket for the worker's admin listener. */
  readonly adminSocketOf: (worker: Worker) => string;
}

/** The workers of one primary: gives them connections and places, and answers their calls. */
export class WorkerMesh {
  readonly pool: WorkerPool;
  readonly #parts: MeshParts;
  readonly #places: SessionLimiter;
  readonly #kept: Readonly<Record<KeptKind, KeptFiles>> = {
    manifests: new KeptFiles(),
    named: new KeptFiles(),
  };
  readonly #ticketKeys = randomBytes(TICKET_KEY_BYTES).toString("base64");
  readonly #dispatcher: ConnectionDispatcher;
  readonly #watchdog: ProberWatchdog<Worker>;
  readonly #probing: SharedProbing<Worker>;
  readonly #sessions: WorkerSessions<Worker>;
  #reloadedText: string | undefined;
  #isDraining = false;

  constructor(parts: MeshParts) {
    const { configuration, count, logger } = parts;
    this.#parts = parts;
    this.#places = new SessionLimiter(configuration.limits.maxConcurrentSessions, {
      take: (user, namespace) => parts.quotas().take(user, namespace),
    });
    this.#dispatcher = this.#newDispatcher();
    this.#watchdog = new ProberWatchdog({ onHung: (worker) => this.#killHung(worker) });
    this.#probing = new SharedProbing(() => this.pool.workers, {
      onProber: (worker) => (worker === undefined ? this.#watchdog.stop() : this.#watchdog.watch(worker)),
      onFailed: ({ index, process: child }, { message }) =>
        logger.error(
          { worker: index, workerPid: child.pid, problem: message },
          "a worker could not begin to probe for all",
        ),
    });
    this.#sessions = new WorkerSessions(logger);
    this.pool = new WorkerPool({
      count,
      fork: () => fork(workerProgram(), { serialization: "advanced" }),
      startOf: (worker) => this.#startOf(worker),
      handlersFor: (worker) => this.#handlersFor(worker),
      shutdownGracePeriodMs: configuration.timeouts.shutdownGracePeriodMs,
      logger,
      onReady: (worker) => this.#ready(worker),
      onGone: (worker, isExpected) => this.#gone(worker, isExpected),
    });
  }

  /** Gives a worker a connection that a listener has accepted. */
  accept(listener: string, socket: Socket): void {
    this.#dispatcher.accept(listener, socket);
  }

  /** Resolves when all workers serve. */
  async start(): Promise<Component> {
    await this.pool.start();
    return {
      enterLameDuck: (hasSuccessor) => this.pool.enterLameDuck(hasSuccessor),
      drain: async () => {
        this.#isDraining = true;
        await this.#closeListeners();
        await this.pool.shutDown();
      },
      stop: async () => {
        await this.pool.shutDown();
        this.#watchdog.stop();
      },
    };
  }

  /** Every worker applies this configuration, also workers that start later. */
  async reload(text: string): Promise<void> {
    this.#reloadedText = text;
    await Promise.all(this.#taking().map((worker) => this.#reloadWorker(worker)));
  }

  /** Ends a session of any worker, or of another replica. */
  async endSession(request: EndRequest): Promise<EndResult> {
    const [worker] = this.#taking();
    const result = await this.#endInWorkers(request);
    if (result !== "unknown" || worker === undefined) return result;
    return endWithin(4, worker.link.request("endElsewhere", request));
  }

  async #endInWorkers(request: EndRequest): Promise<EndResult> {
    const owner = this.#sessions.ownerOf(request.id);
    return owner === undefined ? "unknown" : endWithin(1, owner.link.request("endSession", request));
  }

  #taking(): readonly Worker[] {
    return this.pool.workers.filter(({ isTaking }) => isTaking);
  }

  #newDispatcher(): ConnectionDispatcher {
    const { configuration, metrics, logger } = this.#parts;
    const edge = new EdgeRules(configuration.edge);
    const ports = listenerPorts(configuration.listeners);
    const proxies = proxiesByListener(ports);
    const secure = new Set(ports.filter(({ scheme }) => scheme === "https").map(({ name }) => name));
    return new ConnectionDispatcher({
      recipients: () => this.pool.workers,
      maxConnectionsPerAddress: configuration.limits.maxConnectionsPerAddress,
      // Only the worker can read, and count, the client's address behind a trusted proxy.
      networkOf: (address, listener) =>
        edge.isTrustedProxy(address) || proxies.get(listener)?.has(address) === true
          ? undefined
          : networkOf(address),
      onRefused: () => metrics.connectionRefused(),
      isTls: (listener) => secure.has(listener),
      lingerTimes: configuration.timeouts,
      clock: new SessionClock(),
      logger,
    });
  }

  #startOf(worker: Worker): WorkerStart {
    const { forWorkers, count, replicaId, adminSocketOf } = this.#parts;
    return {
      ...forWorkers,
      ticketKeys: this.#ticketKeys,
      replicaId,
      isFirst: worker.index === 0,
      workers: count,
      adminSocket: adminSocketOf(worker),
    };
  }

  #handlersFor(worker: Worker): Handlers<PrimaryCalls> {
    const { acceptors, auditLog } = this.#parts;
    return {
      listen: ({ name, ...where }) => acceptors().listen(name, where),
      report: ({ closed, sessions }) => {
        worker.sessions = sessions;
        this.#dispatcher.closed(closed);
      },
      received: (id) => this.#dispatcher.received(id),
      sessionBegan: (info) => this.#sessions.began(worker, info),
      sessionOver: (id) => this.#sessions.over(worker, id),
      takePlace: ({ user, namespace }) => this.#places.acquire(worker, user, namespace),
      giveBack: (place) => {
        this.#places.release(place);
        if (this.#isDraining) void this.#closeListeners();
      },
      wantsFiles: ({ kind, digest }) => this.#kept[kind].wants(digest),
      keepFiles: ({ kind, files }) => this.#kept[kind].keep(files),
      recallFiles: (kind) => this.#kept[kind].files,
      replicaSessions: () => sessionsOf(this.pool),
      endSession: (request) => this.#endInWorkers(request),
      sessionOutput: async (read) => {
        const owner = this.#sessions.lastOwnerOf(read.id);
        return owner ? outputWithin(1, owner.link.request("sessionOutput", read)) : "unknown";
      },
      typeInSession: async (request) => {
        const owner = this.#sessions.lastOwnerOf(request.id);
        return owner ? typedWithin(1, owner.link.request("typeInSession", request)) : "unknown";
      },
      sessionFacts: async (id) => {
        const owner = this.#sessions.ownerOf(id);
        return owner && factsWithin(1, owner.link.request("sessionFacts", id));
      },
      audit: async (lines) => auditLog()?.deliver(lines),
      found: (findings) => this.#probing.found(worker, findings),
    };
  }

  #ready(worker: Worker): void {
    this.#countReady();
    void this.#reloadWorker(worker);
    // Sent before the worker gets its first connection.
    this.#probing.ready(worker);
    this.#dispatcher.resume();
  }

  #gone(worker: Worker, isExpected: boolean): void {
    this.#places.giveBackAllOf(worker);
    this.#sessions.gone(worker);
    if (this.#isDraining) void this.#closeListeners();
    const { exitCode, signalCode } = worker.process;
    this.#dispatcher.forget(worker, signalCode !== null || exitCode !== 0);
    this.#probing.gone(worker, isExpected);
    this.#parts.metrics.gone(worker, isExpected ? "shutdown" : "crash");
    this.#countReady();
  }

  #countReady(): void {
    this.#parts.metrics.workersReady(this.#taking().length);
  }

  async #reloadWorker({ link, index }: Worker): Promise<void> {
    if (this.#reloadedText === undefined) return;
    await link.request("reload", this.#reloadedText).catch((error: Error) => {
      this.#parts.logger.error(
        { worker: index, problem: error.message },
        "a worker did not read the configuration again",
      );
    });
  }

  #killHung({ index, process: child }: Worker): void {
    const silentSeconds = (PROBER_BEAT_MS * MAX_SILENT_BEATS) / 1_000;
    this.#parts.logger.error(
      { worker: index, workerPid: child.pid, silentSeconds },
      "the worker that probes for all does not answer, and is killed",
    );
    child.kill("SIGKILL");
  }

  /** Closes the front door. Other listeners close when no session runs any more. */
  async #closeListeners(): Promise<void> {
    // `places` is more current than the session counts in workers' reports.
    const areOver = this.#places.taken === 0;
    const first = listenerPorts(this.#parts.configuration.listeners).filter(({ closesFirst }) => closesFirst);
    const isFirst = (listener: string) => first.some(({ name }) => name === listener);
    await this.#parts.acceptors().close((name) => areOver || isFirst(name));
  }
}

/**
 * What `fork` starts: a file, or the first argument that starts a worker from the single binary
 * (src/cli/command-line.ts).
 */
function workerProgram(): string {
  return isSingleBinary ? "worker-main" : fileURLToPath(ownProgram("worker-main", import.meta.url));
}
