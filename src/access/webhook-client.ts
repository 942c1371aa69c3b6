import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import type { PemSource } from "@sluice/client/internal/config/key-pair";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import type { WebhookTarget, WebhookUrl } from "@sluice/client/internal/config/sections/webhook-target";
import { systemErrorReason } from "@sluice/client/internal/config/system-error";
import { parseWebhookKubeconfig } from "@sluice/client/internal/config/webhook-kubeconfig";
import { askJson, type JsonAnswer } from "@sluice/client/internal/http/upstream/ask-json";
import { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import { addressOfUrl } from "@sluice/client/internal/net/dial";
import { inClusterServer } from "@sluice/client/internal/net/in-cluster-server";
import { UpstreamTls, type UpstreamTlsOptions } from "@sluice/client/internal/net/tls";
import type { ReadFile } from "../net/followed-files.ts";
import { tlsOptionsOf, type UpstreamTlsFiles, type UpstreamUse } from "../net/upstream-tls-files.ts";
import type { Logger } from "../observability/logger.ts";

interface WebhookClient {
  /** A Buffer already contains JSON. */
  ask(body: unknown): Promise<JsonAnswer>;
  stop(): void;
}

interface WebhookClientOptions {
  /**
   * Completes a configured URL without a path. As in kube-apiserver, a kubeconfig's URL stays
   * unchanged.
   */
  readonly defaultPath: string;
  readonly timeoutMs: number;
  /** For logs and metrics. */
  readonly use: UpstreamUse;
  readonly upstreams: UpstreamTlsFiles;
  /** The folder of the pod's ServiceAccount, if it is not the usual one. */
  readonly serviceAccountFolder?: string | undefined;
}

/**
 * Concurrent connections to one webhook, and so concurrent reviews. Past it requests wait for a
 * connection.
 */
const MAX_WEBHOOK_CONNECTIONS = 64;

/**
 * A client that POSTs JSON to one service and reads its files anew. Throws ConfigurationError if a
 * kubeconfig or one of its files is unreadable or invalid.
 */
export async function webhookClient(
  target: WebhookTarget,
  { defaultPath, timeoutMs, use, upstreams, serviceAccountFolder }: WebhookClientOptions,
): Promise<WebhookClient> {
  const read = (file: ReadFile) =>
    target.kind === "kubeconfig"
      ? targetOfKubeconfig(target.file, file)
      : targetOfUrl(
          target.kind === "url" ? target : inClusterServer(process.env, serviceAccountFolder),
          defaultPath,
          file,
        );
  const connected = ({ address, tls, ...rest }: ServerTarget) => {
    if (tls !== undefined) upstreams.note(use, tls);
    const endpoint = { ...address, tls: tls && tlsOf(target, tls) };
    const maxConnections = MAX_WEBHOOK_CONNECTIONS;
    return { ...rest, upstream: new HttpUpstream({ endpoint, dialTimeoutMs: timeoutMs, maxConnections }) };
  };
  const first = await upstreams.follow(use, read, (next) => {
    const previous = current.upstream;
    current = connected(next);
    previous.close();
  });
  let current = connected(first);
  return {
    ask: async (body) => {
      const { upstream, path, token, tokenFile } = current;
      const bearerToken = tokenFile === undefined ? token : (await readUpTo(tokenFile)).toString().trim();
      return askJson(upstream, {
        method: "POST",
        path,
        headers: bearerToken === undefined ? [] : [["Authorization", `Bearer ${bearerToken}`]],
        body: jsonBody(body),
        isRepeatable: true,
        timeoutMs,
      });
    },
    stop: () => current.upstream.close(),
  };
}

function jsonBody(body: unknown) {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
  return { contentType: "application/json", bytes };
}

/** The server for reviews or events, according to the current files. */
interface ServerTarget {
  readonly address: { readonly host: string; readonly port: number };
  /** Absent means plain HTTP. */
  readonly tls: UpstreamTlsOptions | undefined;
  readonly path: string;
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
}

async function targetOfUrl(
  target: Omit<WebhookUrl, "kind">,
  defaultPath: string,
  read: ReadFile,
): Promise<ServerTarget> {
  const { url, tokenFile } = target;
  const { isTls, ...address } = addressOfUrl(url);
  const tls = isTls ? await tlsOptionsOf(target, read) : undefined;
  return { address, tls, path: pathOf(url, defaultPath), token: undefined, tokenFile };
}

function pathOf(url: string, defaultPath: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname === "/" ? defaultPath : pathname}${search}`;
}

async function targetOfKubeconfig(file: string, read: ReadFile): Promise<ServerTarget> {
  const kubeconfig = parseWebhookKubeconfig(await readNamed(file, read), file);
  const { isTls, ...address } = addressOfUrl(kubeconfig.url);
  const pemOf = (source: PemSource | undefined) =>
    source === undefined || "pem" in source ? source?.pem : readNamed(source.file, read);
  const tls = isTls
    ? {
        ca: await pemOf(kubeconfig.certificateAuthority),
        certificate: await pemOf(kubeconfig.clientCertificate),
        key: await pemOf(kubeconfig.clientKey),
        serverName: kubeconfig.tlsServerName,
        insecureSkipVerify: kubeconfig.insecureSkipTLSVerify,
      }
    : undefined;
  const { token, tokenFile } = kubeconfig;
  return { address, tls, path: pathOf(kubeconfig.url, "/"), token, tokenFile };
}

async function readNamed(file: string, read: ReadFile): Promise<string> {
  try {
    return await read(file);
  } catch (error) {
    throw problemOf(file, error);
  }
}

function tlsOf(target: WebhookTarget, options: UpstreamTlsOptions): UpstreamTls {
  try {
    return new UpstreamTls(options);
  } catch (error) {
    throw target.kind === "kubeconfig" ? problemOf(target.file, error) : error;
  }
}

function problemOf(source: string, error: unknown): ConfigurationError {
  const message = systemErrorReason(error);
  return new ConfigurationError([{ source, line: 0, column: 0, path: "", message }]);
}

interface ReviewLogOptions {
  /** The account's required permission, as the check at start names it. */
  readonly permission: string;
  /** The log message for a review without an answer. */
  readonly failed: string;
  readonly logger: Pick<Logger, "info" | "warn" | "error">;
}

interface LoggedReviews {
  readonly ask: (review: unknown) => Promise<JsonAnswer>;
  readonly onFailure: (error: Error) => void;
}

/**
 * Logs each failed review. A refusal of the account itself is logged only when it begins and ends:
 * otherwise every request would repeat the line.
 */
export function loggedReviews(
  ask: (review: unknown) => Promise<JsonAnswer>,
  { permission, failed, logger }: ReviewLogOptions,
): LoggedReviews {
  let isRefused = false;
  /** Undefined if there was no answer. */
  const answeredWith = (status: number | undefined): void => {
    const wasRefused = isRefused;
    isRefused = status === 403;
    if (isRefused && !wasRefused)
      logger.warn({ missing: [permission] }, "the gateway's account lacks permissions: see `sluice rbac`");
    else if (wasRefused && status !== undefined && status < 300)
      logger.info({ permission }, "the gateway's account has the permission again");
  };
  return {
    ask: async (review) => {
      let status: number | undefined;
      try {
        const answer = await ask(review);
        status = answer.status;
        return answer;
      } finally {
        answeredWith(status);
      }
    },
    onFailure: ({ message }) => {
      if (!isRefused) logger.error({ problem: message }, failed);
    },
  };
}
