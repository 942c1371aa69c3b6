/** Sizes and bounds of a run; times in milliseconds. */
export interface LabSettings {
  /** The time limit for name lookup, TCP and TLS, and again for the response head. */
  readonly dialTimeoutMs: number;
  /** The time limit for one step of a case, such as an answer or the end of a session. */
  readonly stepTimeoutMs: number;
  /** The time limit for a case without its own. */
  readonly caseTimeoutMs: number;
  /** Bytes of a bulk transfer in each direction. */
  readonly bulkBytes: number;
  /** Bytes of output that the client reads slowly, and its rate in bytes per second. */
  readonly slowBytes: number;
  readonly slowRate: number;
  /** How long a client, or a command, stops reading. */
  readonly stallMs: number;
  /** How long a session carries only PINGs. */
  readonly heartbeatMs: number;
  /** Multiplies the silences of 60, 120 and 300 s. */
  readonly idleScale: number;
  /** Concurrent sessions. */
  readonly parallelSessions: number;
  /** The port of a TCP server in the pod that echoes its input, and ends when its client does. */
  readonly echoPort?: number | undefined;
  /** The main process echoes its input, and cases may write to it. */
  readonly mayAttachInput: boolean;
  /**
   * After this time no further cases start, except those that wait; the rest are skipped. With a
   * limit, groups take turns.
   */
  readonly budgetMs: number;
}

/** For a first look: every kind of case with smaller sizes, in less than a minute. */
export const quickLabSettings: Partial<LabSettings> = {
  dialTimeoutMs: 5_000,
  stepTimeoutMs: 5_000,
  caseTimeoutMs: 12_000,
  bulkBytes: 4 * 1024 * 1024,
  slowBytes: 4 * 1024 * 1024,
  stallMs: 1_000,
  heartbeatMs: 6_000,
  idleScale: 0.02,
  parallelSessions: 5,
  budgetMs: 35_000,
};
