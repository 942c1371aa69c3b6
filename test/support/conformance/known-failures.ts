import type { ConformanceReport } from "../../../packages/lab/src/conformance/conformance-report.ts";

/**
 * A defect of a peer that a case found and that the peer's source explains. A row in
 * docs/evidence/conformance.md has its text.
 */
export interface KnownFailure {
  readonly cases: RegExp;
  readonly text: string;
}

/**
 * Defects of Kubernetes' streaming servers: kubelet, API server and containerd use the same
 * library.
 */
export const TRUNCATION: KnownFailure = {
  cases: /^slow-reader\/[^/]+\/(?:websocket-|spdy$)/,
  text: "kubernetes #142376: the server closes its socket while the client still sends, and the reset discards what was not read",
};
export const ATTACH_WITHOUT_INPUT: KnownFailure = {
  cases: /^attach\/stays-open\/websocket-v4$/,
  text: "cri-streaming gives containerd an input that is at its end where none was asked for (wsstream `websocketChannel.Read`), and containerd ends an attach when its input ends",
};

export const UNREAD_INPUT: KnownFailure = {
  cases: /^closing\/unread-input\//,
  text: "containerd (1.6.20, 1.7.24 and 2.1.9) waits for its copy of the input into a fifo that nothing reads once the command has ended (`ExecIO.Attach`): more unread input than the pipes hold, 64 KiB twice, and no status comes",
};

/** The ids of failed cases that no known defect explains. */
export function unexplained({ cases }: ConformanceReport, known: readonly KnownFailure[] = []): string[] {
  return cases
    .filter(({ id, verdict }) => verdict === "failed" && !known.some((one) => one.cases.test(id)))
    .map(({ id, note }) => `${id}: ${note}`);
}
