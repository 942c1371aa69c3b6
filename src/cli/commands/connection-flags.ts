import type { Flag, FlagTable } from "../../config/flag.ts";
import { type Operand, UsageError } from "../command.ts";
import { durationFrom, requestTimeout } from "../flag-readers.ts";
import { parseFlags } from "../parse-flags.ts";

const group = "Flags of kubectl, also before the command";

/** Flags to find and reach the API server, with kubectl's names and meanings. */
export const connectionFlags = {
  namespace: {
    short: "n",
    value: "NAME",
    help: "the namespace; default: the context's, or default",
    completes: "namespace",
    group,
  },
  kubeconfig: {
    value: "FILE",
    help: "the kubeconfig; default: $KUBECONFIG, ~/.kube/config, or the pod's service account",
    completes: "file",
    group,
  },
  context: {
    value: "NAME",
    help: "a context of the kubeconfig, instead of the current one",
    completes: "context",
    group,
  },
  cluster: {
    value: "NAME",
    help: "a cluster of the kubeconfig, instead of the context's",
    completes: "cluster",
    group,
  },
  user: {
    value: "NAME",
    help: "a user of the kubeconfig, instead of the context's",
    completes: "user",
    group,
  },
  server: {
    short: "s",
    value: "URL",
    help: "the API server, instead of the cluster's",
    parse: serverAddress,
    group,
  },
  "certificate-authority": {
    value: "FILE",
    help: "authorities of the server's certificate",
    completes: "file",
    group,
  },
  "insecure-skip-tls-verify": {
    help: "do not verify the server's certificate; anyone on the way can then read and change everything",
    group,
  },
  "proxy-url": {
    value: "URL",
    help: "a proxy to the API server, instead of the kubeconfig's and the environment's",
    group,
  },
  "tls-server-name": {
    value: "NAME",
    help: "the name in the server's certificate, if it differs from the URL's",
    group,
  },
  token: { value: "TOKEN", help: "a bearer token, instead of the user's credentials", group },
  "client-certificate": { value: "FILE", help: "a client certificate", completes: "file", group },
  "client-key": { value: "FILE", help: "its private key", completes: "file", group },
  username: { value: "NAME", help: "the user of basic authentication", group },
  password: { value: "TEXT", help: "the password of basic authentication", group },
  as: { value: "USER", help: "the user to impersonate", group },
  "as-group": { value: "GROUP", help: "a group to impersonate", isRepeatable: true, group },
  "as-uid": { value: "UID", help: "the UID to impersonate", group },
  "as-user-extra": {
    value: "KEY=VALUE",
    help: "an extra field to impersonate",
    isRepeatable: true,
    parse: keyAndValue,
    group,
  },
  "request-timeout": {
    value: "DURATION",
    help: "time limit of requests for pods or services, such as 5s; 0: none; sessions have no limit",
    default: "30s",
    parse: requestTimeout,
    group,
  },
  v: {
    short: "v",
    value: "LEVEL",
    help: "details on stderr: 4 shows fallbacks, 6 requests, 7 their headers, 8 those of responses, too",
    group,
  },
  // Sluice accepts these flags and ignores them: it has no cache, compression, profile, kubectl
  // version or preferences file.
  "cache-dir": { value: "FOLDER", help: "ignored: nothing is cached", isHidden: true, group },
  "disable-compression": { help: "ignored: answers are not compressed", isHidden: true, group },
  kuberc: { value: "FILE", help: "ignored: aliases and defaults are kubectl's own", isHidden: true, group },
  "log-flush-frequency": {
    value: "DURATION",
    help: "ignored: details are printed at once",
    isHidden: true,
    group,
  },
  "match-server-version": { help: "ignored: no version has to match", isHidden: true, group },
  profile: { value: "NAME", help: "ignored: kubectl profiles itself by it", isHidden: true, group },
  "profile-output": { value: "FILE", help: "ignored, as --profile", isHidden: true, group },
  vmodule: { value: "LIST", help: "ignored: kubectl's own files", isHidden: true, group },
  "warnings-as-errors": { help: "ignored: no warning is printed", isHidden: true, group },
} as const satisfies FlagTable;

/** Flags that exec and attach share. */
export const commandFlags = {
  container: {
    short: "c",
    value: "NAME",
    help: "the container; default: the one in the annotation kubectl.kubernetes.io/default-container, or the first",
    completes: "container",
  },
  stdin: { short: "i", help: "pass standard input to the container" },
  tty: { short: "t", help: "standard input is a terminal; ~. at the start of a line ends the session" },
  quiet: { short: "q", help: "print only the output of the remote process" },
  "escape-char": {
    value: "CHAR",
    help: "the character before the dot that ends the session, or none",
    default: "~",
    parse: escapeCharacter,
  },
  "pod-running-timeout": podRunningTimeout("1m"),
  ...connectionFlags,
} as const satisfies FlagTable;

export const podOperand: Operand = {
  name: "POD | TYPE/NAME",
  help: "a pod, or an object that selects pods: deploy/web, svc/web, sts/db, job/once",
  completes: "pod",
};

function keyAndValue(text: string): readonly [key: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1) throw new RangeError("must be KEY=VALUE");
  return [text.slice(0, at), text.slice(at + 1)];
}

/** kubectl's defaults differ from command to command. */
export function podRunningTimeout<const Default extends string>(defaultTime: Default) {
  return {
    value: "DURATION",
    help: "how long to wait if TYPE/NAME selects no pod",
    default: defaultTime,
    parse: durationFrom(1),
  } as const;
}

function escapeCharacter(text: string): string {
  if (text === "none" || /^[\x21-\x7e]$/.test(text)) return text;
  throw new RangeError('must be one character, or "none"');
}

/**
 * The number of arguments before the command's name: kubectl's global flags and their values.
 * Throws UsageError.
 */
export function countLeadingFlags(args: readonly string[]): number {
  let count = 0;
  while (args[count]?.startsWith("-")) {
    const [flag = ""] = args.slice(count);
    // Refuses a flag that kubectl does not have, or that lacks its value.
    const isComplete = flag.includes("=") || (!flag.startsWith("--") && flag.length > 2);
    const [name = ""] = flag.replace(/^-+/, "").split("=");
    const row = Object.entries<Flag>(connectionFlags).find(
      ([long, { short }]) => long === name || short === name,
    );
    const takesNext = !isComplete && row !== undefined && "value" in row[1];
    parseFlags({ flags: connectionFlags }, args.slice(count, count + (takesNext ? 2 : 1)));
    count += takesNext ? 2 : 1;
  }
  if (count >= args.length) throw new UsageError("a command is required");
  return count;
}

/** A URL, or `host:port`; empty counts as absent. */
function serverAddress(text: string): string {
  const url = text.includes("://") ? text : `http://${text}`;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (text === "" || (parsed !== undefined && /^https?:$/.test(parsed.protocol) && parsed.username === ""))
    return text;
  throw new RangeError("must be an http or https URL, or HOST:PORT");
}
