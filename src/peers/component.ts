// src/peers: the other replicas of the gateway: where they are, mutual TLS, relayed resumptions,
// session lists

import type { Server } from "node:http";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { UpstreamTls } from "@sluice/client/internal/net/tls";
import { CertificateAuthority } from "../access/authn/certificate-authority.ts";
import type { WatchedAuthority } from "../access/authn/component.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import type { PeersListener } from "../config/sections/peers-listener.ts";
import type { Component } from "../lifecycle/component.ts";
import { Started } from "../lifecycle/started.ts";
import { readServingTls, watchServingTls } from "../listeners/serving-certificate.ts";
import type { ServingTls } from "../listeners/serving-tls.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { ReplicaName } from "../sessions/resumable/replica-name.ts";
import { PeerAddresses } from "./peer-addresses.ts";
import { PeerClient } from "./peer-client.ts";
import { createPeerServer, type PeerServerParts, replacePeerTls } from "./peer-server.ts";
import { Peers } from "./peers.ts";
import { WatchedSessionKeys } from "./session-keys.ts";

interface BuiltPeers extends Component {
  readonly name: ReplicaName;
  readonly peers: Peers;
  /** Creates the server for the other replicas' requests, not yet listening. Call it once. */
  createServer(parts: Pick<PeerServerParts, "sessions" | "gateway">): Server;
}

interface PeersParts {
  readonly store: Pick<Cluster, "list">;
  /** This replica's id, the same for all of its processes. */
  readonly replicaId: string;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/** Connects to the other replicas on demand. Throws ConfigurationError for unreadable or invalid files. */
export async function buildPeers(
  settings: PeersListener,
  { limits, timeouts }: Pick<GatewayConfiguration, "limits" | "timeouts">,
  { store, replicaId, metrics, logger }: PeersParts,
): Promise<BuiltPeers> {
  return await Started.building(async (started) => {
    const { certificateAuthorityFile, name: tlsName, ...files } = settings.tls;
    const { authority, tls } = await readTls(files, certificateAuthorityFile);
    const keys = started.add(
      await WatchedSessionKeys.open(settings.sessionKeyFile, logger).catch((error: Error) => {
        throw wrongFile(settings.sessionKeyFile, error);
      }),
      (it) => it.stop(),
    );
    let current = tls;
    let server: Server | undefined;
    const client = new PeerClient(clientTlsOf(tls, tlsName), timeouts);
    const watched = started.add(
      watchServingTls(
        (next) => {
          current = next;
          client.tls = clientTlsOf(next, tlsName);
          if (server !== undefined) replacePeerTls(server, next);
        },
        {
          files,
          current: tls,
          authorities: [authority],
          logger,
          onServed: (cert) => metrics.operations.certificateServed("peers", cert),
        },
      ),
      (it) => it.stop(),
    );
    const name = new ReplicaName(replicaId, keys);
    const peers = new Peers({
      addresses: new PeerAddresses(settings, limits.maxPeers, store, logger),
      client,
      id: name.id,
      maxRelays: limits.maxPeerRelays,
      responseMs: timeouts.peerDialMs,
      onRelay: (result) => metrics.resumption.relayed(result),
    });
    metrics.resumption.observeRelays(() => peers.relays);
    return {
      name,
      peers,
      createServer: (parts) => {
        server = createPeerServer({ ...parts, tls: current, name: tlsName, replica: name.id });
        return server;
      },
      reload: async () => {
        await Promise.all([watched.reload(), keys.reload()]);
      },
      stop: () => started.stop(),
    };
  });
}

async function readTls(
  files: Pick<PeersListener["tls"], "certFile" | "keyFile">,
  authorityFile: string,
): Promise<{ readonly authority: WatchedAuthority; readonly tls: ServingTls }> {
  const tls = await readServingTls(files, [{ file: authorityFile }]);
  const [pem = ""] = tls.clientAuthorities;
  return { authority: { file: authorityFile, authority: new CertificateAuthority(pem, true) }, tls };
}

/** A replica uses its serving certificate as its client certificate, too. */
function clientTlsOf({ cert, key, clientAuthorities }: ServingTls, serverName: string): UpstreamTls {
  return new UpstreamTls({ ca: clientAuthorities[0], certificate: cert, key, serverName });
}

function wrongFile(source: string, { message }: Error): ConfigurationError {
  return new ConfigurationError([{ source, line: 0, column: 0, path: "", message }]);
}
