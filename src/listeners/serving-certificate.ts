import { readFile } from "node:fs/promises";
import type { Server } from "node:http";
import { Server as HttpsServer } from "node:https";
import { createSecureContext } from "node:tls";
import type { WatchedAuthority } from "../access/authn/component.ts";
import { watchFolders } from "../cluster/path-watcher.ts";
import type { ListenerTls } from "../config/certificate-files.ts";
import type { Logger } from "../observability/logger.ts";
import { type ServingTls, secureContextOf } from "./serving-tls.ts";

/** Certificate tools write the certificate and then the key: both are read when it has been quiet for this long. */
const SETTLE_MS = 200;

/** Throws when a file can not be read, or OpenSSL can not use what is in it. */
export async function readServingTls(
  files: ListenerTls,
  authorities: readonly WatchedAuthority[],
  ticketKeys?: Buffer | undefined,
): Promise<ServingTls> {
  const [cert, key, ...clientAuthorities] = await Promise.all(
    [files.certFile, files.keyFile, ...authorities.map(({ file }) => file)].map((file) =>
      readFile(file, "utf8"),
    ),
  );
  const tls = { cert: cert as string, key: key as string, clientAuthorities, ticketKeys };
  createSecureContext(secureContextOf(tls));
  return tls;
}

/** Gives the server what was read again; for `watchServingTls`. */
export function replaceTlsOf(server: Server): (tls: ServingTls) => void {
  return (tls) => {
    if (server instanceof HttpsServer) server.setSecureContext(secureContextOf(tls));
  };
}

export interface WatchedTls {
  /** Reads the files now. Never rejects. */
  reload(): Promise<void>;
  stop(): void;
}

/**
 * Keeps a listener's certificate, key and client authorities up with their files, without a restart: handshakes from then on
 * use the new ones, connections go on. Files that do not fit are logged and the old ones stay.
 */
export function watchServingTls(
  replaceTls: (tls: ServingTls) => void,
  files: ListenerTls,
  authorities: readonly WatchedAuthority[],
  logger: Logger,
  ticketKeys?: Buffer | undefined,
): WatchedTls {
  let timer: NodeJS.Timeout | undefined;
  const reload = async (): Promise<void> => {
    try {
      const tls = await readServingTls(files, authorities, ticketKeys);
      for (const [index, { authority }] of authorities.entries()) {
        authority.replace(tls.clientAuthorities[index] ?? "");
      }
      replaceTls(tls);
      logger.info({ certFile: files.certFile }, "the serving certificate was read again");
    } catch (error) {
      logger.error({ error, certFile: files.certFile }, "the serving certificate could not be read again");
    }
  };
  const paths = [files.certFile, files.keyFile, ...authorities.map(({ file }) => file)];
  const stop = watchFolders(paths, {
    onChange: () => {
      clearTimeout(timer);
      timer = setTimeout(() => void reload(), SETTLE_MS).unref();
    },
    onError: (error) => logger.error({ error }, "the serving certificate is no longer watched"),
  });
  return {
    reload,
    stop: () => {
      clearTimeout(timer);
      stop();
    },
  };
}
