import { isatty } from "node:tty";
import { readUpTo } from "../config/named-file-text.ts";
import { systemErrorText } from "../config/system-error.ts";
import { CredentialsError } from "./credentials-error.ts";
import type { PluginCredentials } from "./exec-credential.ts";
import type { KubeconfigEntries } from "./kubeconfig-entries.ts";
import type { OidcOptions } from "./oidc-provider.ts";

export type AskPlugin = () => Promise<PluginCredentials>;

interface PluginOptions extends OidcOptions {
  /** Whether standard input is a terminal that no command uses. */
  readonly isTerminal?: () => boolean;
}

/**
 * A credential plugin, which may ask a person to log in. Past it, it is killed and the request
 * fails.
 */
const PLUGIN_TIMEOUT_MS = 60_000;

/** client-go's messages for providers that it removed in 1.26. */
const REMOVED: Readonly<Record<string, string>> = {
  azure: `The azure auth plugin has been removed.
Please use the https://github.com/Azure/kubelogin kubectl/client-go credential plugin instead.
See https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins for further details`,
  gcp: `The gcp auth plugin has been removed.
Please use the "gke-gcloud-auth-plugin" kubectl/client-go credential plugin instead.
See https://cloud.google.com/blog/products/containers-kubernetes/kubectl-auth-changes-in-gke for further details`,
};

/**
 * Credentials from the user's exec plugin or identity provider. Undefined without one, or if other
 * credentials win as in client-go. Throws, and the function rejects with, CredentialsError.
 */
export function pluginOf(entries: KubeconfigEntries, options: PluginOptions = {}): AskPlugin | undefined {
  const { exec, authProvider, token, tokenFile, basic, clientCertificate } = entries.user;
  if (token !== undefined || tokenFile !== undefined || basic !== undefined) return undefined;
  if (exec !== undefined) return clientCertificate === undefined ? execPlugin(entries, options) : undefined;
  if (authProvider === undefined) return undefined;
  const { name, config } = authProvider;
  if (name !== "oidc") {
    throw new CredentialsError(REMOVED[name] ?? `no Auth Provider found for name ${JSON.stringify(name)}`);
  }
  let ask: AskPlugin | undefined;
  return async () => {
    try {
      // Clients without OIDC do not load HTTP at start.
      ask ??= (await import("./oidc-provider.ts")).oidcProvider(config, options);
      return await ask();
    } catch (error) {
      return asCredentialsError(error);
    }
  };
}

function execPlugin(
  entries: KubeconfigEntries,
  { timeoutMs = PLUGIN_TIMEOUT_MS, isTerminal = isFreeTerminal }: PluginOptions,
): AskPlugin | undefined {
  const { user, certificateAuthority } = entries;
  const { exec: plugin } = user;
  if (plugin === undefined) return undefined;
  return async () => {
    try {
      const isInteractive = plugin.interactiveMode !== "Never" && isTerminal();
      if (plugin.interactiveMode === "Always" && !isInteractive) {
        throw new Error("exec plugin cannot support interactive mode: standard input is not a terminal");
      }
      const ca =
        certificateAuthority === undefined || "pem" in certificateAuthority
          ? certificateAuthority?.pem
          : (await readUpTo(certificateAuthority.file)).toString();
      const { askExecPlugin } = await import("./exec-credential.ts");
      return await askExecPlugin(plugin, {
        info: execInfo(entries, isInteractive, ca),
        isInteractive,
        timeoutMs,
      });
    } catch (error) {
      throw new CredentialsError(`getting credentials: ${systemErrorText(error)}`);
    }
  };
}

/** A raw terminal belongs to the command on its other end. */
function isFreeTerminal(): boolean {
  return isatty(0) && process.stdin.isRaw !== true;
}

/**
 * The JSON for $KUBERNETES_EXEC_INFO: the cluster as a plugin may see it
 * (client.authentication.k8s.io, ExecCredentialSpec).
 */
function execInfo(
  { server, tlsServerName, insecureSkipTLSVerify, proxyUrl, execConfig, user }: KubeconfigEntries,
  isInteractive: boolean,
  certificateAuthority: string | undefined,
): string {
  const cluster = {
    server,
    ...(tlsServerName !== undefined && { "tls-server-name": tlsServerName }),
    ...(insecureSkipTLSVerify && { "insecure-skip-tls-verify": true }),
    ...(certificateAuthority !== undefined && {
      "certificate-authority-data": Buffer.from(certificateAuthority).toString("base64"),
    }),
    ...(proxyUrl !== undefined && { "proxy-url": proxyUrl }),
    config: execConfig ?? null,
  };
  return JSON.stringify({
    kind: "ExecCredential",
    apiVersion: user.exec?.apiVersion,
    spec: { ...(user.exec?.provideClusterInfo && { cluster }), interactive: isInteractive },
  });
}

/** For a `catch`: rethrows the error's message as a CredentialsError. */
function asCredentialsError(error: unknown): never {
  throw new CredentialsError(systemErrorText(error), { cause: error });
}
