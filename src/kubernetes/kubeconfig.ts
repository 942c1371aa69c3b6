import { readNamedFile } from "../config/named-file-text.ts";
import type { PemSource } from "../config/webhook-kubeconfig.ts";
import type { HeaderLine, HeaderList } from "../http/header-list.ts";
import type { UpstreamTlsOptions } from "../net/tls.ts";
import type { PluginCredentials } from "./exec-credential.ts";
import { inClusterEntries, isInCluster } from "./in-cluster.ts";
import { type Impersonation, type KubeconfigEntries, readKubeconfigEntries } from "./kubeconfig-entries.ts";
import { type Environment, kubeconfigFileNames } from "./kubeconfig-files.ts";
import { applyOverrides, type KubeconfigOverrides } from "./kubeconfig-overrides.ts";
import { type AskPlugin, pluginOf } from "./plugin-credentials.ts";

/** Files are read again after this long, as client-go does: tokens are replaced on disk while we run. */
export const CREDENTIALS_REUSE_MS = 60_000;

/** One API server, and the client's identity there. */
export interface Kubeconfig {
  /** `https://host:port`, perhaps with a path, without a slash at its end. */
  readonly server: string;
  readonly namespace: string;
  /** As of the last `headers()`: certificates may be replaced while we run. The same object until they are. */
  readonly tls: UpstreamTlsOptions;
  readonly proxyUrl: string | undefined;
  /**
   * Authorization and impersonation lines of a request. A plugin's credentials serve until they expire. Rejects when files or plugins
   * fail; no secret is in the message.
   */
  headers(): Promise<HeaderList>;
  /** After a 401: the next `headers()` asks files and plugins anew. */
  forget(): void;
}

export interface LoadOptions {
  readonly environment?: Environment;
  readonly nowMs?: () => number;
  readonly serviceAccountFolder?: string;
}

/**
 * kubectl's API server: of `file`, $KUBECONFIG, `~/.kube/config`, or inside a pod the cluster's own. `selection`: a context, or what
 * overrides the file. Throws ConfigurationError, with lines.
 */
export async function loadKubeconfig(
  file?: string,
  selection: string | KubeconfigOverrides = {},
  options: LoadOptions = {},
): Promise<Kubeconfig> {
  const { environment = process.env } = options;
  const names = await kubeconfigFileNames(file, environment);
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

/** The API server of the cluster that this process is a pod of. Throws ConfigurationError outside of one. */
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

  static async load(entries: KubeconfigEntries, options: LoadOptions): Promise<Kubeconfig> {
    const credentials = new Credentials(entries, pluginOf(entries), options);
    // Certificates must be there before the first connection; a plugin may bring them.
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

/** The file's, or where it cannot be read or is empty the one beside it, as client-go has it. */
async function tokenOf(file: string, beside: string | undefined): Promise<string> {
  try {
    return (await readNamedFile(file)).trim() || (beside ?? "");
  } catch (error) {
    if (beside === undefined) throw error;
    return beside;
  }
}

/** How long a plugin's credentials serve; without a time stamp until they are refused. */
function remainingMs(credentials: PluginCredentials | undefined): number {
  if (credentials === undefined) return 0;
  return (credentials.expiresAtMs ?? Number.POSITIVE_INFINITY) - Date.now();
}

async function pemText(source: PemSource | undefined): Promise<string | undefined> {
  if (source === undefined || "pem" in source) return source?.pem;
  return readNamedFile(source.file);
}

function isSame(a: UpstreamTlsOptions, b: UpstreamTlsOptions): boolean {
  return (["ca", "certificate", "key", "serverName", "insecureSkipVerify"] as const).every(
    (name) => a[name] === b[name],
  );
}

/** client-go's order: a token stands above a plugin, a plugin above a password. */
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
  // One character a byte, as header values are written: names are UTF-8.
  return lines.map(([name, value]): HeaderLine => [name, Buffer.from(value).toString("latin1")]);
}
