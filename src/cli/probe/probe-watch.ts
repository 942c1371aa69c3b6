import type { Pod } from "../../api/objects.ts";
import type { ProbeResult } from "../../probes/probe-result.ts";
import { type ProbeKind, ProbeResults, type ProbeTiming } from "../../probes/worker/probe-results.ts";
import { ProbeWorker } from "../../probes/worker/probe-worker.ts";
import { runRound } from "../../probes/worker/prober.ts";
import { TimerWheel } from "../../probes/worker/timer-wheel.ts";

const MAX_MESSAGE_CHARACTERS = 500;

interface WatchOptions {
  readonly what: string;
  readonly kind: ProbeKind;
  readonly timing: ProbeTiming;
  readonly attempt: () => Promise<ProbeResult>;
  /** Ends after this many rounds; absent: at a signal. */
  readonly maxRounds?: number | undefined;
  readonly write: (text: string) => void;
  /** On a terminal the table is redrawn; elsewhere it grows. */
  readonly isTerminal: boolean;
}

const SHOWN_ROWS = 15;
const CLEAR_SCREEN = "\u001b[H\u001b[2J";
const WORKER = "watch";
const KEEP_ALIVE_MS = 60_000;

/**
 * Probes repeatedly with the kubelet's own worker, and shows its counters. Resolves to whether the
 * target was healthy at the end.
 */
export class ProbeWatch {
  readonly #options: WatchOptions;
  readonly #results = new ProbeResults();
  readonly #rows: string[] = [];
  readonly #startedAt = new Date();
  readonly #worker: ProbeWorker;
  #rounds = 0;
  #restarts = 0;
  #finish: () => void = () => {};

  constructor(options: WatchOptions) {
    this.#options = options;
    const { kind, timing } = options;
    this.#worker = new ProbeWorker({
      kind,
      podUid: WORKER,
      containerName: WORKER,
      timing,
      wheel: new TimerWheel(),
      results: this.#results,
      readPod: () => this.#pod(),
      isStarted: () => kind !== "Startup",
      runRound: () => this.#round(),
      onStopped: () => {},
      onCrash: (error) => {
        throw error;
      },
      wallClockMs: Date.now,
    });
  }

  /** Runs until `signal` aborts, or the last round ends. */
  async run(signal: AbortSignal): Promise<boolean> {
    const { kind, timing, what, write } = this.#options;
    if (!this.#options.isTerminal) write(`${headOf(kind, timing, what)}\n${COLUMNS}\n`);
    // The wheel's timer does not keep the process alive, and between rounds nothing else does.
    const alive = setInterval(() => {}, KEEP_ALIVE_MS);
    await new Promise<void>((resolve) => {
      this.#finish = resolve;
      signal.addEventListener("abort", () => resolve());
      this.#worker.start();
    });
    clearInterval(alive);
    const isHealthy = this.#results.get(this.#containerId) === "Success";
    this.#worker.stop();
    return isHealthy;
  }

  async #round(): Promise<"Success" | "Failure" | undefined> {
    const { kind, attempt } = this.#options;
    const startMs = performance.now();
    let last: ProbeResult | undefined;
    const result = await runRound(
      kind,
      async () => {
        last = await attempt();
        return last;
      },
      () => {},
    );
    const latencyMs = performance.now() - startMs;
    // The worker judges the result only after this promise resolves.
    setImmediate(() => this.#show(last, latencyMs));
    return result;
  }

  #show(last: ProbeResult | undefined, latencyMs: number): void {
    if (last === undefined) return;
    const { write, isTerminal, kind, timing, what, maxRounds } = this.#options;
    this.#rounds++;
    const { isOnHold, resultRun, lastResult } = this.#worker;
    const believed = this.#results.get(this.#containerId);
    const threshold = lastResult === "Failure" ? timing.failureThreshold : timing.successThreshold;
    const counted = isOnHold ? threshold : Math.min(resultRun, threshold);
    const cells = [
      String(this.#rounds).padStart(4),
      (last.error === undefined ? last.result : "dropped").padEnd(8),
      `${latencyMs.toFixed(1)} ms`.padStart(10),
      (last.error === undefined ? `${counted}/${threshold} ${lastResult}` : "-").padEnd(12),
      stateOf(kind, believed).padEnd(12),
      oneLine(last.error ?? last.message).slice(0, 100),
    ];
    const row = cells.join("  ").trimEnd();
    this.#rows.push(row);
    const restart = isOnHold && kind !== "Readiness" && believed === "Failure" ? this.#restart() : undefined;
    if (restart !== undefined) this.#rows.push(restart);
    this.#rows.splice(0, Math.max(0, this.#rows.length - SHOWN_ROWS));
    if (isTerminal) {
      write(`${CLEAR_SCREEN}${headOf(kind, timing, what)}\n${COLUMNS}\n${this.#rows.join("\n")}\n`);
    } else {
      write(`${row}\n${restart === undefined ? "" : `${restart}\n`}`);
    }
    const isOver = isOnHold && restart === undefined;
    if (isOver || this.#rounds === maxRounds) this.#finish();
  }

  /**
   * A container that the kubelet would restart gets a new id, so the worker continues as with its
   * successor.
   */
  #restart(): string {
    this.#restarts++;
    return `      the kubelet restarts the container here (${this.#restarts})`;
  }

  get #containerId(): string {
    return `watch://${this.#restarts}`;
  }

  #pod(): Pod {
    const running = { startedAt: this.#startedAt.toISOString() };
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: WORKER },
      spec: { containers: [{ name: WORKER }] },
      status: {
        phase: "Running",
        containerStatuses: [{ name: WORKER, containerID: this.#containerId, state: { running } }],
      },
    };
  }
}

const COLUMNS = "   #  result       latency  in a row      state         message";

function headOf(kind: ProbeKind, timing: ProbeTiming, what: string): string {
  const { periodSeconds, timeoutSeconds, successThreshold, failureThreshold } = timing;
  return (
    `${kind} probe, ${what}: every ${periodSeconds} s, time-out ${timeoutSeconds} s, ` +
    `thresholds ${successThreshold} up, ${failureThreshold} down`
  );
}

function stateOf(kind: ProbeKind, believed: string | undefined): string {
  const isGood = believed === "Success";
  if (kind === "Readiness") return isGood ? "ready" : "not ready";
  if (kind === "Startup") return isGood ? "started" : "not started";
  return isGood ? "alive" : "dead";
}

/** Describes one run for a reader: verdict, latency, wire facts, and the cause. */
export function reportText(
  what: string,
  { result, message, error, wire }: ProbeResult,
  latencyMs: number,
  cause: string | undefined,
): string {
  const rows: [string, string | undefined][] = [
    ["latency", `${latencyMs.toFixed(1)} ms`],
    ["error", error],
    ["message", message === "" ? undefined : oneLine(message)],
    ["protocol", wire.protocol],
    ["status", wire.status === undefined ? undefined : String(wire.status)],
    ["grpc status", wire.grpcStatus],
    [
      "certificate",
      wire.certificate === undefined ? undefined : `${oneLine(wire.certificate)} (not verified)`,
    ],
    ["redirects", wire.redirects?.join(" -> ")],
    ["likely cause", cause],
  ];
  const lines = rows.flatMap(([name, value]) =>
    value === undefined ? [] : [`  ${name.padEnd(13)}${value}\n`],
  );
  const verdict = error === undefined ? result : `${result} (the kubelet drops this round)`;
  return `${verdict}  ${what}\n${lines.join("")}`;
}

/** Servers may write anything, so control characters never reach the terminal. */
export function oneLine(text: string): string {
  const shown = text.length > MAX_MESSAGE_CHARACTERS ? `${text.slice(0, MAX_MESSAGE_CHARACTERS)}...` : text;
  const line = shown.trimEnd().replace(/\r?\n/g, " | ");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is replaced
  return line.replace(/[\x00-\x1f\x7f-\x9f]/g, "\u{fffd}");
}
