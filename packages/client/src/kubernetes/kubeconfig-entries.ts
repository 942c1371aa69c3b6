import path from "node:path";
import { ConfigurationError, type ConfigurationProblem } from "../config/configuration-error.ts";
import { type PemSource, pemOf } from "../config/key-pair.ts";
import type { Section } from "../config/section.ts";
import { type KubeconfigFile, readKubeconfigFile } from "./kubeconfig-files.ts";

/** Selects the entries to read. */
export interface EntrySelection {
  /** Default: the kubeconfig's current context. */
  readonly context?: string | undefined;
  /** Default: the context's. */
  readonly cluster?: string | undefined;
  /** Default: the context's. */
  readonly user?: string | undefined;
  /** A URL or `host:port`. Default: the cluster's. */
  readonly server?: string | undefined;
}

/** The entries of one context, with absolute file paths. */
export interface KubeconfigEntries {
  /** Without a trailing slash. */
  readonly server: string;
  readonly namespace: string;
  readonly certificateAuthority: PemSource | undefined;
  readonly insecureSkipTLSVerify: boolean;
  readonly tlsServerName: string | undefined;
  readonly proxyUrl: string | undefined;
  /** The cluster's configuration for plugins: its extension client.authentication.k8s.io/exec. */
  readonly execConfig?: unknown;
  readonly user: KubeconfigUser;
}

interface KubeconfigUser {
  readonly clientCertificate?: PemSource | undefined;
  readonly clientKey?: PemSource | undefined;
  readonly token?: string | undefined;
  /** Takes precedence over `token`, as in client-go. */
  readonly tokenFile?: string | undefined;
  readonly basic?: { readonly username: string; readonly password: string } | undefined;
  readonly impersonate?: Impersonation | undefined;
  readonly exec?: ExecPlugin | undefined;
  readonly authProvider?: AuthProvider | undefined;
}

/** A named identity provider that the client itself calls. */
export interface AuthProvider {
  readonly name: string;
  readonly config: Readonly<Record<string, string>>;
}

export interface Impersonation {
  readonly user: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** A program that prints credentials (client.authentication.k8s.io). */
export interface ExecPlugin {
  readonly apiVersion: (typeof EXEC_API_VERSIONS)[number];
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly provideClusterInfo: boolean;
  /** Whether the plugin inherits our standard input if it is a terminal. */
  readonly interactiveMode: (typeof INTERACTIVE_MODES)[number];
  /** Tells the user how to install it. */
  readonly installHint: string | undefined;
}

const EXEC_API_VERSIONS = [
  "client.authentication.k8s.io/v1beta1",
  "client.authentication.k8s.io/v1",
] as const;
const INTERACTIVE_MODES = ["IfAvailable", "Never", "Always"] as const;
const EXEC_EXTENSION = "client.authentication.k8s.io/exec";

/**
 * Reads the context's entries from files in order; the first file with an entry wins, as in
 * client-go. Throws ConfigurationError with all of their problems; other entries are not read.
 */
export async function readKubeconfigEntries(
  fileNames: readonly string[],
  selection: EntrySelection,
): Promise<KubeconfigEntries> {
  const problems: ConfigurationProblem[] = [];
  const files: KubeconfigFile[] = [];
  for (const name of fileNames) files.push(await readKubeconfigFile(name, problems));
  for (const { root } of files) refuseDoubles(root);
  const wanted = selection.context ?? first(files, ({ root }) => root.optionalString("current-context"));
  const context = wanted === undefined ? undefined : named(files, "contexts", "context", wanted);
  const clusterName = selection.cluster ?? context?.section.optionalString("cluster");
  const userName = selection.user ?? context?.section.optionalString("user");
  const cluster = clusterName === undefined ? undefined : named(files, "clusters", "cluster", clusterName);
  const user = userName === undefined ? undefined : named(files, "users", "user", userName);

  const complain = (message: string) =>
    problems.push({ source: fileNames[0] ?? "kubeconfig", line: 0, column: 0, path: "", message });
  if (files.length === 0 && selection.server === undefined)
    complain("there is none: name a file by --kubeconfig or $KUBECONFIG, or write ~/.kube/config");
  else if (wanted && context === undefined) complain(`context ${quoted(wanted)} does not exist`);
  else if (clusterName !== undefined && cluster === undefined)
    complain(`cluster ${quoted(clusterName)} does not exist`);
  else if (cluster === undefined && selection.server === undefined)
    complain(
      wanted === undefined
        ? "current-context is not set, and no context was named"
        : `context ${quoted(wanted)} names no cluster`,
    );
  if (userName !== undefined && user === undefined) complain(`user ${quoted(userName)} does not exist`);
  const entries = {
    namespace: context?.section.optionalString("namespace") ?? "default",
    ...readCluster(cluster?.section, selection.server !== undefined),
    user: user === undefined ? {} : readUser(user.section, path.dirname(user.file), userName),
  };
  if (problems.length > 0) throw new ConfigurationError(problems);
  return entries;
}

/** client-go turns the lists into maps, and refuses a file with a duplicate name. */
function refuseDoubles(root: Section): void {
  for (const list of ["clusters", "contexts", "users"]) {
    const names = new Set<string>();
    for (const item of root.sections(list)) {
      const name = item.optionalString("name") ?? "";
      if (names.has(name)) item.problem("name", `duplicate name ${quoted(name)} in list`);
      names.add(name);
    }
  }
}

/** Refuses an authority beside insecure-skip-tls-verify: readers could disagree about which counts. */
function refuseTwoTrusts(cluster: Section | undefined): void {
  const has = (name: string): boolean => cluster?.has(name) === true;
  const [data, file] = ["certificate-authority-data", "certificate-authority"];
  if (has(data) && has(file)) cluster?.problem(data, `and ${file} are both specified`);
  if (cluster?.boolean("insecure-skip-tls-verify") === true && (has(data) || has(file))) {
    cluster.problem(
      "insecure-skip-tls-verify",
      "specifying a root certificates file with the insecure flag is not allowed",
    );
  }
}

/** Follows clientcmd's validation of an AuthInfo; a token may stand beside certificates and plugins. */
function refuseTwoMethods(user: Section): void {
  const methods = [
    ...(user.has("token") ? ["token"] : []),
    ...(user.has("username") || user.has("password") ? ["basicAuth"] : []),
  ];
  if (methods.length > 1) {
    user.problem(
      "token",
      `more than one authentication method found; found [${methods.join(" ")}], only one is allowed`,
    );
  }
  if (user.has("tokenFile") && methods.includes("basicAuth"))
    user.problem("tokenFile", "username/password or bearer token may be set, but not both");
  for (const name of ["client-certificate", "client-key"]) {
    if (user.has(name) && user.has(`${name}-data`))
      user.problem(`${name}-data`, `and ${name} are both specified`);
  }
  const has = (name: string): boolean => user.has(name) || user.has(`${name}-data`);
  if (has("client-certificate") && !has("client-key"))
    user.problem(
      "client-key",
      "or client-key-data must be specified to use the clientCert authentication method",
    );
}

function readCluster(cluster: Section | undefined, hasServer: boolean) {
  const server = cluster?.optionalString("server", checkServer);
  refuseTwoTrusts(cluster);
  if (cluster !== undefined && !cluster.has("server") && !hasServer) cluster.problem("server", "is required");
  return {
    server: (server ?? "").replace(/(?<!\/)\/+$/, ""),
    certificateAuthority: pemOf(cluster, "certificate-authority"),
    insecureSkipTLSVerify: cluster?.boolean("insecure-skip-tls-verify") ?? false,
    tlsServerName: cluster?.optionalString("tls-server-name"),
    proxyUrl: cluster?.optionalString("proxy-url"),
    execConfig: cluster
      ?.sections("extensions")
      .find((extension) => extension.optionalString("name") === EXEC_EXTENSION)
      ?.entries()
      .find(([key]) => key === "extension")?.[1],
  };
}

/** Narrow the impersonated user; without `as` they would have no effect. */
const IMPERSONATED_PARTS = ["as-uid", "as-groups", "as-user-extra"];

function readUser(user: Section, folder: string, name = ""): KubeconfigUser {
  refuseTwoMethods(user);
  const username = secretText(user, "username");
  const as = user.optionalString("as") || undefined;
  const narrowing = as === undefined ? IMPERSONATED_PARTS.find((part) => isFilled(user, part)) : undefined;
  if (narrowing !== undefined)
    user.problem(narrowing, `requesting uid, groups or user-extra for ${name} without impersonating a user`);
  return {
    clientCertificate: pemOf(user, "client-certificate"),
    clientKey: pemOf(user, "client-key"),
    token: secretText(user, "token"),
    tokenFile: user.optionalFile("tokenFile"),
    basic: username === undefined ? undefined : { username, password: secretText(user, "password") ?? "" },
    impersonate:
      as === undefined
        ? undefined
        : {
            user: as,
            uid: user.optionalString("as-uid"),
            groups: user.strings("as-groups") ?? [],
            extra: Object.fromEntries(
              user
                .section("as-user-extra")
                .entries()
                .map(([key, values]) => [key, [values].flat().map(String)]),
            ),
          },
    exec: user.has("exec") ? readExec(user, folder) : undefined,
    authProvider: user.has("auth-provider") ? readAuthProvider(user.section("auth-provider")) : undefined,
  };
}

function isFilled(user: Section, name: string): boolean {
  const value = user.entries().find(([key]) => key === name)?.[1] ?? "";
  return typeof value === "object" ? Object.keys(value).length > 0 : value !== "";
}

function readExec(user: Section, folder: string): ExecPlugin {
  const exec = user.section("exec");
  if (user.has("auth-provider")) user.problem("auth-provider", "cannot be combined with an exec plugin");
  const command = exec.optionalString("command");
  if (command === undefined) exec.problem("command", "is required");
  if (!exec.has("apiVersion")) exec.problem("apiVersion", "is required");
  const apiVersion = exec.choice("apiVersion", EXEC_API_VERSIONS) ?? EXEC_API_VERSIONS[0];
  // v1 has no default here (tools/clientcmd/api/v1/defaults.go).
  if (apiVersion === EXEC_API_VERSIONS[1] && !exec.has("interactiveMode"))
    exec.problem("interactiveMode", "is required");
  return {
    apiVersion,
    // A bare name is searched in $PATH; a path is relative to the file's folder.
    command: command?.includes("/") ? path.resolve(folder, command) : (command ?? ""),
    args: exec.list("args").map(String),
    env: exec.sections("env").map((entry) => {
      if (!entry.has("name")) entry.problem("name", "is required");
      return { name: entry.optionalString("name") ?? "", value: secretText(entry, "value") ?? "" };
    }),
    provideClusterInfo: exec.boolean("provideClusterInfo") ?? false,
    interactiveMode: exec.choice("interactiveMode", INTERACTIVE_MODES) ?? "IfAvailable",
    installHint: exec.optionalString("installHint"),
  };
}

function readAuthProvider(provider: Section): AuthProvider {
  const config = provider.section("config").entries();
  return {
    name: provider.optionalString("name") ?? "",
    config: Object.fromEntries(config.map(([key, value]) => [key, String(value)])),
  };
}

/** Its problems do not repeat the value. */
function secretText(section: Section, name: string): string | undefined {
  const value = section.entries().find(([key]) => key === name)?.[1];
  if (value === undefined || typeof value === "string") return value;
  return section.problem(name, "must be a string");
}

function checkServer(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return "must be an http or https URL";
  return url.username === "" && url.password === "" ? undefined : "must not hold credentials";
}

function named(
  files: readonly KubeconfigFile[],
  list: string,
  member: string,
  name: string,
): { readonly section: Section; readonly file: string } | undefined {
  return first(files, ({ root, name: file }) => {
    const found = root.sections(list).find((item) => item.optionalString("name") === name);
    return found && { section: found.section(member), file };
  });
}

function first<Item, Found>(
  items: readonly Item[],
  find: (item: Item) => Found | undefined,
): Found | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}
