/** Sizes and bounds of a run; times in milliseconds. */
export interface LabSettings {
  /** Name lookup, TCP and TLS; and again for the response head. */
  readonly dialTimeoutMs: number;
  /** One step of a case: an answer, the end of a session. */
  readonly stepTimeoutMs: number;
  /** A case that does not name its own bound. */
  readonly caseTimeoutMs: number;
  /** Bytes of a bulk transfer, each way. */
  readonly bulkBytes: number;
  /** Output that is read slowly, and how fast, in bytes per second. */
  readonly slowBytes: number;
  readonly slowRate: number;
  /** How long a client does not read, or a command does not. */
  readonly stallMs: number;
  /** A session that is idle but for PINGs. */
  readonly heartbeatMs: number;
  /** What 60, 120 and 300 s of silence are multiplied by. */
  readonly idleScale: number;
  /** Sessions at once. */
  readonly parallelSessions: number;
  /** Where a TCP server in the pod repeats what it is sent, and ends when its client has. */
  readonly echoPort?: number | undefined;
  /** The main process repeats its input, and may be written to. */
  readonly mayAttachInput: boolean;
  /** When cases that do not only wait begin no more, and are skipped. With a bound, each group has its turn. */
  readonly budgetMs: number;
}

export const defaultLabSettings: LabSettings = {
  dialTimeoutMs: 20_000,
  stepTimeoutMs: 20_000,
  caseTimeoutMs: 120_000,
  bulkBytes: 64 * 1024 * 1024,
  slowBytes: 16 * 1024 * 1024,
  slowRate: 4 * 1024 * 1024,
  stallMs: 3_000,
  heartbeatMs: 12_000,
  idleScale: 1,
  parallelSessions: 20,
  mayAttachInput: false,
  budgetMs: Number.POSITIVE_INFINITY,
};

/** For a first look: every kind of case, with less of everything, in less than a minute. */
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
