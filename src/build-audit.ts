import { readFile } from "node:fs/promises";
import type { AuditEvent } from "./access/audit/audit-event.ts";
import { AuditFile } from "./access/audit/audit-file.ts";
import { type AuditBackend, AuditLog } from "./access/audit/audit-log.ts";
import { METADATA_OF_EVERYTHING } from "./access/audit/audit-policy.ts";
import { DeliveryThrottle } from "./access/audit/delivery-throttle.ts";
import { EventQueue, type EventQueueOptions } from "./access/audit/event-queue.ts";
import type { Audit, AuditLogFile, AuditWebhook } from "./config/audit.ts";
import { parseAuditPolicy } from "./config/audit-policy.ts";
import type { Logger } from "./observability/logger.ts";
import type { Metrics } from "./observability/metrics.ts";
import { webhookClient } from "./webhook-client.ts";

/** Events that wait for a file that can not be written. Each is about 1 KiB. */
const MAX_QUEUED_FOR_FILE = 10_000;
const MAX_FILE_BATCH = 1_000;
/** Where nobody waits for the write, events of this long are written together. */
const FILE_WAIT_MS = 50;
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

export interface BuiltAudit {
  /** Undefined: nothing is recorded anywhere. */
  readonly audit: AuditLog | undefined;
  stop(): Promise<void>;
}

/** Throws ConfigurationError for a wrong policy file. A log that can not be written is a matter of `onFailure`, at every request. */
export async function buildAudit(
  audit: Audit,
  metrics: Metrics,
  logger: Logger,
  openLog: (log: AuditLogFile) => AuditDelivery = openAuditLog,
): Promise<BuiltAudit> {
  const { policyFile, log, webhook, onFailure } = audit;
  const policy =
    policyFile === undefined
      ? METADATA_OF_EVERYTHING
      : parseAuditPolicy(await readFile(policyFile, "utf8"), policyFile);
  const observed = (
    backend: "log" | "webhook",
  ): Pick<EventQueueOptions, "onStored" | "onLost" | "onFailure"> => ({
    onStored: (count) => metrics.access.auditEvents(backend, "stored", count),
    onLost: (count) => metrics.access.auditEvents(backend, "lost", count),
    onFailure: (error) => {
      metrics.access.auditFailed(backend);
      logger.error({ backend, problem: error.message }, "audit events could not be stored");
    },
  });
  const backends: AuditBackend[] = [];
  const stops: (() => void | Promise<void>)[] = [];
  if (log !== undefined) {
    const { deliver, stop } = openLog(log);
    stops.push(stop);
    const queue = new EventQueue({
      deliver,
      maxQueuedEvents: MAX_QUEUED_FOR_FILE,
      maxBatchEvents: MAX_FILE_BATCH,
      maxWaitMs: FILE_WAIT_MS,
      retryMs: RETRY_MS,
      maxRetryMs: MAX_RETRY_MS,
      ...observed("log"),
    });
    backends.push({ queue, isBlocking: true });
  }
  if (webhook !== undefined) {
    const { deliver, stop } = await webhookDelivery(webhook);
    stops.push(stop);
    const { mode, maxBatchEvents, maxQueuedEvents, maxWaitMs, initialBackoffMs, throttle } = webhook;
    const isBlocking = mode === "blocking";
    const queue = new EventQueue({
      deliver,
      maxBatchEvents,
      maxQueuedEvents,
      maxWaitMs,
      retryMs: initialBackoffMs,
      maxRetryMs: Math.max(MAX_RETRY_MS, initialBackoffMs),
      // Requests that wait must not wait for others' deliveries.
      throttle: throttle && !isBlocking ? new DeliveryThrottle(throttle, () => performance.now()) : undefined,
      ...observed("webhook"),
    });
    backends.push({ queue, isBlocking });
  }
  const built = backends.length === 0 ? undefined : new AuditLog({ policy, backends, onFailure });
  return {
    audit: built,
    stop: async () => {
      await built?.stop();
      for (const stop of stops) await stop();
    },
  };
}

export interface AuditDelivery {
  deliver(events: readonly AuditEvent[]): Promise<void>;
  stop(): void | Promise<void>;
}

/** One process writes a log file: it is the one that renames it. */
export function openAuditLog({ path, ...options }: AuditLogFile): AuditDelivery {
  if (path === undefined) return { deliver: writeToStandardOutput, stop: () => {} };
  const file = new AuditFile({ path, ...options });
  return { deliver: (events) => file.append(events), stop: () => file.close() };
}

function writeToStandardOutput(events: readonly AuditEvent[]): Promise<void> {
  const text = events.map((event) => `${JSON.stringify(event)}\n`).join("");
  return new Promise((resolve, reject) =>
    process.stdout.write(text, (error) => (error ? reject(error) : resolve())),
  );
}

async function webhookDelivery(webhook: AuditWebhook): Promise<AuditDelivery> {
  const { target, timeoutMs } = webhook;
  const client = await webhookClient(target, { defaultPath: "/", timeoutMs });
  return {
    deliver: async (items) => {
      const { status } = await client.ask({
        kind: "EventList",
        apiVersion: "audit.k8s.io/v1",
        metadata: {},
        items,
      });
      if (status < 200 || status > 299) throw new Error(`the audit webhook answered ${status}`);
    },
    stop: client.stop,
  };
}
