import path from "node:path";
import type { EntrySelection, Impersonation, KubeconfigEntries } from "./kubeconfig-entries.ts";

/**
 * kubectl's flags, which override a kubeconfig. File names are relative to the working directory.
 */
export interface KubeconfigOverrides extends EntrySelection {
  /** The namespace of pods that are named without one. Default: the context's. */
  readonly namespace?: string | undefined;
  /** A file. Default: the cluster's. */
  readonly certificateAuthority?: string | undefined;
  /** Accepts any certificate. Default: false, then the cluster's. */
  readonly insecureSkipTLSVerify?: boolean | undefined;
  /** Default: the cluster's, then the environment's. */
  readonly proxyUrl?: string | undefined;
  /** The name in the server's certificate. Default: the cluster's, then the dialled host. */
  readonly tlsServerName?: string | undefined;
  /** A file. Default: the user's. */
  readonly clientCertificate?: string | undefined;
  /** A file. Default: the user's. */
  readonly clientKey?: string | undefined;
  /** Default: the user's. */
  readonly token?: string | undefined;
  /** Default: the user's. */
  readonly username?: string | undefined;
  /** Default: the user's. */
  readonly password?: string | undefined;
  /** The user and groups to act as. Default: the user's, else none. */
  readonly impersonate?: Partial<Impersonation> | undefined;
}

/**
 * Merges entries and overrides as client-go does (tools/clientcmd/client_config.go, getCluster and
 * getAuthInfo).
 */
export function applyOverrides(
  entries: KubeconfigEntries,
  overrides: KubeconfigOverrides,
): KubeconfigEntries {
  const { certificateAuthority, insecureSkipTLSVerify = false, tlsServerName, server } = overrides;
  const setsTrust = insecureSkipTLSVerify || certificateAuthority !== undefined;
  const merged: KubeconfigEntries = {
    ...entries,
    namespace: overrides.namespace ?? entries.namespace,
    proxyUrl: overrides.proxyUrl ?? entries.proxyUrl,
    // Setting one clears the other, which would contradict it.
    ...(setsTrust && { insecureSkipTLSVerify, certificateAuthority: fileOf(certificateAuthority) }),
    // The kubeconfig's server name belongs to the kubeconfig's server.
    ...((tlsServerName !== undefined || server !== undefined) && { tlsServerName }),
    user: userOf(entries.user, overrides),
  };
  if (server === undefined) return merged;
  const url = serverUrl(server);
  // As client-go, sends no credentials in the clear to a server given by flag.
  return { ...merged, server: url, user: /^https:/i.test(url) ? merged.user : {} };
}

function userOf(user: KubeconfigEntries["user"], overrides: KubeconfigOverrides): KubeconfigEntries["user"] {
  const { token, username, password, clientCertificate, clientKey, impersonate } = overrides;
  return {
    ...user,
    ...(token !== undefined && { token, tokenFile: undefined }),
    ...((username !== undefined || password !== undefined) && {
      basic: {
        username: username ?? user.basic?.username ?? "",
        password: password ?? user.basic?.password ?? "",
      },
    }),
    ...(clientCertificate !== undefined && { clientCertificate: fileOf(clientCertificate) }),
    ...(clientKey !== undefined && { clientKey: fileOf(clientKey) }),
    ...(impersonate !== undefined && { impersonate: impersonationOf(user.impersonate, impersonate) }),
  };
}

function impersonationOf(
  file: Impersonation | undefined,
  { user, uid, groups = [], extra = {} }: Partial<Impersonation>,
): Impersonation {
  return {
    user: user ?? file?.user ?? "",
    uid: uid ?? file?.uid,
    groups: groups.length > 0 ? groups : (file?.groups ?? []),
    extra: { ...file?.extra, ...extra },
  };
}

function fileOf(name: string | undefined): { readonly file: string } | undefined {
  return name === undefined ? undefined : { file: path.resolve(name) };
}

/** A URL without a scheme is http, as in kubectl. */
function serverUrl(text: string): string {
  return (text.includes("://") ? text : `http://${text}`).replace(/(?<!\/)\/+$/, "");
}
