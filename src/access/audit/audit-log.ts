import { serviceUnavailable } from "../../api/status.ts";
import type { AuditPolicyDocument } from "../../config/audit-policy.ts";
import type { Attributes } from "../authz/authorizer.ts";
import type { AuditEvent } from "./audit-event.ts";
import { type AuditDecision, auditDecision } from "./audit-policy.ts";
import type { EventQueue } from "./event-queue.ts";
import { writeEvent } from "./write-event.ts";

export interface AuditBackend {
  readonly queue: EventQueue;
  /** The event is stored before the request goes on; otherwise it is on its way. */
  readonly isBlocking: boolean;
}

export interface AuditLogOptions {
  readonly policy: AuditPolicyDocument;
  readonly backends: readonly AuditBackend[];
  /** The effect on a request whose event cannot be stored: `refuse` it with 503, or `continue` and count the loss. */
  readonly onFailure: "refuse" | "continue";
}

const AUDIT_REFUSES = "audit events cannot be stored: every request is refused (audit.onFailure)";

/** Where events go, and the effect of a failure. */
export class AuditLog {
  readonly #options: AuditLogOptions;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  decide(attributes: Attributes): AuditDecision {
    return auditDecision(this.#options.policy, attributes);
  }

  /**
   * Before a request goes on: stores its event, if there is one for this stage, in every backend. Throws StatusError 503 when one of
   * them cannot and the configuration says `refuse`.
   */
  async admit(event: AuditEvent | undefined): Promise<void> {
    const line = event && writeEvent(event);
    const admissions = this.#options.backends.map((backend) => this.#admitTo(backend, line));
    const isStored = (await Promise.all(admissions)).every((stored) => stored);
    if (isStored || this.#options.onFailure === "continue") return;
    throw serviceUnavailable("the audit log is not available; no request goes on without it");
  }

  /** Why every request is refused, if so: what could not be stored is tried again until it can. */
  get refusal(): string | undefined {
    const { backends, onFailure } = this.#options;
    const isFailing = backends.some(({ queue }) => queue.failure !== undefined && queue.waiting > 0);
    return onFailure === "refuse" && isFailing ? AUDIT_REFUSES : undefined;
  }

  /** For all later stages: what has begun is not taken back. */
  record(event: AuditEvent): void {
    const line = writeEvent(event);
    for (const { queue } of this.#options.backends) queue.push(line);
  }

  /** Delivers what waits, for as long as the first failure, and ends. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#options.backends.map(async ({ queue }) => {
        await queue.flush().catch(() => {});
        queue.stop();
      }),
    );
  }

  async #admitTo({ queue, isBlocking }: AuditBackend, line: string | undefined): Promise<boolean> {
    const hasRoom = line === undefined || queue.push(line);
    if (this.#options.onFailure === "continue" || !hasRoom) return hasRoom;
    if (!isBlocking) return queue.failure === undefined;
    // Tried anew for every request, so that the first one after the trouble goes through.
    return queue.flush().then(
      () => true,
      () => false,
    );
  }
}
