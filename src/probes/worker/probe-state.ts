/** One probe of one container as `/debug/probes` shows it: nothing that a container was asked, wrote or answered. */
export interface ProbeState {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly probe: "Liveness" | "Readiness" | "Startup";
  /** What is believed of the container; absent: nothing yet. */
  readonly result?: string | undefined;
  /** How the last round that counted ended, and how many in a row ended so. */
  readonly lastRound?: string | undefined;
  readonly rounds: number;
  /** Why the last round that was not a success failed, and when that was. */
  readonly lastFailure?: { readonly cause: string | undefined; readonly at: Date } | undefined;
}
