import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import { type PemSource, pemOf } from "./key-pair.ts";
import type { NamedFile } from "./named-file-text.ts";
import { notAmong, Section } from "./section.ts";
import { checkWebhookUrl } from "./sections/webhook-target.ts";
import { EMPTY_DOCUMENT, parseYamlDocuments } from "./yaml-documents.ts";

/** The server of a kubeconfig's current context, and its credentials. */
interface WebhookKubeconfig {
  /** The URL for POSTs, with path and query. */
  readonly url: string;
  readonly certificateAuthority: PemSource | undefined;
  readonly insecureSkipTLSVerify: boolean;
  /** The name in the certificate if it differs from the URL's. */
  readonly tlsServerName: string | undefined;
  /** Both or neither. */
  readonly clientCertificate: PemSource | undefined;
  readonly clientKey: PemSource | undefined;
  /** If both are given, the file counts, as in client-go. */
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
  /** The files named above. */
  readonly files: readonly NamedFile[];
}

/** Unsupported credentials: each would start a program or a dialogue. */
const NOT_TAKEN = ["exec", "auth-provider", "username", "password", "as"];

/**
 * Reads the entries of a kubeconfig's current context; its files are relative to its folder. Throws
 * ConfigurationError with all of their problems.
 */
export function parseWebhookKubeconfig(text: string, fileName: string): WebhookKubeconfig {
  const problems: ConfigurationProblem[] = [];
  const files: NamedFile[] = [];
  const [document] = parseYamlDocuments(text, fileName);
  const root = new Section(
    { fileName, document: document ?? EMPTY_DOCUMENT, problems, files },
    [],
    document?.value,
  );
  root.optionalString("kind", (kind) => notAmong(kind, ["Config"]));
  const context = currentContext(root);
  const cluster = named(root, "clusters", "cluster", context?.optionalString("cluster"));
  if (context !== undefined && !context.has("cluster")) context.problem("cluster", "is required");
  const userName = context?.optionalString("user");
  const user = userName === undefined ? undefined : named(root, "users", "user", userName);
  const target = { ...serverOf(cluster), ...credentialsOf(user), files };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return target;
}

/** Never guesses a missing `current-context`: client-go would connect to localhost. */
function currentContext(root: Section): Section | undefined {
  const name = root.optionalString("current-context");
  if (name === undefined) {
    if (!root.has("current-context")) root.problem("current-context", "is required");
    return undefined;
  }
  return named(root, "contexts", "context", name);
}

function named(root: Section, list: string, member: string, name: string | undefined): Section | undefined {
  if (name === undefined) return undefined;
  const found = root.sections(list).find((item) => item.optionalString("name") === name);
  if (found === undefined) root.problem(list, `has no entry named ${JSON.stringify(name.slice(0, 80))}`);
  return found?.section(member);
}

function serverOf(cluster: Section | undefined) {
  const url = cluster?.optionalString("server", checkWebhookUrl);
  if (cluster !== undefined && !cluster.has("server")) cluster.problem("server", "is required");
  if (cluster?.has("proxy-url")) cluster.problem("proxy-url", "is not supported");
  const certificateAuthority = pemOf(cluster, "certificate-authority");
  const insecureSkipTLSVerify = cluster?.boolean("insecure-skip-tls-verify") ?? false;
  if (insecureSkipTLSVerify && certificateAuthority !== undefined) {
    cluster?.problem("insecure-skip-tls-verify", "must be false if an authority is given");
  }
  return {
    url: url ?? "",
    certificateAuthority,
    insecureSkipTLSVerify,
    tlsServerName: cluster?.optionalString("tls-server-name"),
  };
}

function credentialsOf(user: Section | undefined) {
  for (const name of NOT_TAKEN) if (user?.has(name)) user.problem(name, "is not supported");
  const clientCertificate = pemOf(user, "client-certificate");
  const clientKey = pemOf(user, "client-key");
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    const [there, missing] =
      clientKey === undefined ? ["client-certificate", "client-key"] : ["client-key", "client-certificate"];
    user?.problem(missing, `is required with ${there}`);
  }
  return {
    clientCertificate,
    clientKey,
    token: user?.optionalString("token", checkToken),
    tokenFile: user?.optionalFile("tokenFile", "text"),
  };
}

/** The message omits the secret value. */
function checkToken(value: string): string | undefined {
  return /^[\x21-\x7e]+$/.test(value) ? undefined : "must be one word of ASCII";
}
