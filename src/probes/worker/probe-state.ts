/** One container's probe as `/debug/probes` shows it: without any request, output or response. */
export interface ProbeState {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly probe: "Liveness" | "Readiness" | "Startup";
  /** The verdict about the container; absent: none yet. */
  readonly result?: string | undefined;
  /** The outcome of the last counted round, and the number of equal outcomes in a row. */
  readonly lastRound?: string | undefined;
  readonly rounds: number;
  /** Cause and time of the last unsuccessful round. */
  readonly lastFailure?: { readonly cause: string | undefined; readonly at: Date } | undefined;
}
