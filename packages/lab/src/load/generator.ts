// packages/lab/load: the load generator: plans, seeded streams, sessions, processes, reports

import { monitorEventLoopDelay } from "node:perf_hooks";
import { finished } from "node:stream/promises";
import {
  type ExecutorOptions,
  type PortForwardDialer,
  SpdyDialer,
  SpdyExecutor,
  type Target,
  TunnelDialer,
  WebSocketExecutor,
} from "@sluice/client";
import { legacyForward } from "./legacy-forward.ts";
import { type LoadPlan, type LoadShare, shareOf } from "./load-plan.ts";
import { type Carrier, LoadSession } from "./load-session.ts";
import { type Interval, LoadError, Recorder } from "./recorder.ts";

const INTERVAL_MS = 1_000;
const TICK_MS = 50;
/**
 * In a closed model, the shortest time between two requests of one slot to a server that refuses.
 */
const RETRY_MS = 1_000;
const LAG_RESOLUTION_MS = 10;

/** One process' part of a load: starts sessions when due, and reports every second. */
export class Generator {
  readonly #plan: LoadPlan;
  readonly #share: LoadShare;
  readonly #carry: Carrier;
  readonly #emit: (interval: Interval) => void;
  readonly #recorder = new Recorder();
  readonly #running = new Set<LoadSession>();
  readonly #startMs: number;
  readonly #places: number;
  readonly #count: number;
  readonly #perSecond: number;
  readonly #retryAtMs: number[] = [];
  readonly #lag = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  #started = 0;
  #intervals = 0;
  #cpu = process.cpuUsage();
  #cpuAtMs = performance.now();
  #isStopping = false;
  #stopsAtMs: number;
  #endsAtMs: number;

  constructor(plan: LoadPlan, share: LoadShare, target: Target, emit: (interval: Interval) => void) {
    this.#plan = plan;
    this.#share = share;
    this.#carry = carrierOf(plan, target);
    this.#emit = emit;
    this.#startMs = share.startAtMs - performance.timeOrigin;
    this.#places = shareOf(plan.sessions, share);
    this.#count = plan.count === 0 ? Number.POSITIVE_INFINITY : shareOf(plan.count, share);
    this.#perSecond = plan.arrivalsPerSecond / share.processes;
    this.#stopsAtMs = this.#startMs + plan.durationMs;
    this.#endsAtMs = this.#stopsAtMs + plan.timeoutMs;
  }

  /** Resolves when every session is over and the last interval was reported. */
  run(): Promise<void> {
    this.#lag.enable();
    return new Promise((resolve) => {
      const timer = setInterval(() => {
        this.#tick(performance.now());
        if (!this.#isOver) return;
        clearInterval(timer);
        this.#report();
        this.#lag.disable();
        resolve();
      }, TICK_MS);
    });
  }

  /**
   * Starts no new sessions or messages. Messages in flight may still return within the plan's
   * timeout.
   */
  stop(): void {
    this.#stopsAtMs = Math.min(this.#stopsAtMs, performance.now());
    this.#endsAtMs = Math.min(this.#endsAtMs, this.#stopsAtMs + this.#plan.timeoutMs);
  }

  get #isOver(): boolean {
    return this.#running.size === 0 && (this.#isStopping || this.#started >= this.#count);
  }

  #tick(nowMs: number): void {
    if (nowMs < this.#startMs && nowMs < this.#stopsAtMs) {
      this.#measureAnew(nowMs);
      return;
    }
    if (nowMs >= this.#stopsAtMs && !this.#isStopping) {
      this.#isStopping = true;
      for (const session of this.#running) session.finish();
    }
    if (!this.#isStopping) this.#startDue(nowMs);
    for (const session of this.#running) {
      if (nowMs >= this.#endsAtMs) session.interrupt();
      else session.tick(nowMs);
    }
    if (nowMs - this.#startMs >= (this.#intervals + 1) * INTERVAL_MS) this.#report();
  }

  #startDue(nowMs: number): void {
    if (this.#perSecond > 0) this.#startArrivals(nowMs);
    else this.#fillPlaces(nowMs);
  }

  /**
   * Open model: sessions arrive by the clock. An arrival that finds no free slot is an error; it
   * does not wait.
   */
  #startArrivals(nowMs: number): void {
    for (;;) {
      const dueMs = this.#startMs + this.#arrivalMs(this.#started);
      if (dueMs > nowMs || this.#started >= this.#count) return;
      if (this.#running.size < this.#places) this.#start(dueMs);
      else {
        this.#started += 1;
        this.#recorder.counts.failed += 1;
        const text = `${this.#plan.sessions} sessions run already (--sessions)`;
        this.#recorder.error(new LoadError("generator", "too-many-sessions", text));
      }
    }
  }

  /**
   * The time when the n-th arrival is due. Processes take turns, and during the ramp the rate grows
   * from zero (n = r t^2 / 2T).
   */
  #arrivalMs(index: number): number {
    const { rampMs } = this.#plan;
    const n = index + this.#share.index / this.#share.processes;
    const perMs = this.#perSecond / 1_000;
    const inRamp = (perMs * rampMs) / 2;
    return n < inRamp ? Math.sqrt((2 * n * rampMs) / perMs) : rampMs + (n - inRamp) / perMs;
  }

  /** Closed model: each session that ends is replaced. */
  #fillPlaces(nowMs: number): void {
    const { rampMs } = this.#plan;
    const share = rampMs === 0 ? 1 : Math.min(1, (nowMs - this.#startMs) / rampMs);
    const open = Math.min(this.#places, Math.max(1, Math.ceil(this.#places * share)));
    while (this.#retryAtMs.length > 0 && (this.#retryAtMs[0] as number) <= nowMs) this.#retryAtMs.shift();
    while (this.#running.size + this.#retryAtMs.length < open && this.#started < this.#count)
      this.#start(nowMs);
  }

  #start(dueMs: number): void {
    const number = this.#started * this.#share.processes + this.#share.index;
    const session = new LoadSession(this.#plan, this.#recorder, number, dueMs);
    this.#started += 1;
    this.#running.add(session);
    void session.run(this.#carry).then(() => {
      this.#running.delete(session);
      if (session.hasFailed) this.#retryAtMs.push(performance.now() + RETRY_MS);
    });
  }

  #report(): void {
    const nowMs = performance.now();
    const { user, system } = process.cpuUsage(this.#cpu);
    const cpuShare = (user + system) / 1_000 / Math.max(1, nowMs - this.#cpuAtMs);
    const lagMs = Math.max(0, this.#lag.max / 1e6 - LAG_RESOLUTION_MS);
    const untilMs = Math.max(0, nowMs - this.#startMs);
    this.#emit(this.#recorder.interval(this.#intervals, { untilMs, cpuShare, lagMs }));
    this.#intervals += 1;
    this.#measureAnew(nowMs);
  }

  /** Excludes this process' CPU time before the start. */
  #measureAnew(nowMs: number): void {
    this.#cpu = process.cpuUsage();
    this.#cpuAtMs = nowMs;
    this.#lag.reset();
  }
}

function carrierOf(plan: LoadPlan, target: Target): Carrier {
  const options = { dialTimeoutMs: plan.timeoutMs, responseHeaderTimeoutMs: plan.timeoutMs };
  return plan.kind === "port-forward"
    ? forwardCarrier(plan, target, options)
    : commandCarrier(plan, target, options);
}

function commandCarrier({ protocol, path }: LoadPlan, target: Target, options: ExecutorOptions): Carrier {
  const executor =
    protocol === "spdy"
      ? new SpdyExecutor(target, () => path, options)
      : new WebSocketExecutor(target, () => path, options, [
          protocol === "ws-v4" ? "v4.channel.k8s.io" : "v5.channel.k8s.io",
        ]);
  return async (stdin, stdout, signal) => {
    const { exitCode, message } = await executor.stream({ stdin, stdout, signal });
    if (exitCode !== 0) throw new LoadError("session", `exit code ${exitCode}`, message);
  };
}

function forwardCarrier(plan: LoadPlan, target: Target, options: ExecutorOptions): Carrier {
  const { protocol, path, port } = plan;
  if (protocol === "legacy") return legacyForward(target, path, options);
  const dialer: PortForwardDialer =
    protocol === "spdy" ? new SpdyDialer(target, path, options) : new TunnelDialer(target, path, options);
  return async (input, output, signal) => {
    const connection = await dialer.dial(signal);
    try {
      const stream = connection.openStream(port);
      const onAbort = (): void => void stream.destroy(new LoadError("session", "aborted", "aborted"));
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      try {
        if (input === undefined) stream.end();
        else input.pipe(stream);
        stream.pipe(output, { end: false });
        await finished(stream);
      } finally {
        signal.removeEventListener("abort", onAbort);
        input?.unpipe(stream);
      }
    } finally {
      connection.close();
    }
  };
}
