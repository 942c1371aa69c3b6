import { type AuditDelivery, openAuditLog } from "../access/audit/component.ts";
import { buildQuotas } from "../access/policy/component.ts";
import type { LastGoodManifests } from "../cluster/manifest-source.ts";
import type { AuditLogFile } from "../config/sections/audit.ts";
import { type Listen, listenAt } from "../net/listen.ts";
import type { LogFields, Logger } from "../observability/logger.ts";
import type { ProbeUpdate } from "../probes/probe-update.ts";
import type { Siblings } from "../sessions/resumable/component.ts";
import type { SessionWatcher } from "../sessions/sessions.ts";
import type { ReplicaSessions } from "./session-directory.ts";

/**
 * The differences between a gateway of one process and one of several. Each component gets only the
 * members that it needs.
 */
export interface Runtime {
  /** False in a worker, which gets its configuration from the primary. */
  readonly readsConfiguration: boolean;
  /** True in only one of the workers, which does the work that a replica needs done once. */
  readonly isFirst?: boolean | undefined;
  readonly listen: Listen;
  readonly buildQuotas: typeof buildQuotas;
  openAuditLog(log: AuditLogFile): AuditDelivery;
  /** Logs lifecycle events. */
  announce(logger: Logger, fields: LogFields, message: string): void;
  /** Absent: this process is the only one. */
  readonly siblings?: Siblings | undefined;
  /** From `newReplicaId`, equal in all processes of a replica; absent: this process makes its own. */
  readonly replicaId?: string | undefined;
  /** Absent: this process is the replica's only one. */
  readonly replicaSessions?: ReplicaSessions | undefined;
  /** Receives this process's sessions; absent: this process is the only one. */
  readonly sessionWatcher?: SessionWatcher | undefined;
  /**
   * Sends probe results to the other processes if one process probes for all; absent: this process
   * probes from its start.
   */
  readonly shareFindings?: ((findings: readonly ProbeUpdate[]) => void) | undefined;
  /**
   * Keeps the last valid manifests for processes that start while the files are invalid; absent: they
   * are not kept.
   */
  readonly lastGoodManifests?: LastGoodManifests | undefined;
  /** Encrypts TLS session tickets; absent: this process generates its own keys. */
  readonly ticketKeys?: Buffer | undefined;
}

/** A gateway that runs in this one process. */
export const singleProcess: Runtime = {
  readsConfiguration: true,
  listen: (server, _name, where) => listenAt(server, where),
  buildQuotas,
  openAuditLog,
  announce: (logger, fields, message) => logger.info(fields, message),
};
