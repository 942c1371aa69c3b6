import type { Server } from "node:http";
import { Server as HttpsServer } from "node:https";
import { createSecureContext } from "node:tls";
import type { WatchedAuthority } from "../access/authn/component.ts";
import { watchFolders } from "../cluster/path-watcher.ts";
import type { ListenerTls } from "../config/certificate-files.ts";
import { namedFilesAreRight, readNamedFile } from "../config/named-file-text.ts";
import type { Logger } from "../observability/logger.ts";
import { type ServingTls, secureContextOf } from "./serving-tls.ts";

/** Certificate tools write the certificate and then the key: both are read when it has been quiet for this long. */
const SETTLE_MS = 200;

/** Throws when a file cannot be read, or OpenSSL cannot use its content. */
export async function readServingTls(
  files: ListenerTls,
  authorities: readonly Pick<WatchedAuthority, "file">[],
  ticketKeys?: Buffer | undefined,
): Promise<ServingTls> {
  const [cert, key, ...clientAuthorities] = await Promise.all(
    [files.certFile, files.keyFile, ...authorities.map(({ file }) => file)].map((file) =>
      readNamedFile(file),
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

export interface WatchedTlsOptions {
  readonly files: ListenerTls;
  /** What the listener serves now. */
  readonly current: Pick<ServingTls, "cert" | "key" | "clientAuthorities">;
  readonly authorities: readonly WatchedAuthority[];
  readonly logger: Logger;
  readonly ticketKeys?: Buffer | undefined;
  /** Called with the chain that is served now, and with each that replaces it. */
  readonly onServed: (cert: string) => void;
}

/**
 * Reloads a listener's certificate, key and client authorities when their files change: new handshakes use them. Files that do not fit
 * are logged, and the old ones stay.
 */
export function watchServingTls(
  replaceTls: (tls: ServingTls) => void,
  { files, current, authorities, logger, ticketKeys, onServed }: WatchedTlsOptions,
): WatchedTls {
  let timer: NodeJS.Timeout | undefined;
  const paths = [files.certFile, files.keyFile, ...authorities.map(({ file }) => file)];
  let served = textsOf(current);
  onServed(current.cert);
  const reload = async (): Promise<void> => {
    try {
      const tls = await readServingTls(files, authorities, ticketKeys);
      const texts = textsOf(tls);
      if (texts.every((text, index) => text === served[index])) return;
      for (const [index, { authority }] of authorities.entries()) {
        authority.replace(tls.clientAuthorities[index] ?? "");
      }
      replaceTls(tls);
      served = texts;
      onServed(tls.cert);
      namedFilesAreRight(paths.map((name, index) => ({ name, text: texts[index] as string })));
      logger.info({ certFile: files.certFile }, "the serving certificate was read again");
    } catch (error) {
      logger.error({ error, certFile: files.certFile }, "the serving certificate could not be read again");
    }
  };
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

/** In the order of their files. */
function textsOf({ cert, key, clientAuthorities }: WatchedTlsOptions["current"]): readonly string[] {
  return [cert, key, ...clientAuthorities];
}
