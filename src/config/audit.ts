import type { Range } from "./limits.ts";
import type { Section } from "./section.ts";
import { readWebhookTarget, type WebhookTarget } from "./webhook-target.ts";

/** Who writes down what was asked for and how it ended. Without a log and a webhook nobody does. */
export interface Audit {
  /** An audit.k8s.io/v1 Policy; absent: metadata of everything. */
  readonly policyFile: string | undefined;
  readonly log: AuditLogFile | undefined;
  readonly webhook: AuditWebhook | undefined;
  /** A request whose event can not be stored: refused with 503, or it goes on and the loss is counted. */
  readonly onFailure: "refuse" | "continue";
}

export interface AuditLogFile {
  /** Undefined: standard output. */
  readonly path: string | undefined;
  readonly maxBytes: number;
  readonly maxAgeDays: number;
  readonly maxBackups: number;
}

/** Gets POSTs of audit.k8s.io/v1 EventLists. */
export interface AuditWebhook {
  readonly target: WebhookTarget;
  readonly timeoutMs: number;
  /** `blocking`: a request waits until its event is there. `batch`: it does not. */
  readonly mode: AuditWebhookMode;
  readonly maxBatchEvents: number;
  readonly maxWaitMs: number;
  /** Wait after the first failed delivery; doubled each time. */
  readonly initialBackoffMs: number;
  /** Deliveries that may leave at once, and how many a second may follow. Undefined: as many as there are. */
  readonly throttle: AuditThrottle | undefined;
  /** Events that wait for it. Past it: refused or lost, by `onFailure`. */
  readonly maxQueuedEvents: number;
}

export const AUDIT_WEBHOOK_MODES = ["batch", "blocking"] as const;
export type AuditWebhookMode = (typeof AUDIT_WEBHOOK_MODES)[number];

export interface AuditThrottle {
  readonly perSecond: number;
  readonly burst: number;
}

/** Backups are bounded, unlike kube-apiserver's: whoever may send requests could fill the disk otherwise. */
export const defaultAuditLogFile = { maxBytes: 100 * 1024 * 1024, maxAgeDays: 0, maxBackups: 10 } as const;
/** kube-apiserver's, but for the waits: 30 s of unrecorded sessions is a long time for a shell, and so are 10 s after a hiccup. */
export const defaultAuditWebhook = {
  timeoutMs: 10_000,
  maxBatchEvents: 400,
  maxWaitMs: 1_000,
  maxQueuedEvents: 10_000,
  initialBackoffMs: 1_000,
} as const;
export const defaultAuditThrottle: AuditThrottle = { perSecond: 10, burst: 15 };

export const STANDARD_OUTPUT = "-";

const COUNT: Range = { min: 1, max: 1_000_000 };

export function readAudit(section: Section): Audit {
  const audit = {
    policyFile: section.optionalFile("policyFile", "audit policy"),
    log: section.has("log") ? readLog(section.section("log")) : undefined,
    webhook: section.has("webhook") ? readWebhook(section.section("webhook")) : undefined,
    onFailure: section.choice("onFailure", "refuse", ["refuse", "continue"]),
  };
  section.finish();
  return audit;
}

function readLog(section: Section): AuditLogFile | undefined {
  const name = section.optionalString("path");
  const path = name === STANDARD_OUTPUT ? undefined : section.optionalFile("path");
  if (!section.has("path")) section.problem("path", `is required; ${STANDARD_OUTPUT} is standard output`);
  const { maxBytes, maxAgeDays, maxBackups } = defaultAuditLogFile;
  const log = {
    path,
    maxBytes: section.bytes("maxBytes", maxBytes, { min: 64 * 1024, max: 2 ** 40 }),
    maxAgeDays: section.count("maxAgeDays", maxAgeDays, { min: 0, max: 36_500 }),
    maxBackups: section.count("maxBackups", maxBackups, { min: 0, max: 1_000_000 }),
  };
  section.finish();
  return name === undefined ? undefined : log;
}

function readWebhook(section: Section): AuditWebhook | undefined {
  const target = readWebhookTarget(section, "https://audit.example.com/events");
  const { timeoutMs, maxBatchEvents, maxWaitMs, maxQueuedEvents, initialBackoffMs } = defaultAuditWebhook;
  const webhook = {
    mode: section.choice("mode", "batch", AUDIT_WEBHOOK_MODES),
    timeoutMs: section.durationMs("timeout", timeoutMs, { min: 100, max: 60_000 }),
    maxBatchEvents: section.count("maxBatchEvents", maxBatchEvents, COUNT),
    maxWaitMs: section.durationMs("maxWait", maxWaitMs, { min: 1, max: 600_000 }),
    maxQueuedEvents: section.count("maxQueuedEvents", maxQueuedEvents, COUNT),
    initialBackoffMs: section.durationMs("initialBackoff", initialBackoffMs, { min: 10, max: 600_000 }),
    throttle: readThrottle(section.section("throttle")),
  };
  section.finish();
  return target === undefined ? undefined : { target, ...webhook };
}

function readThrottle(section: Section): AuditThrottle | undefined {
  const throttle = {
    perSecond: section.count("perSecond", defaultAuditThrottle.perSecond, COUNT),
    burst: section.count("burst", defaultAuditThrottle.burst, COUNT),
  };
  const isEnabled = section.boolean("enabled", true);
  section.finish();
  return isEnabled ? throttle : undefined;
}
