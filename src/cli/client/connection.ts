import { loadKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import type { KubeconfigOverrides } from "@sluice/client/internal/kubernetes/kubeconfig-overrides";
import type { ResumeOptions } from "@sluice/client/internal/session-times";
import type { ConnectTrace, Target } from "@sluice/client/internal/target";
import { kubeconfigTarget } from "@sluice/client/internal/target";
import { maskControls } from "../../observability/mask-controls.ts";
import { UsageError, type ValuesOf } from "../command.ts";
import type { connectionFlags } from "../commands/connection-flags.ts";

const SECRET_HEADERS = /^(?:authorization|proxy-authorization|cookie|set-cookie|sec-websocket-key)$/i;

/** The header Sluice-Resume contains secrets. */
const RESUME_SECRETS = /\b(key|proof)=[\w-]+/g;

type ConnectionValues = ValuesOf<typeof connectionFlags>;

export interface ClientConnection {
  readonly target: Target;
  readonly namespace: string;
  readonly verbosity: Verbosity;
  /** Time limit of one request for an object; 0 means none. */
  readonly requestTimeoutMs: number;
}

/** Throws UsageError, and ConfigurationError for an invalid kubeconfig. */
export async function openConnection(values: ConnectionValues): Promise<ClientConnection> {
  const verbosity = verbosityOf(values.v);
  const kubeconfig = await loadKubeconfig(values.kubeconfig || undefined, overridesOf(values));
  const target = kubeconfigTarget(kubeconfig, {
    trace: verbosity.trace,
    headers: () => [["User-Agent", "sluice"]],
  });
  const { namespace } = kubeconfig;
  return { target, namespace, verbosity, requestTimeoutMs: values["request-timeout"] };
}

/**
 * kubectl's flags. An empty flag counts as absent. Throws UsageError for impersonation without a
 * user.
 */
export function overridesOf(
  values: Omit<ConnectionValues, "kubeconfig" | "request-timeout" | "v">,
): KubeconfigOverrides {
  const { as, "as-group": groups, "as-uid": uid, "as-user-extra": extra } = values;
  const impersonates = groups.length > 0 || Boolean(uid) || extra.length > 0;
  if (!as && impersonates) throw new UsageError("--as-group, --as-uid and --as-user-extra need --as");
  return {
    context: values.context || undefined,
    cluster: values.cluster || undefined,
    user: values.user || undefined,
    namespace: values.namespace || undefined,
    server: values.server || undefined,
    certificateAuthority: values["certificate-authority"] || undefined,
    insecureSkipTLSVerify: values["insecure-skip-tls-verify"],
    proxyUrl: values["proxy-url"] || undefined,
    tlsServerName: values["tls-server-name"] || undefined,
    clientCertificate: values["client-certificate"] || undefined,
    clientKey: values["client-key"] || undefined,
    token: values.token || undefined,
    username: values.username || undefined,
    password: values.password || undefined,
    ...(as && { impersonate: { user: as, uid: uid || undefined, groups, extra: extraOf(extra) } }),
  };
}

function extraOf(
  pairs: readonly (readonly [key: string, value: string])[],
): Record<string, readonly string[]> {
  const extra = new Map<string, string[]>();
  for (const [key, value] of pairs) extra.set(key, [...(extra.get(key) ?? []), value]);
  return Object.fromEntries(extra);
}

/** kubectl's switch: only "false" turns WebSockets off. */
export function webSocketsAreOn(variable: string): boolean {
  return (process.env[variable] ?? "").toLowerCase() !== "false";
}

/**
 * Sessions survive lost connections if the server is a Sluice; "false" turns that off. -v 4 shows
 * resumptions.
 */
export function resumeOptions({ verbosity }: ClientConnection): ResumeOptions | false {
  return webSocketsAreOn("SLUICE_RESUME") && { note: (text) => verbosity.note(text) };
}

/** `NAME` is a pod; `TYPE/NAME` is a workload or service that selects pods. */
export function parseResource(text: string | undefined): { type: string; name: string } {
  const [first = "", second, ...more] = (text ?? "").split("/");
  if (first === "" || second === "" || more.length > 0) {
    throw new UsageError(text ? `${text}: must be NAME or TYPE/NAME` : "pod or type/name must be specified");
  }
  return second === undefined ? { type: "pod", name: first } : { type: first.toLowerCase(), name: second };
}

/** The output of `-v` on stderr. Credentials are masked at every level. */
interface Verbosity {
  readonly trace: ConnectTrace;
  /** Prints a line from level 4 on. */
  note(text: string): void;
}

/** Parses `level` like kubectl: `7`, or `=7` from `-v=7`. Throws UsageError. */
export function verbosityOf(level: string | undefined): Verbosity {
  const text = (level ?? "0").replace(/^=/, "");
  if (!/^\d{1,2}$/.test(text)) throw new UsageError(`-v ${text}: must be a number`);
  const number = Number(text);
  const write = (from: number, line: string): void => {
    if (number < from) return;
    // A terminal in raw mode goes on in the same column after a line feed.
    process.stderr.write(`${maskControls(line)}${process.stderr.isTTY ? "\r\n" : "\n"}`);
  };
  const writeHeaders = (from: number, headers: readonly (readonly [string, string])[]): void => {
    for (const [name, value] of headers) {
      const shown = SECRET_HEADERS.test(name) ? value.replace(/(?<!\S)\S+$/, "<masked>") : value;
      write(from, `    ${name}: ${shown.replace(RESUME_SECRETS, "$1=<masked>")}`);
    }
  };
  return {
    note: (line) => write(4, line),
    trace: {
      request: (method, url, headers) => {
        write(6, `${method} ${withoutCommand(url)}`);
        write(7, "Request Headers:");
        writeHeaders(7, headers);
      },
      response: (status, statusText, headers, elapsedMs) => {
        write(6, `Response Status: ${status} ${statusText} in ${Math.round(elapsedMs)} milliseconds`);
        writeHeaders(8, headers);
      },
    },
  };
}

/** A command line may contain a password. */
function withoutCommand(url: string): string {
  return url.replace(/([?&]command=)[^&]*/g, "$1<masked>");
}
