import type { RequestOptions } from "node:https";
import type { KubeconfigEntries } from "./kubeconfig-entries.ts";

/** What a credential plugin or an identity provider gave; PEM texts. */
export interface PluginCredentials {
  readonly authorization: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
}

export type AskPlugin = () => Promise<PluginCredentials>;

/** A person may have to log in, but not for ever. */
export const PLUGIN_TIMEOUT_MS = 60_000;

/**
 * Exec plugins and auth providers are asked through the official client. It is loaded here and not before: it takes a third of a
 * second and 70 MB, which users with a token or a certificate need not pay. Undefined: the user has neither.
 */
export async function pluginOf(
  entries: KubeconfigEntries,
  timeoutMs = PLUGIN_TIMEOUT_MS,
): Promise<AskPlugin | undefined> {
  const { exec, authProvider } = entries.user;
  if (exec === undefined && authProvider === undefined) return undefined;
  const { KubeConfig } = await import("@kubernetes/client-node");
  const client = new KubeConfig();
  client.loadFromClusterAndUser(
    // It makes an agent that nobody uses, and refuses to for plain HTTP unless it is told to skip verification.
    { name: "cluster", server: entries.server, skipTLSVerify: true },
    {
      name: "user",
      ...(authProvider && { authProvider }),
      ...(exec && { exec: { ...exec, env: [...exec.env, execInfo(entries)] } }),
    },
  );
  return async () => {
    const options: RequestOptions & { headers: Record<string, string> } = { headers: {} };
    await inTime(client.applyToHTTPSOptions(options), timeoutMs);
    const { headers, cert, key } = options;
    return {
      authorization: headers.Authorization,
      certificate: cert?.toString(),
      key: key?.toString(),
    };
  };
}

/** The official client leaves it out, and plugins that follow the interface refuse to run without it. */
function execInfo(entries: KubeconfigEntries) {
  const { server, tlsServerName, insecureSkipTLSVerify, certificateAuthority, proxyUrl, user } = entries;
  const ca = certificateAuthority && "pem" in certificateAuthority ? certificateAuthority.pem : undefined;
  const cluster = {
    server,
    ...(tlsServerName !== undefined && { "tls-server-name": tlsServerName }),
    ...(insecureSkipTLSVerify && { "insecure-skip-tls-verify": true }),
    ...(ca !== undefined && { "certificate-authority-data": Buffer.from(ca).toString("base64") }),
    ...(proxyUrl !== undefined && { "proxy-url": proxyUrl }),
    config: null,
  };
  const info = {
    kind: "ExecCredential",
    apiVersion: user.exec?.apiVersion,
    spec: { interactive: false, ...(user.exec?.provideClusterInfo && { cluster }) },
  };
  return { name: "KUBERNETES_EXEC_INFO", value: JSON.stringify(info) };
}

/** What a plugin prints may hold a token, so no more is told of its failure than that. */
async function inTime(asked: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("getting credentials: no answer in time")), timeoutMs);
  });
  try {
    await Promise.race([asked, late]);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof Error && error.message.endsWith("no answer in time")) throw error;
    throw new Error(`getting credentials: the plugin failed${code === undefined ? "" : `: ${code}`}`);
  } finally {
    clearTimeout(timer);
  }
}
