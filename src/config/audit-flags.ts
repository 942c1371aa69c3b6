import {
  type Audit,
  type AuditLogFile,
  type AuditThrottle,
  type AuditWebhook,
  defaultAuditLogFile,
  defaultAuditThrottle,
  defaultAuditWebhook,
  STANDARD_OUTPUT,
} from "./audit.ts";
import { booleanFlag, choiceFlag, countFlag, durationFlag, type FlagReader } from "./flag-values.ts";

const WEBHOOK_FLAGS = [
  "audit-webhook-version",
  "audit-webhook-mode",
  "audit-webhook-initial-backoff",
  "audit-webhook-batch-buffer-size",
  "audit-webhook-batch-max-size",
  "audit-webhook-batch-max-wait",
  "audit-webhook-batch-throttle-enable",
  "audit-webhook-batch-throttle-qps",
  "audit-webhook-batch-throttle-burst",
] as const;

/** kube-apiserver's flags about who writes down what. */
export const AUDIT_FLAGS = [
  "audit-policy-file",
  "audit-log-path",
  "audit-log-maxsize",
  "audit-log-maxage",
  "audit-log-maxbackup",
  "audit-webhook-config-file",
  ...WEBHOOK_FLAGS,
] as const;
export type AuditFlag = (typeof AUDIT_FLAGS)[number];

type Flags = FlagReader<AuditFlag>;

const MEGABYTE = 1024 * 1024;
const MODES = ["batch", "blocking", "blocking-strict"] as const;

export function mergeAuditFlags(file: Audit, flags: Flags): Audit {
  const mode = choiceFlag("audit-webhook-mode", flags, MODES);
  return {
    policyFile: flags.file("audit-policy-file", "audit policy") ?? file.policyFile,
    log: logOf(file.log, flags),
    webhook: webhookOf(file.webhook, mode, flags),
    // What a failure means is said once, for all backends; this mode says it too.
    onFailure: mode === "blocking-strict" ? "refuse" : file.onFailure,
  };
}

function logOf(file: AuditLogFile | undefined, flags: Flags): AuditLogFile | undefined {
  const given = flags.text("audit-log-path");
  if (given === undefined && file === undefined) return undefined;
  const { path, maxBytes, maxAgeDays, maxBackups } = file ?? { path: undefined, ...defaultAuditLogFile };
  const megabytes = countFlag("audit-log-maxsize", flags);
  return {
    path: given === undefined ? path : given === STANDARD_OUTPUT ? undefined : flags.file("audit-log-path"),
    // 0 is kube-apiserver's way to say the default.
    maxBytes:
      megabytes === undefined
        ? maxBytes
        : megabytes === 0
          ? defaultAuditLogFile.maxBytes
          : megabytes * MEGABYTE,
    maxAgeDays: countFlag("audit-log-maxage", flags) ?? maxAgeDays,
    maxBackups: countFlag("audit-log-maxbackup", flags) ?? maxBackups,
  };
}

function webhookOf(
  file: AuditWebhook | undefined,
  mode: (typeof MODES)[number] | undefined,
  flags: Flags,
): AuditWebhook | undefined {
  const kubeconfig = flags.file("audit-webhook-config-file", "webhook kubeconfig");
  choiceFlag("audit-webhook-version", flags, ["audit.k8s.io/v1"]);
  const base: AuditWebhook | undefined =
    kubeconfig === undefined
      ? file
      : {
          mode: "batch",
          throttle: defaultAuditThrottle,
          ...(file ?? defaultAuditWebhook),
          target: { kind: "kubeconfig", file: kubeconfig },
        };
  if (base === undefined) {
    for (const name of WEBHOOK_FLAGS) {
      if (flags.text(name) !== undefined) flags.refuse(name, "needs --audit-webhook-config-file too");
    }
    return undefined;
  }
  return {
    ...base,
    mode: mode === undefined ? base.mode : mode === "batch" ? "batch" : "blocking",
    maxQueuedEvents: countFlag("audit-webhook-batch-buffer-size", flags, 1) ?? base.maxQueuedEvents,
    maxBatchEvents: countFlag("audit-webhook-batch-max-size", flags, 1) ?? base.maxBatchEvents,
    maxWaitMs: durationFlag("audit-webhook-batch-max-wait", flags) ?? base.maxWaitMs,
    initialBackoffMs: durationFlag("audit-webhook-initial-backoff", flags) ?? base.initialBackoffMs,
    throttle: throttleOf(base.throttle, flags),
  };
}

function throttleOf(base: AuditThrottle | undefined, flags: Flags): AuditThrottle | undefined {
  const isEnabled = booleanFlag("audit-webhook-batch-throttle-enable", flags) ?? base !== undefined;
  const { perSecond, burst } = base ?? defaultAuditThrottle;
  const throttle = {
    perSecond: countFlag("audit-webhook-batch-throttle-qps", flags, 1) ?? perSecond,
    burst: countFlag("audit-webhook-batch-throttle-burst", flags, 1) ?? burst,
  };
  return isEnabled ? throttle : undefined;
}
