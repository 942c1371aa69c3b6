import { ConfigurationError } from "@sluice/client/internal/config/configuration-error";
import { certificatesOf } from "@sluice/client/internal/config/key-pair";
import { readNamedFile } from "@sluice/client/internal/config/named-file-text";
import { CredentialsError } from "@sluice/client/internal/kubernetes/credentials-error";
import { type Kubeconfig, loadKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import { kubeconfigFileNames } from "@sluice/client/internal/kubernetes/kubeconfig-files";
import type { PeerCertificates } from "../../access/authn/authenticator.ts";
import { CertificateAuthority } from "../../access/authn/certificate-authority.ts";
import { buildAuthenticator } from "../../access/authn/component.ts";
import type { UserInfo } from "../../access/user-info.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { UpstreamTlsFiles } from "../../net/upstream-tls-files.ts";
import { UsageError } from "../command.ts";

/**
 * The user that the configuration recognizes by a kubeconfig's credentials, or why it recognizes
 * none.
 */
export type ExplainedUser =
  | { readonly user: UserInfo; readonly source: string }
  | {
      readonly user: undefined;
      readonly problem: string;
      /** Whether this makes the command fail. */
      readonly isRefused: boolean;
      /** An authenticator did not answer; `explain` then gives no verdict. */
      readonly isUnanswered: boolean;
    };

/**
 * How long a credential plugin may take, including a person's login. Past it `explain` gives no
 * verdict.
 */
const EXPLAIN_PLUGIN_TIMEOUT_MS = 30_000;

const LIMITS = { pluginTimeoutMs: EXPLAIN_PLUGIN_TIMEOUT_MS };

/** No user is known. This alone makes no command fail. */
function unknownUser(problem: string): ExplainedUser {
  return { user: undefined, problem, isRefused: false, isUnanswered: false };
}

interface UserFlags {
  readonly as: string | undefined;
  readonly user: string | undefined;
  readonly "as-group": readonly string[];
  readonly group: readonly string[];
  readonly kubeconfig: string | undefined;
  readonly context: string | undefined;
}

/** The caller by the flags, or kubectl's own. */
interface Caller {
  /** The namespace of the kubeconfig's context, if there is one. */
  readonly namespace: string | undefined;
  /** The user that a gateway with this configuration would see. */
  explained(configuration: GatewayConfiguration): Promise<ExplainedUser>;
}

/** Reads the kubeconfig that is given, or else kubectl's. Throws UsageError. */
export async function callerOf(flags: UserFlags): Promise<Caller> {
  const user = namedUser(flags);
  const current = await currentKubeconfig(flags.kubeconfig, flags.context);
  const { kubeconfig } = current ?? {};
  const isGiven = flags.kubeconfig !== undefined || flags.context !== undefined;
  return {
    namespace: kubeconfig instanceof Error ? undefined : kubeconfig?.namespace,
    explained: async (configuration) => {
      if (user !== undefined) return { user, source: "--as" };
      if (current === undefined) return unknownUser("no kubeconfig was found");
      return authenticatedUser(configuration, current, isGiven);
    },
  };
}

/** The named user with the named groups; undefined if none is named. Throws UsageError. */
function namedUser(flags: UserFlags): UserInfo | undefined {
  if (flags.as !== undefined && flags.user !== undefined && flags.as !== flags.user)
    throw new UsageError("--as and --user name different users; they are the same flag");
  const name = flags.as ?? flags.user;
  const groups = [...flags["as-group"], ...flags.group];
  if (name !== undefined) return { name, uid: "", groups: [...groups, "system:authenticated"], extra: {} };
  if (groups.length > 0) throw new UsageError("--as-group needs --as");
  return undefined;
}

/** The kubeconfig that kubectl would use; undefined if none is given and none exists. */
async function currentKubeconfig(
  file: string | undefined,
  context: string | undefined,
): Promise<{ readonly name: string; readonly kubeconfig: Kubeconfig | Error } | undefined> {
  const [name] = kubeconfigFileNames(file, process.env);
  if (name === undefined && context === undefined) return undefined;
  try {
    return { name: name ?? "", kubeconfig: await loadKubeconfig(file, { context }, LIMITS) };
  } catch (error) {
    const isGiven = file !== undefined || context !== undefined;
    if (isGiven || !(error instanceof ConfigurationError || error instanceof CredentialsError)) throw error;
    return { name: name ?? "", kubeconfig: error };
  }
}

/** Authenticates as the gateway would. A refusal counts only if the kubeconfig was given (`isGiven`). */
async function authenticatedUser(
  configuration: GatewayConfiguration,
  { name, kubeconfig }: { readonly name: string; readonly kubeconfig: Kubeconfig | Error },
  isGiven: boolean,
): Promise<ExplainedUser> {
  if (kubeconfig instanceof Error) return unknownUser(kubeconfig.message.split("\n")[0] ?? "");
  const logger = { ...SILENT, child: () => logger };
  const upstreams = new UpstreamTlsFiles({ logger });
  let result = "";
  const access = {
    authenticationAttempted: (attempted: string): void => {
      result = attempted;
    },
  };
  const built = await buildAuthenticator(configuration, { access }, logger, upstreams);
  try {
    const headers = await kubeconfig.headers();
    const peer = await peerOf(kubeconfig, configuration.authentication.clientCAFile);
    const user = await built.authenticator.authenticate({ headers, peer });
    if (user !== undefined) return { user, source: name };
    const isUnanswered = result === "authority-unreachable";
    const problem = isUnanswered
      ? `an authenticator of this configuration did not answer about the user of ${name}`
      : `this configuration does not know the user of ${name}`;
    return { user: undefined, problem, isRefused: isGiven, isUnanswered };
  } finally {
    await built.stop();
    upstreams.stop();
  }
}

const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

/** The client's certificates as a TLS handshake would show them. */
async function peerOf(
  { tls }: Kubeconfig,
  authorityFile: string | undefined,
): Promise<PeerCertificates | undefined> {
  if (tls.certificate === undefined) return undefined;
  const [leaf, ...intermediates] = certificatesOf(tls.certificate.toString());
  if (leaf === undefined) return undefined;
  const peer = { leaf, intermediates, isVerified: true };
  if (authorityFile === undefined) return { ...peer, isVerified: false };
  const authority = new CertificateAuthority(await readNamedFile(authorityFile));
  return { ...peer, isVerified: authority.hasIssued(peer) };
}
