import type { Section } from "./section.ts";

/** Which of several replicas writes to a live API. The names are those of Kubernetes' LeaderElectionConfiguration. */
export interface LeaderElectionSettings {
  /** False: this gateway writes, whoever else does. */
  readonly leaderElect: boolean;
  /** How long the others wait after the last renewal that they saw. Whole seconds: the Lease holds it so. */
  readonly leaseDurationMs: number;
  /** After that long without a renewal of its own the leader stops writing. Less than the lease's duration. */
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly resourceName: string;
  /** Undefined: the namespace of the kubeconfig's context, or of the pod. */
  readonly resourceNamespace: string | undefined;
}

const SECOND_MS = 1_000;
const LEASE_RANGE = { min: SECOND_MS, max: 3_600 * SECOND_MS };
const RENEWAL_RANGE = { min: 100, max: 3_600 * SECOND_MS };
/** client-go's random share of the retry period: the deadline must leave room for a second try. */
const JITTER = 1.2;

export function readLeaderElection(section: Section): LeaderElectionSettings {
  const settings = {
    leaderElect: section.boolean("leaderElect", true),
    leaseDurationMs: section.durationMs("leaseDuration", 15 * SECOND_MS, LEASE_RANGE),
    renewDeadlineMs: section.durationMs("renewDeadline", 10 * SECOND_MS, RENEWAL_RANGE),
    retryPeriodMs: section.durationMs("retryPeriod", 2 * SECOND_MS, RENEWAL_RANGE),
    resourceName: section.string("resourceName", "sluice-ingress", checkName),
    resourceNamespace: section.optionalString("resourceNamespace", checkName),
  };
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs } = settings;
  if (leaseDurationMs % SECOND_MS !== 0) section.problem("leaseDuration", "must be whole seconds");
  if (leaseDurationMs <= renewDeadlineMs) {
    section.problem("leaseDuration", "must be more than renewDeadline");
  }
  if (renewDeadlineMs <= retryPeriodMs * JITTER) {
    section.problem("renewDeadline", `must be more than ${JITTER} times retryPeriod`);
  }
  section.finish();
  return settings;
}

function checkName(value: string): string | undefined {
  const isName = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(value);
  return isName ? undefined : "must be a DNS-1123 subdomain";
}
