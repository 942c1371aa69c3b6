import type { CaseLab } from "./case-lab.ts";
import type { EndpointProfile } from "./endpoint.ts";
import type { Transport } from "./transports.ts";

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
export type Severity = "must" | "should" | "info";

/** Programs that a case runs in the container. */
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

export type Program = (typeof PROGRAMS)[number];

/** One requirement on an endpoint, and how to try it. */
export interface ConformanceCase {
  /** `group/name` or `group/name/transport`; stable, because baselines compare by it. */
  readonly id: string;
  readonly group: CaseGroup;
  /** One sentence that the endpoint fulfils or not. */
  readonly requirement: string;
  /** What its users meet where it does not. */
  readonly why: string;
  /** The KEP, upstream test, issue or RFC that asks for it. */
  readonly source: string;
  readonly severity: Severity;
  readonly needs: readonly Program[];
  /** Whose servers it is asked of; all unless given. */
  readonly profiles?: readonly EndpointProfile[] | undefined;
  /** The transport that has to be accepted for the case to mean anything. */
  readonly transport?: Transport | undefined;
  /** Needs a port of the pod where a TCP server repeats what it is sent. */
  readonly needsEcho?: boolean | undefined;
  /** It mostly waits: all such cases run at the same time. */
  readonly isPassive?: boolean | undefined;
  /** Bound of the whole case, in milliseconds; the settings' unless given. */
  readonly timeoutMs?: number | undefined;
  /** Resolves where the requirement is met. Throws Violation, and SkippedCase. */
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
