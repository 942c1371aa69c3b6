import { readNamedFile } from "@sluice/client/internal/config/named-file-text";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { parseAuditPolicy } from "../../config/audit-policy.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import type { AuditLogFile } from "../../config/sections/audit.ts";
import { type Component, Started } from "../../lifecycle/component.ts";
import type { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import type { Logger } from "../../observability/logger.ts";
import type { Metrics } from "../../observability/metrics.ts";
import { webhookClient } from "../webhook-client.ts";
import { AuditFile } from "./audit-file.ts";
import { type AuditBackend, AuditLog, METADATA_OF_EVERYTHING } from "./audit-log.ts";
import { DeliveryThrottle, EventQueue, type EventQueueOptions, EventsRefused } from "./event-queue.ts";

type Audit = GatewayConfiguration["audit"];
type AuditWebhook = NonNullable<Audit["webhook"]>;

/**
 * Events that wait for an unwritable audit log, about 1 KiB each. Past it audit.onFailure decides:
 * 503, or the event is lost and counted.
 */
const MAX_QUEUED_FOR_FILE = 10_000;
/**
 * Characters of the events that wait for one backend: an event with objects may exceed 100 KiB.
 * Past it audit.onFailure decides.
 */
const MAX_QUEUED_CHARACTERS = 64 * 1024 * 1024;
/**
 * Characters of one delivery (--audit-webhook-truncate-max-batch-size). Past it further events go
 * with the next delivery; a longer event goes alone.
 */
const MAX_BATCH_CHARACTERS = 10 * 1024 * 1024;
const MAX_FILE_BATCH = 1_000;
/** Unless a request waits for the write, the events of this period are written together. */
const FILE_WAIT_MS = 50;
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 30_000;

export interface BuiltAudit extends Component {
  /** Undefined if audit is off. */
  readonly audit: AuditLog | undefined;
  stop(): Promise<void>;
}

/**
 * Throws ConfigurationError for an invalid policy file. `onFailure` applies to every request while
 * the log cannot be written.
 */
export async function buildAudit(
  audit: Audit,
  metrics: Metrics,
  logger: Logger,
  upstreams: UpstreamTlsFiles,
  openLog: (log: AuditLogFile) => AuditDelivery = openAuditLog,
): Promise<BuiltAudit> {
  return await Started.building(async (started) => {
    const { policyFile, log, webhook, onFailure } = audit;
    const policy =
      policyFile === undefined
        ? METADATA_OF_EVERYTHING
        : parseAuditPolicy(await readNamedFile(policyFile), policyFile);
    const observed = (
      backend: "log" | "webhook",
    ): Omit<
      EventQueueOptions,
      "deliver" | "maxQueuedEvents" | "maxBatchEvents" | "maxWaitMs" | "retryMs" | "maxRetryMs"
    > => ({
      onStored: (count) => metrics.access.auditEvents(backend, "stored", count),
      maxQueuedCharacters: MAX_QUEUED_CHARACTERS,
      maxBatchCharacters: MAX_BATCH_CHARACTERS,
      onLost: (count) => metrics.access.auditEvents(backend, "lost", count),
      onFailure: (error) => {
        metrics.access.auditFailed(backend);
        logger.error({ backend, problem: systemErrorText(error) }, "audit events could not be stored");
      },
    });
    const backends: AuditBackend[] = [];
    if (log !== undefined) {
      const { deliver } = started.add(openLog(log), (it) => it.stop());
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
      const { deliver } = started.add(await webhookDelivery(webhook, upstreams), (it) => it.stop());
      const { mode, maxBatchEvents, maxQueuedEvents, maxWaitMs, initialBackoffMs, throttle } = webhook;
      const isBlocking = mode === "blocking";
      const queue = new EventQueue({
        deliver,
        maxBatchEvents,
        maxQueuedEvents,
        maxWaitMs,
        retryMs: initialBackoffMs,
        maxRetryMs: Math.max(MAX_RETRY_MS, initialBackoffMs),
        // Waiting requests must not wait for other deliveries.
        throttle:
          throttle && !isBlocking ? new DeliveryThrottle(throttle, () => performance.now()) : undefined,
        ...observed("webhook"),
      });
      backends.push({ queue, isBlocking });
    }
    const built =
      backends.length === 0
        ? undefined
        : started.add(new AuditLog({ policy, backends, onFailure }), (it) => it.stop());
    return {
      audit: built,
      ...(built !== undefined && onFailure === "refuse" && { health: () => built.refusal }),
      stop: () => started.stop(),
    };
  });
}

export interface AuditDelivery {
  /** Delivers events as JSON lines. */
  deliver(lines: readonly string[]): Promise<void>;
  stop(): void | Promise<void>;
}

/** Opens the log file. Only one process may write and rotate it. */
export function openAuditLog({ path, ...options }: AuditLogFile): AuditDelivery {
  if (path === undefined) return { deliver: writeToStandardOutput, stop: () => {} };
  const file = new AuditFile({ path, ...options });
  return { deliver: (lines) => file.append(lines), stop: () => file.close() };
}

function writeToStandardOutput(lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${line}\n`).join("");
  return new Promise((resolve, reject) =>
    process.stdout.write(text, (error) => (error ? reject(error) : resolve())),
  );
}

/** Statuses for which sending the same events again would change nothing. */
const EVENTS_AT_FAULT: readonly number[] = [400, 413, 422];

async function webhookDelivery(webhook: AuditWebhook, upstreams: UpstreamTlsFiles): Promise<AuditDelivery> {
  const { target, timeoutMs } = webhook;
  const client = await webhookClient(target, {
    defaultPath: "/",
    timeoutMs,
    use: "auditWebhook",
    upstreams,
  });
  return {
    deliver: async (lines) => {
      const { status } = await client.ask(
        Buffer.from(
          `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[${lines.join(",")}]}`,
        ),
      );
      if (EVENTS_AT_FAULT.includes(status)) throw new EventsRefused(`the audit webhook answered ${status}`);
      if (status < 200 || status > 299) throw new Error(`the audit webhook answered ${status}`);
    },
    stop: client.stop,
  };
}
