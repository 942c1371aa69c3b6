import type { CaseLab } from "./case-lab.ts";
import type { EndpointProfile, Transport } from "./endpoint.ts";

/** The groups of cases, in the order in which they run and are reported. */
export const CASE_GROUPS = [
  "negotiation",
  "headers",
  "proxies",
  "errors",
  "exec",
  "attach",
  "cp",
  "port-forward",
  "legacy",
  "framing",
  "closing",
  "slow-reader",
  "backpressure",
  "abrupt-end",
  "sessions",
  "http2",
  "heartbeat",
  "idle",
  "cost",
] as const;

export type CaseGroup = (typeof CASE_GROUPS)[number];

/**
 * "must": Kubernetes' clients fail or lose data without it; it decides the exit code. "should": some clients or networks suffer.
 * "info": measured, never failed.
 */
type Severity = "must" | "should" | "info";

/** Programs that cases run in the container. */
export const PROGRAMS = [
  "sh",
  "cat",
  "seq",
  "head",
  "sleep",
  "stty",
  "tar",
  "mktemp",
  "sha256sum",
  "wc",
  "rm",
] as const;

type Program = (typeof PROGRAMS)[number];

/** One requirement on an endpoint, and its test. */
export interface ConformanceCase {
  /** `group/name` or `group/name/transport`; stable, because baselines compare by it. */
  readonly id: string;
  readonly group: CaseGroup;
  /** One sentence that is true or false of the endpoint. */
  readonly requirement: string;
  /** The effect on users if the sentence is false. */
  readonly why: string;
  /** The KEP, upstream test, issue or RFC behind the requirement. */
  readonly source: string;
  readonly severity: Severity;
  readonly needs: readonly Program[];
  /** Profiles whose servers must meet it; by default all. */
  readonly profiles?: readonly EndpointProfile[] | undefined;
  /** The case runs only if the endpoint accepts this transport. */
  readonly transport?: Transport | undefined;
  /** Needs a TCP echo server on a port of the pod. */
  readonly needsEcho?: boolean | undefined;
  /** The case mostly waits; all such cases run at the same time. */
  readonly isPassive?: boolean | undefined;
  /** Time limit of the case in milliseconds; by default the settings'. */
  readonly timeoutMs?: number | undefined;
  /** Resolves if the requirement is met. Throws Violation and SkippedCase. */
  run(lab: CaseLab): Promise<void>;
}

type CaseOfTransport<T extends Transport> = Omit<ConformanceCase, "id" | "group" | "transport" | "run"> & {
  readonly name: string;
  run(lab: CaseLab, transport: T): Promise<void>;
};

/** The same case for each transport. */
export function onEach<T extends Transport>(
  transports: readonly T[],
  group: CaseGroup,
  { name, run, ...rest }: CaseOfTransport<T>,
): ConformanceCase[] {
  return transports.map((transport) => ({
    ...rest,
    id: `${group}/${name}/${transport}`,
    group,
    transport,
    run: (lab) => run(lab, transport),
  }));
}
