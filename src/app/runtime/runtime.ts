import type { AddressInfo, Server } from "node:net";
import { type AuditDelivery, openAuditLog } from "../../access/audit/component.ts";
import { SessionQuotas } from "../../access/policy/session-quotas.ts";
import type { LastGoodManifests } from "../../cluster/manifest-source.ts";
import type { AuditLogFile } from "../../config/audit.ts";
import type { SessionPolicy } from "../../config/policy.ts";
import type { LogFields, Logger } from "../../observability/logger.ts";
import type { ProbeUpdate } from "../../probes/probe-update.ts";
import type { Quotas } from "../../sessions/context.ts";

export interface ListenAddress {
  readonly address: string;
  readonly port: number;
}

export interface Siblings {
  /** How many. */
  readonly processes: number;
  /** Where they meet: a folder that nobody else may enter. */
  readonly socketFolder: string;
}

/** What a gateway has from outside of itself, and what is different where several processes are one gateway. */
export interface Runtime {
  /** Makes the server take connections. `name` is the listener's in the configuration. Resolves with where it is. */
  listen(server: Server, name: string, where: ListenAddress): Promise<ListenAddress>;
  quotasOf(limits: SessionPolicy["limits"]): Quotas;
  openAuditLog(log: AuditLogFile): AuditDelivery;
  /** Says what happened to this process, where the process that stands for the gateway says it to operators. */
  announce(logger: Logger, fields: LogFields, message: string): void;
  /** Connections of one client reach several processes, this one included, each of which knows only its own sessions. */
  readonly siblings?: Siblings | undefined;
  /** Tells the other processes what was found, where one probes for all; absent: this process probes from its start. */
  readonly shareFindings?: ((findings: readonly ProbeUpdate[]) => void) | undefined;
  /** Where manifests that were right are kept for processes that start while they are wrong; absent: this process is the only one. */
  readonly lastGoodManifests?: LastGoodManifests | undefined;
  /** What TLS tickets are encrypted with; absent: this process' own. */
  readonly ticketKeys?: Buffer | undefined;
}

export function urlOf(scheme: string, { address, port }: ListenAddress): string {
  return `${scheme}://${address.includes(":") ? `[${address}]` : address}:${port}`;
}

/** Where the listeners are: fields of the line "the gateway is ready", whether one process serves or several. */
export interface ListenerUrls {
  readonly apiServerUrl: string;
  readonly adminUrl: string;
  /** Absent where this is no node. */
  readonly kubeletUrl?: string | undefined;
  readonly ingress?: { readonly httpUrl: string; readonly httpsUrl: string } | undefined;
}

/** Every listener's URL, by the listener's name in the configuration. */
export function urlsByListener({
  apiServerUrl,
  adminUrl,
  kubeletUrl,
  ingress,
}: ListenerUrls): Readonly<Record<string, string | undefined>> {
  return {
    apiServer: apiServerUrl,
    admin: adminUrl,
    kubelet: kubeletUrl,
    "ingress.http": ingress?.httpUrl,
    "ingress.https": ingress?.httpsUrl,
  };
}

/** One process that is all of the gateway. */
export const singleProcess: Runtime = {
  listen: (server, _name, { address, port }) =>
    new Promise((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, address, () => {
        server.off("error", reject);
        resolve(server.address() as AddressInfo);
      });
    }),
  quotasOf: (limits) => new SessionQuotas(limits),
  openAuditLog,
  announce: (logger, fields, message) => logger.info(fields, message),
};
