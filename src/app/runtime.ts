import { type AuditDelivery, openAuditLog } from "../access/audit/component.ts";
import { buildQuotas } from "../access/policy/component.ts";
import type { AdminSession } from "../admin/admin-server.ts";
import type { LastGoodManifests } from "../cluster/manifest-source.ts";
import type { AuditLogFile } from "../config/sections/audit.ts";
import { type Listen, listenAt } from "../net/listen.ts";
import type { LogFields, Logger } from "../observability/logger.ts";
import type { ProbeUpdate } from "../probes/probe-update.ts";
import type { Siblings } from "../sessions/resumable/component.ts";
import type { SessionWatcher } from "../sessions/sessions.ts";

/** What differs between a gateway that is one process and one that is several. Each component is given only its part of it. */
export interface Runtime {
  /** False in a worker, which gets its configuration from the primary. */
  readonly readsConfiguration: boolean;
  /** False in workers but one: what one process does for the whole replica. */
  readonly isFirst?: boolean | undefined;
  readonly listen: Listen;
  readonly buildQuotas: typeof buildQuotas;
  openAuditLog(log: AuditLogFile): AuditDelivery;
  /** Logs lifecycle events. */
  announce(logger: Logger, fields: LogFields, message: string): void;
  /** Absent: this process is the only one. */
  readonly siblings?: Siblings | undefined;
  /** Of `newReplicaId`: the same for all processes of a replica; absent: this process makes its own. */
  readonly replicaId?: string | undefined;
  /** The sessions of all processes of this replica; absent: this process is the only one. */
  readonly listReplicaSessions?: (() => Promise<readonly AdminSession[]>) | undefined;
  /** Is notified of this process's sessions; absent: this process is the only one. */
  readonly sessionWatcher?: SessionWatcher | undefined;
  /** Notifies the other processes of probe results, where one probes for all; absent: this process probes from its start. */
  readonly shareFindings?: ((findings: readonly ProbeUpdate[]) => void) | undefined;
  /** Where manifests that were right are kept for processes that start while they are wrong; absent: nowhere. */
  readonly lastGoodManifests?: LastGoodManifests | undefined;
  /** What TLS tickets are encrypted with; absent: keys of this process. */
  readonly ticketKeys?: Buffer | undefined;
}

/** Where the listeners are: fields of the line "the gateway is ready", whether one process serves or several. */
export interface ListenerUrls {
  /** Absent where only the front door or a node leg has ports. */
  readonly apiServerUrl?: string | undefined;
  readonly adminUrl: string;
  /** Absent where this is no node. */
  readonly kubeletUrl?: string | undefined;
  /** Absent where there is no other replica. */
  readonly peersUrl?: string | undefined;
  readonly ingress?: { readonly httpUrl: string; readonly httpsUrl: string } | undefined;
}

/** Every listener's URL, by the listener's name in the configuration. */
export function urlsByListener({
  apiServerUrl,
  adminUrl,
  kubeletUrl,
  peersUrl,
  ingress,
}: ListenerUrls): Readonly<Record<string, string | undefined>> {
  return {
    apiServer: apiServerUrl,
    admin: adminUrl,
    kubelet: kubeletUrl,
    peers: peersUrl,
    "ingress.http": ingress?.httpUrl,
    "ingress.https": ingress?.httpsUrl,
  };
}

/** One process that is all of the gateway. */
export const singleProcess: Runtime = {
  readsConfiguration: true,
  listen: (server, _name, where) => listenAt(server, where),
  buildQuotas,
  openAuditLog,
  announce: (logger, fields, message) => logger.info(fields, message),
};
