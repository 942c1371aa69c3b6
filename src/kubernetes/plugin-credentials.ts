import { readFile } from "node:fs/promises";
import { isatty } from "node:tty";
import { asCredentialsError, CredentialsError } from "./credentials-error.ts";
import { execInfo, type PluginCredentials, readExecCredential } from "./exec-credential.ts";
import type { KubeconfigEntries } from "./kubeconfig-entries.ts";
import type { OidcOptions } from "./oidc-provider.ts";

export type AskPlugin = () => Promise<PluginCredentials>;

export interface PluginOptions extends OidcOptions {
  /** Whether standard input is a terminal, and not in use. */
  readonly isTerminal?: () => boolean;
}

/** A person may have to log in, but not for ever. */
export const PLUGIN_TIMEOUT_MS = 60_000;

/** client-go's sentences for what it has had until 1.26. */
const REMOVED: Readonly<Record<string, string>> = {
  azure: `The azure auth plugin has been removed.
Please use the https://github.com/Azure/kubelogin kubectl/client-go credential plugin instead.
See https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins for further details`,
  gcp: `The gcp auth plugin has been removed.
Please use the "gke-gcloud-auth-plugin" kubectl/client-go credential plugin instead.
See https://cloud.google.com/blog/products/containers-kubernetes/kubectl-auth-changes-in-gke for further details`,
};

/**
 * Credentials of the user's exec plugin or identity provider. Undefined if it has neither, or others, which
 * win as in client-go. Throws CredentialsError; the returned function rejects with one.
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
      // A client's start loads no HTTP.
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
          : await readFile(certificateAuthority.file, "utf8");
      const { runPlugin } = await import("./run-plugin.ts");
      const text = await runPlugin(plugin, {
        info: execInfo(entries, isInteractive, ca),
        isInteractive,
        timeoutMs,
      });
      return readExecCredential(text, plugin.apiVersion);
    } catch (error) {
      throw new CredentialsError(`getting credentials: ${(error as Error).message}`);
    }
  };
}

/** A raw terminal belongs to the command that it is connected to. */
function isFreeTerminal(): boolean {
  return isatty(0) && process.stdin.isRaw !== true;
}
