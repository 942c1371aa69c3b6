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
}

export const defaultLabSettings: LabSettings = {
  dialTimeoutMs: 10_000,
  stepTimeoutMs: 10_000,
  caseTimeoutMs: 60_000,
  bulkBytes: 64 * 1024 * 1024,
};
