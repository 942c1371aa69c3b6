// packages/client/kubernetes: kubeconfigs as client-go reads them, credentials, plugins

import path from "node:path";
import { certificatesOf, type PemSource } from "../config/key-pair.ts";
import { readNamedFile, readUpTo } from "../config/named-file-text.ts";
import { systemErrorText } from "../config/system-error.ts";
import type { HeaderLine, HeaderList } from "../http/header-list.ts";
import { inClusterServer, SERVICE_ACCOUNT_FOLDER } from "../net/in-cluster-server.ts";
import { UpstreamTls, type UpstreamTlsOptions } from "../net/tls.ts";
import { CredentialsError } from "./credentials-error.ts";
import type { PluginCredentials } from "./exec-credential.ts";
import { type Impersonation, type KubeconfigEntries, readKubeconfigEntries } from "./kubeconfig-entries.ts";
import { kubeconfigFileNames } from "./kubeconfig-files.ts";
import { applyOverrides, type KubeconfigOverrides } from "./kubeconfig-overrides.ts";
import { type AskPlugin, pluginOf } from "./plugin-credentials.ts";

/** How long read files are reused, as in client-go: tokens rotate on disk. */
const CREDENTIALS_REUSE_MS = 60_000;

/** One API server, and the client's credentials there. */
export interface Kubeconfig {
  /** `https://host:port`, perhaps with a path, without a trailing slash. */
  readonly server: string;
  readonly namespace: string;
  /** As of the last `headers()`, since certificates rotate. The same object until they change. */
  readonly tls: UpstreamTlsOptions;
  readonly proxyUrl: string | undefined;
  /**
   * A request's Authorization and impersonation lines. A plugin's credentials are reused until they
   * expire. Rejects if a file or plugin fails; the message holds no secret.
   */
  headers(): Promise<HeaderList>;
  /** Call it after a 401: the next `headers()` reads files and runs plugins again. */
  forget(): void;
}

interface LoadOptions {
  readonly environment?: NodeJS.ProcessEnv;
  readonly nowMs?: () => number;
  readonly serviceAccountFolder?: string;
  /** One run of a credential plugin. Default: 60 s. */
  readonly pluginTimeoutMs?: number;
}

/**
 * Loads kubectl's API server: from `file`, $KUBECONFIG, `~/.kube/config` or the pod. `selection`
 * names a context or overrides the file. Throws ConfigurationError with line numbers.
 */
export async function loadKubeconfig(
  file?: string,
  selection: string | KubeconfigOverrides = {},
  options: LoadOptions = {},
): Promise<Kubeconfig> {
  const { environment = process.env } = options;
  const names = kubeconfigFileNames(file, environment);
  const overrides = typeof selection === "string" ? { context: selection } : selection;
  const { context, cluster, user, server } = overrides;
  const needsFile = [context, cluster, user, server].some((name) => name !== undefined);
  if (names.length > 0 || needsFile || !isInCluster(environment))
    return Credentials.load(
      applyOverrides(await readKubeconfigEntries(names, overrides), overrides),
      options,
    );
  const entries = await inClusterEntries(environment, options.serviceAccountFolder);
  return Credentials.load(applyOverrides(entries, overrides), options);
}

/**
 * Reads a context and its files as `loadKubeconfig` does, without running its plugin. Throws
 * ConfigurationError, the file system's error, or OpenSSL's.
 */
export async function checkKubeconfig(file: string, context: string | undefined): Promise<void> {
  const { tls } = await Credentials.load(await readKubeconfigEntries([file], { context }), {}, false);
  if (tls.ca !== undefined) certificatesOf(tls.ca.toString());
  new UpstreamTls(tls);
}

/** The API server of the cluster that this pod runs in. Throws ConfigurationError outside a pod. */
export async function loadInCluster(options: LoadOptions = {}): Promise<Kubeconfig> {
  const { environment = process.env, serviceAccountFolder } = options;
  return Credentials.load(await inClusterEntries(environment, serviceAccountFolder), options);
}

class Credentials implements Kubeconfig {
  readonly server: string;
  readonly namespace: string;
  readonly proxyUrl: string | undefined;
  readonly #entries: KubeconfigEntries;
  readonly #askPlugin: AskPlugin | undefined;
  readonly #nowMs: () => number;
  #tls: UpstreamTlsOptions = {};
  #headers: HeaderList = [];
  #freshUntilMs = Number.NEGATIVE_INFINITY;
  #plugin: PluginCredentials | undefined;
  #refreshing: Promise<void> | undefined;

  private constructor(entries: KubeconfigEntries, askPlugin: AskPlugin | undefined, options: LoadOptions) {
    this.server = entries.server;
    this.namespace = entries.namespace;
    this.proxyUrl = entries.proxyUrl;
    this.#entries = entries;
    this.#askPlugin = askPlugin;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  static async load(
    entries: KubeconfigEntries,
    options: LoadOptions,
    runsPlugin = true,
  ): Promise<Kubeconfig> {
    const { pluginTimeoutMs: timeoutMs } = options;
    const plugin = pluginOf(entries, timeoutMs === undefined ? {} : { timeoutMs });
    const credentials = new Credentials(entries, runsPlugin ? plugin : undefined, options);
    // The first connection needs certificates, and a plugin may provide them.
    await credentials.headers();
    return credentials;
  }

  get tls(): UpstreamTlsOptions {
    return this.#tls;
  }

  async headers(): Promise<HeaderList> {
    if (this.#nowMs() < this.#freshUntilMs) return this.#headers;
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined;
    });
    await this.#refreshing;
    return this.#headers;
  }

  forget(): void {
    this.#freshUntilMs = Number.NEGATIVE_INFINITY;
    this.#plugin = undefined;
  }

  async #refresh(): Promise<void> {
    const { certificateAuthority, insecureSkipTLSVerify, tlsServerName, user } = this.#entries;
    if (remainingMs(this.#plugin) <= 0) this.#plugin = await this.#askPlugin?.();
    const plugin = this.#plugin;
    const tls: UpstreamTlsOptions = {
      ca: await pemText(certificateAuthority),
      certificate: plugin?.certificate ?? (await pemText(user.clientCertificate)),
      key: plugin?.key ?? (await pemText(user.clientKey)),
      serverName: tlsServerName,
      insecureSkipVerify: insecureSkipTLSVerify,
    };
    const token = user.tokenFile === undefined ? user.token : await tokenOf(user.tokenFile, user.token);
    this.#headers = [
      ...authorizationLines(token, plugin?.authorization, user.basic),
      ...impersonationLines(user.impersonate),
    ];
    if (!isSame(tls, this.#tls)) this.#tls = tls;
    const lastsMs = plugin === undefined ? CREDENTIALS_REUSE_MS : remainingMs(plugin);
    this.#freshUntilMs = this.#nowMs() + Math.min(CREDENTIALS_REUSE_MS, lastsMs);
  }
}

/** As client-go, falls back to the inline token if the file is unreadable or empty. */
async function tokenOf(file: string, beside: string | undefined): Promise<string> {
  try {
    return (await fileText(file)).trim() || (beside ?? "");
  } catch (error) {
    if (beside === undefined) throw error;
    return beside;
  }
}

/** How long a plugin's credentials remain valid; without an expiry they count until refused. */
function remainingMs(credentials: PluginCredentials | undefined): number {
  if (credentials === undefined) return 0;
  return (credentials.expiresAtMs ?? Number.POSITIVE_INFINITY) - Date.now();
}

async function pemText(source: PemSource | undefined): Promise<string | undefined> {
  if (source === undefined || "pem" in source) return source?.pem;
  return fileText(source.file);
}

async function fileText(file: string): Promise<string> {
  try {
    return await readNamedFile(file);
  } catch (error) {
    throw new CredentialsError(systemErrorText(error), { cause: error });
  }
}

function isSame(a: UpstreamTlsOptions, b: UpstreamTlsOptions): boolean {
  return (["ca", "certificate", "key", "serverName", "insecureSkipVerify"] as const).every(
    (name) => a[name] === b[name],
  );
}

/** client-go's precedence: token, plugin, password. */
function authorizationLines(
  token: string | undefined,
  plugin: string | undefined,
  basic: { readonly username: string; readonly password: string } | undefined,
): HeaderLine[] {
  if (token !== undefined) return [["Authorization", `Bearer ${token}`]];
  if (plugin !== undefined) return [["Authorization", plugin]];
  if (basic === undefined) return [];
  const pair = Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
  return [["Authorization", `Basic ${pair}`]];
}

function impersonationLines(impersonate: Impersonation | undefined): HeaderLine[] {
  if (impersonate === undefined) return [];
  const { user, uid, groups, extra } = impersonate;
  const lines: HeaderLine[] = [
    ["Impersonate-User", user],
    ...(uid === undefined ? [] : [["Impersonate-Uid", uid] as const]),
    ...groups.map((group): HeaderLine => ["Impersonate-Group", group]),
    ...Object.entries(extra).flatMap(([key, values]) =>
      values.map((value): HeaderLine => [`Impersonate-Extra-${encodeURIComponent(key)}`, value]),
    ),
  ];
  // Header values are Latin-1: each UTF-8 byte becomes one character.
  return lines.map(([name, value]): HeaderLine => [name, Buffer.from(value).toString("latin1")]);
}

function isInCluster(environment: NodeJS.ProcessEnv): boolean {
  return Boolean(environment.KUBERNETES_SERVICE_HOST && environment.KUBERNETES_SERVICE_PORT);
}

/**
 * The API server from the pod's environment and service account. Throws ConfigurationError outside
 * a pod.
 */
async function inClusterEntries(
  environment: NodeJS.ProcessEnv,
  folder = SERVICE_ACCOUNT_FOLDER,
): Promise<KubeconfigEntries> {
  const { url, certificateAuthorityFile, tokenFile } = inClusterServer(environment, folder);
  const namespace = await readUpTo(path.join(folder, "namespace")).catch(() => "");
  return {
    server: url,
    namespace: namespace.toString().trim() || "default",
    certificateAuthority: { file: certificateAuthorityFile },
    insecureSkipTLSVerify: false,
    tlsServerName: undefined,
    proxyUrl: undefined,
    user: { tokenFile },
  };
}
