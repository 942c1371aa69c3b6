import { readFile } from "node:fs/promises";
import { ConfigurationError } from "../config/configuration-error.ts";
import { readNamedFile } from "../config/named-file-text.ts";
import { type PemSource, parseWebhookKubeconfig } from "../config/webhook-kubeconfig.ts";
import type { WebhookTarget, WebhookUrl } from "../config/webhook-target.ts";
import { HttpUpstream } from "../http/http-upstream.ts";
import { type JsonAnswer, postJson } from "../http/post-json.ts";
import type { UpstreamEndpoint } from "../net/dial.ts";
import { addressOfUrl, endpointOfUrl } from "../net/endpoint-of-url.ts";
import { inClusterServer } from "../net/in-cluster-server.ts";
import { UpstreamTls } from "../net/tls.ts";

export interface WebhookClient {
  /** A Buffer is JSON already. */
  ask(body: unknown): Promise<JsonAnswer>;
  stop(): void;
}

export interface WebhookClientOptions {
  /** What a URL of the configuration without a path means. A kubeconfig's URL is taken as it is, as kube-apiserver takes it. */
  readonly defaultPath: string;
  readonly timeoutMs: number;
  /** Where the pod's ServiceAccount is, if not at its usual place. */
  readonly serviceAccountFolder?: string | undefined;
}

/** A service queried by POSTing JSON. Throws ConfigurationError for a kubeconfig, or a file of it, that is unreadable or invalid. */
export async function webhookClient(
  target: WebhookTarget,
  { defaultPath, timeoutMs, serviceAccountFolder }: WebhookClientOptions,
): Promise<WebhookClient> {
  const { endpoint, path, token, tokenFile } =
    target.kind === "kubeconfig"
      ? await targetOfKubeconfig(target.file)
      : await targetOfUrl(
          target.kind === "url" ? target : inClusterServer(process.env, serviceAccountFolder),
          defaultPath,
        );
  const upstream = new HttpUpstream({ endpoint, dialTimeoutMs: timeoutMs });
  return {
    ask: async (body) => {
      const bearerToken = tokenFile === undefined ? token : (await readFile(tokenFile, "utf8")).trim();
      return postJson(upstream, { path, body, bearerToken, timeoutMs });
    },
    stop: () => upstream.close(),
  };
}

async function targetOfUrl(target: Omit<WebhookUrl, "kind">, defaultPath: string) {
  const { url, tokenFile } = target;
  return {
    endpoint: await endpointOfUrl(url, target),
    path: pathOf(url, defaultPath),
    token: undefined,
    tokenFile,
  };
}

function pathOf(url: string, defaultPath: string): string {
  const { pathname, search } = new URL(url);
  return `${pathname === "/" ? defaultPath : pathname}${search}`;
}

async function targetOfKubeconfig(file: string) {
  const kubeconfig = parseWebhookKubeconfig(await readNamed(file), file);
  const { isTls, ...address } = addressOfUrl(kubeconfig.url);
  const tls = isTls
    ? tlsOf(file, {
        ca: await readPem(kubeconfig.certificateAuthority),
        certificate: await readPem(kubeconfig.clientCertificate),
        key: await readPem(kubeconfig.clientKey),
        serverName: kubeconfig.tlsServerName,
        insecureSkipVerify: kubeconfig.insecureSkipTLSVerify,
      })
    : undefined;
  const endpoint: UpstreamEndpoint = { ...address, tls };
  return {
    endpoint,
    path: pathOf(kubeconfig.url, "/"),
    token: kubeconfig.token,
    tokenFile: kubeconfig.tokenFile,
  };
}

function readPem(source: PemSource | undefined): string | undefined | Promise<string> {
  return source === undefined || "pem" in source ? source?.pem : readNamed(source.file);
}

async function readNamed(file: string): Promise<string> {
  try {
    return await readNamedFile(file);
  } catch (error) {
    throw problemOf(file, error);
  }
}

function tlsOf(file: string, options: ConstructorParameters<typeof UpstreamTls>[0]): UpstreamTls {
  try {
    return new UpstreamTls(options);
  } catch (error) {
    throw problemOf(file, error);
  }
}

function problemOf(source: string, error: unknown): ConfigurationError {
  const message = error instanceof Error ? error.message : String(error);
  return new ConfigurationError([{ source, line: 0, column: 0, path: "", message }]);
}
