import { checked, table, type ValueOf } from "@sluice/client/internal/config/field";
import { boolean, string } from "@sluice/client/internal/config/fields";
import type { Section } from "@sluice/client/internal/config/section";
import { duration } from "../number-fields.ts";

const RENEWAL = { from: "100ms", to: "1h" } as const;
/** client-go's random share of the retry period; the deadline must leave room for a second try. */
const JITTER = 1.2;

/** Names follow Kubernetes' LeaderElectionConfiguration. */
const commonFields = {
  leaderElect: boolean("Elect one replica to write; otherwise every replica writes.", { default: true }),
  leaseDuration: duration(
    "How long other replicas wait after the last renewal that they saw, in whole seconds. Past it another replica takes over.",
    {
      default: "15s",
      from: "1s",
      to: "1h",
    },
  ),
  renewDeadline: duration(
    "How long a leader keeps writing without a renewal; less than `leaseDuration`. Past it, it writes nothing.",
    {
      default: "10s",
      ...RENEWAL,
    },
  ),
  retryPeriod: duration("Time between attempts to acquire or renew the Lease.", {
    default: "2s",
    ...RENEWAL,
  }),
  resourceNamespace: string(
    "Namespace of the Lease. Absent: that of the kubeconfig's context, or of the pod.",
    { check: checkName },
  ),
};

const ingressFields = table({
  ...commonFields,
  resourceName: string("Name of the Lease.", { default: "sluice-ingress", check: checkName }),
});

export type LeaderElectionSettings = ValueOf<typeof ingressFields>;

/** Elects the writer of Ingress statuses. */
export const leaderElection = checked(ingressFields, checkTimes);

/** Elects the prober of pods. */
export const proberElection = checked(
  table({
    ...commonFields,
    resourceName: string(
      "Name of the Lease. Absent: `sluice-probes-` and a digest of `nodeNames`, so that gateways of other nodes use their own.",
      { check: checkName },
    ),
  }),
  checkTimes,
);

function checkTimes(
  {
    leaseDurationMs,
    renewDeadlineMs,
    retryPeriodMs,
  }: Pick<LeaderElectionSettings, "leaseDurationMs" | "renewDeadlineMs" | "retryPeriodMs">,
  section: Section,
): void {
  if (leaseDurationMs % 1_000 !== 0) section.problem("leaseDuration", "must be whole seconds");
  if (leaseDurationMs <= renewDeadlineMs) {
    section.problem("leaseDuration", "must be more than renewDeadline");
  }
  if (renewDeadlineMs <= retryPeriodMs * JITTER) {
    section.problem("renewDeadline", `must be more than ${JITTER} times retryPeriod`);
  }
}

function checkName(value: string): string | undefined {
  const isName = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(value);
  return isName ? undefined : "must be a DNS-1123 subdomain";
}
