import { attachPath, execPath, kubeconfigTarget, portForwardPath, Target } from "@sluice/client";
import { readUpTo } from "@sluice/client/internal/config/named-file-text";
import { systemErrorText } from "@sluice/client/internal/config/system-error";
import { loadKubeconfig } from "@sluice/client/internal/kubernetes/kubeconfig";
import type { UpstreamTlsOptions } from "@sluice/client/internal/net/tls";
import { kubeletCommandPath, kubeletPortForwardPath } from "@sluice/client/internal/pod-paths";
import type { LoadPlan } from "@sluice/lab/load/load-plan";
import { UsageError } from "../command.ts";
import type { TargetValues } from "../commands/target-flags.ts";

/** The server, as plain data for generator processes. */
export type TargetSpec =
  | { readonly type: "kubeconfig"; readonly file: string | undefined; readonly context: string | undefined }
  | ServerSpec;

interface ServerSpec {
  readonly type: "server";
  readonly url: string;
  readonly token: string | undefined;
  readonly tls: Pick<UpstreamTlsOptions, "insecureSkipVerify"> &
    Readonly<Partial<Record<"ca" | "certificate" | "key", string>>>;
}

export async function targetSpecOf(
  flags: TargetValues & { readonly "streaming-url"?: string | undefined },
): Promise<TargetSpec> {
  const { kubeconfig, context, server } = flags;
  const streamingUrl = flags["streaming-url"];
  if (server !== undefined) return serverSpecOf(flags, "--server", server);
  if (streamingUrl === undefined) return { type: "kubeconfig", file: kubeconfig, context };
  return serverSpecOf(flags, "--streaming-url", urlOf("--streaming-url", streamingUrl).origin);
}

/**
 * A server without a kubeconfig. Throws UsageError for an invalid URL, naming its flag, and for
 * unreadable files.
 */
export async function serverSpecOf(flags: TargetValues, flag: string, url: string): Promise<ServerSpec> {
  urlOf(flag, url);
  const { token } = flags;
  const read = async (
    name: "certificate-authority" | "client-certificate" | "client-key" | "token-file",
  ): Promise<string | undefined> => {
    const file = flags[name];
    if (file === undefined) return undefined;
    try {
      return (await readUpTo(file)).toString();
    } catch (error) {
      throw new UsageError(`--${name}: ${systemErrorText(error)}`);
    }
  };
  const [ca, certificate, key, tokenOfFile] = await Promise.all([
    read("certificate-authority"),
    read("client-certificate"),
    read("client-key"),
    read("token-file"),
  ]);
  return {
    type: "server",
    url,
    token: token ?? tokenOfFile?.trim(),
    tls: {
      ...(ca !== undefined && { ca }),
      ...(certificate !== undefined && { certificate }),
      ...(key !== undefined && { key }),
      insecureSkipVerify: flags["insecure-skip-tls-verify"],
    },
  };
}

/**
 * Throws ConfigurationError for an invalid kubeconfig, CredentialsError for one that cannot be used,
 * and UsageError for flags that cannot.
 */
export async function openTarget(spec: TargetSpec): Promise<Target> {
  if (spec.type === "kubeconfig") return kubeconfigTarget(await loadKubeconfig(spec.file, spec.context));
  const { url, token, tls } = spec;
  try {
    return new Target({
      url,
      tls,
      headers: () => (token === undefined ? [] : [["Authorization", `Bearer ${token}`]]),
    });
  } catch (error) {
    throw new UsageError(`--server ${url}: ${systemErrorText(error)}`);
  }
}

/** The target of a session. */
export interface SessionPlace {
  readonly kind: LoadPlan["kind"];
  readonly speaks: "api-server" | "kubelet";
  readonly streamingUrl: string | undefined;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string | undefined;
  readonly port: number;
  readonly command: readonly string[];
  readonly hasInput: boolean;
  readonly protocol: LoadPlan["protocol"];
}

/** Path and query below the server's URL. */
export function sessionPath(place: SessionPlace): string {
  const { kind, streamingUrl, speaks, protocol, port, hasInput, command } = place;
  if (streamingUrl !== undefined) {
    const { pathname, search } = urlOf("--streaming-url", streamingUrl);
    return pathname + search;
  }
  if (speaks === "kubelet") return kubeletPath(place);
  const streams = { stdin: hasInput, stdout: true, stderr: false, tty: false };
  if (kind === "exec") return execPath(place, command)(streams);
  if (kind === "attach") return attachPath(place)(streams);
  return portForwardPath(place) + (protocol === "legacy" ? `?ports=${port}` : "");
}

function kubeletPath({ container, ...place }: SessionPlace): string {
  const { kind, protocol, port, hasInput, command } = place;
  if (kind === "port-forward") return kubeletPortForwardPath(place, protocol === "legacy" ? port : undefined);
  if (container === undefined) throw new UsageError("-c CONTAINER is required with --speaks kubelet");
  const streams = { stdin: hasInput, stdout: true, stderr: false, tty: false };
  return kubeletCommandPath(kind, { ...place, container }, command)(streams);
}

function urlOf(flag: string, text: string): URL {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new UsageError(`${flag}: must be an http or https URL`);
  return new URL(text);
}
