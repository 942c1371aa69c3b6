import path from "node:path";
import type {
  EntrySelection,
  Impersonation,
  KubeconfigEntries,
  KubeconfigUser,
} from "./kubeconfig-entries.ts";

/** What stands above a kubeconfig: kubectl's flags. Files count from the working directory. */
export interface KubeconfigOverrides extends EntrySelection {
  readonly namespace?: string | undefined;
  readonly certificateAuthority?: string | undefined;
  readonly insecureSkipTLSVerify?: boolean | undefined;
  readonly tlsServerName?: string | undefined;
  readonly clientCertificate?: string | undefined;
  readonly clientKey?: string | undefined;
  readonly token?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly impersonate?: Partial<Impersonation> | undefined;
}

/** The entries as client-go merges them with overrides (tools/clientcmd/client_config.go, getCluster and getAuthInfo). */
export function applyOverrides(
  entries: KubeconfigEntries,
  overrides: KubeconfigOverrides,
): KubeconfigEntries {
  const { certificateAuthority, insecureSkipTLSVerify = false, tlsServerName, server } = overrides;
  const setsTrust = insecureSkipTLSVerify || certificateAuthority !== undefined;
  const merged: KubeconfigEntries = {
    ...entries,
    namespace: overrides.namespace ?? entries.namespace,
    // Either of the two clears the other, which would contradict it.
    ...(setsTrust && { insecureSkipTLSVerify, certificateAuthority: fileOf(certificateAuthority) }),
    // The file's name is that of the file's server.
    ...((tlsServerName !== undefined || server !== undefined) && { tlsServerName }),
    user: userOf(entries.user, overrides),
  };
  if (server === undefined) return merged;
  const url = serverUrl(server);
  // A server that is named by hand gets no credentials in the clear, as from client-go.
  return { ...merged, server: url, user: /^https:/i.test(url) ? merged.user : {} };
}

function userOf(user: KubeconfigUser, overrides: KubeconfigOverrides): KubeconfigUser {
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

/** Without a scheme it is http, as kubectl has it. */
function serverUrl(text: string): string {
  return (text.includes("://") ? text : `http://${text}`).replace(/(?<!\/)\/+$/, "");
}
