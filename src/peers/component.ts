// src/peers: the other replicas of the gateway: where they are, mutual TLS, relayed resumptions,
// session lists
import type { Server } from "node:http";
import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { namedFilesAreRight, readNamedFile } from "@sluice/client/internal/config/named-file-text";
import { UpstreamTls } from "@sluice/client/internal/net/tls";
import { CertificateAuthority } from "../access/authn/certificate-authority.ts";
import type { WatchedAuthority } from "../access/authn/component.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { GatewayConfiguration } from "../config/configuration.ts";
import { watchFolders } from "../config/path-watcher.ts";
import type { PeersListener } from "../config/sections/listeners.ts";
import { type Component, Started } from "../lifecycle/component.ts";
import { readServingTls, watchServingTls } from "../listeners/serving-certificate.ts";
import type { ServingTls } from "../listeners/serving-tls.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { ReplicaName, type SessionKeys } from "../sessions/resumable/session-owner.ts";
import { PeerAddresses } from "./peer-addresses.ts";
import { PeerClient } from "./peer-client.ts";
import { createPeerServer, type PeerServerParts, replacePeerTls } from "./peer-server.ts";
import { Peers } from "./peers.ts";

const LEAST_KEY_CHARACTERS = 32;
/**
 * Session keys: the current, the previous and the next one. Checking a wrong name costs a MAC for
 * each. Past it the file is refused.
 */
const MAX_SESSION_KEYS = 4;
/**
 * How long a changed file must rest before it is read: a mounted Secret changes in several steps.
 */
const SETTLE_MS = 200;

/** Throws RangeError, which describes the fault in the file and contains no key. */
export function parseSessionKeys(text: string): SessionKeys["current"] {
  const lines = text.split("\n").flatMap((line) => line.trim() || []);
  const [first, ...more] = lines.map((line) => Buffer.from(line));
  if (first === undefined || lines.length > MAX_SESSION_KEYS) {
    throw new RangeError(`must hold 1 to ${MAX_SESSION_KEYS} keys, one a line, got ${lines.length}`);
  }
  const short = lines.findIndex((line) => line.length < LEAST_KEY_CHARACTERS);
  if (short >= 0) {
    throw new RangeError(`key ${short + 1} must have at least ${LEAST_KEY_CHARACTERS} characters`);
  }
  return [first, ...more];
}

/** A file's keys, reloaded when it changes. An invalid file is logged, and the old keys stay. */
class WatchedSessionKeys implements SessionKeys {
  current: SessionKeys["current"];
  readonly #file: string;
  readonly #logger: Logger;
  readonly #stop: () => void;
  #timer: NodeJS.Timeout | undefined;

  private constructor(file: string, current: SessionKeys["current"], logger: Logger) {
    this.#file = file;
    this.#logger = logger;
    this.current = current;
    this.#stop = watchFolders([file], {
      onChange: () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(() => void this.reload(), SETTLE_MS).unref();
      },
      onError: (error) => logger.error({ error }, "the session keys are no longer watched"),
    });
  }

  /** Rejects if the file cannot be read, and with RangeError for invalid content. */
  static async open(file: string, logger: Logger): Promise<WatchedSessionKeys> {
    return new WatchedSessionKeys(file, parseSessionKeys(await readNamedFile(file)), logger);
  }

  /** Never rejects. */
  async reload(): Promise<void> {
    try {
      const text = await readNamedFile(this.#file);
      this.current = parseSessionKeys(text);
      namedFilesAreRight([{ name: this.#file, text }]);
    } catch (error) {
      this.#logger.error({ error, file: this.#file }, "the session keys could not be read again");
    }
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#stop();
  }
}

interface BuiltPeers extends Component {
  readonly name: ReplicaName;
  readonly peers: Peers;
  /** Creates the server for the other replicas' requests, not yet listening. Call it once. */
  createServer(parts: Pick<PeerServerParts, "sessions" | "gateway" | "answerRecordings">): Server;
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
