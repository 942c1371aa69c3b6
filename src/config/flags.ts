import { resolve } from "node:path";
import { AUDIT_FLAGS, mergeAuditFlags } from "./audit-flags.ts";
import { AUTHENTICATION_FLAGS, mergeAuthenticationFlags } from "./authentication-flags.ts";
import { AUTHORIZATION_FLAGS, mergeAuthorizationFlags } from "./authorization-flags.ts";
import type { GatewayConfiguration } from "./configuration.ts";
import { ConfigurationError, type ConfigurationProblem } from "./configuration-error.ts";
import { FeatureGateError } from "./feature-gates.ts";
import { countFlag } from "./flag-values.ts";
import { checkNodeAddressType, isNodeAddressType } from "./kubelet.ts";
import { limitRanges } from "./limits.ts";
import { checkHost } from "./listener-address.ts";
import type { FileContent, NamedFile } from "./named-file.ts";
import { checkBytesPerSecond } from "./read-bounds.ts";

/** Flags of kube-apiserver, and of the kubelet's `--kubeconfig`, that the gateway has too, without the dashes. Each stands above the file's field. */
export const KUBE_APISERVER_FLAGS = [
  "feature-gates",
  ...AUTHENTICATION_FLAGS,
  ...AUTHORIZATION_FLAGS,
  ...AUDIT_FLAGS,
  "tls-cert-file",
  "tls-private-key-file",
  "kubelet-certificate-authority",
  "kubelet-client-certificate",
  "kubelet-client-key",
  "kubelet-preferred-address-types",
  "max-connection-bytes-per-sec",
  "http2-max-streams-per-connection",
  "secure-port",
  "bind-address",
  "kubeconfig",
] as const;

export type KubeApiServerFlag = (typeof KUBE_APISERVER_FLAGS)[number];
export type FlagValues = { readonly [Name in KubeApiServerFlag]?: string | undefined };

/**
 * The configuration with what the command line says otherwise. Files count from the working directory, as flags do everywhere.
 * Throws `ConfigurationError` with everything that is wrong with the flags.
 */
export function mergeFlags(configuration: GatewayConfiguration, flags: FlagValues): GatewayConfiguration {
  const problems: ConfigurationProblem[] = [];
  const merger = new FlagMerger(flags, problems);
  const merged: GatewayConfiguration = {
    ...configuration,
    listeners: merger.listeners(configuration.listeners),
    cluster: merger.cluster(configuration.cluster),
    authentication: mergeAuthenticationFlags(configuration.authentication, merger),
    authorization: mergeAuthorizationFlags(configuration.authorization, merger),
    audit: mergeAuditFlags(configuration.audit, merger),
    kubelet: merger.kubelet(configuration.kubelet),
    limits: merger.limits(configuration.limits),
    featureGates: merger.featureGates(configuration.featureGates),
  };
  if (problems.length > 0) {
    throw new ConfigurationError(problems);
  }
  return { ...merged, namedFiles: [...filesIn(merged, configuration.namedFiles), ...merger.files] };
}

/** Without those that a flag has replaced. */
function filesIn(merged: GatewayConfiguration, files: readonly NamedFile[]): readonly NamedFile[] {
  const values = new Set<unknown>();
  const visit = (value: unknown): void => {
    if (typeof value === "object" && value !== null) Object.values(value).forEach(visit);
    else values.add(value);
  };
  visit({ ...merged, namedFiles: [] });
  return files.filter(
    ({ file, certificateFile }) => values.has(file) && (!certificateFile || values.has(certificateFile)),
  );
}

class FlagMerger {
  readonly #flags: FlagValues;
  readonly #problems: ConfigurationProblem[];
  /** Those that flags name. */
  readonly files: NamedFile[] = [];

  constructor(flags: FlagValues, problems: ConfigurationProblem[]) {
    this.#flags = flags;
    this.#problems = problems;
  }

  listeners(listeners: GatewayConfiguration["listeners"]): GatewayConfiguration["listeners"] {
    const { apiServer } = listeners;
    const certFile = this.file("tls-cert-file", "certificates") ?? apiServer.tls?.certFile;
    const keyFile = this.file("tls-private-key-file", "private key", certFile) ?? apiServer.tls?.keyFile;
    this.#requirePair("tls-cert-file", certFile, "tls-private-key-file", keyFile);
    const tls = certFile === undefined || keyFile === undefined ? undefined : { certFile, keyFile };
    return {
      ...listeners,
      apiServer: {
        ...apiServer,
        address: this.#host(apiServer.address),
        port: this.#port(apiServer.port),
        tls,
      },
    };
  }

  cluster(cluster: GatewayConfiguration["cluster"]): GatewayConfiguration["cluster"] {
    const kubeconfig = this.file("kubeconfig", "text");
    if (kubeconfig === undefined) return cluster;
    if (cluster.manifests.length > 0)
      this.refuse("kubeconfig", "is not for a configuration with cluster.manifests");
    const { forwardAs = "caller", publishDeclaredFeatures } = cluster.live ?? {};
    return { ...cluster, live: { kubeconfig, context: undefined, forwardAs, publishDeclaredFeatures } };
  }

  kubelet(kubelet: GatewayConfiguration["kubelet"]): GatewayConfiguration["kubelet"] {
    const authority = this.file("kubelet-certificate-authority", "certificates");
    const clientCertificateFile =
      this.file("kubelet-client-certificate", "certificates") ?? kubelet.clientCertificateFile;
    const clientKeyFile =
      this.file("kubelet-client-key", "private key", clientCertificateFile) ?? kubelet.clientKeyFile;
    this.#requirePair(
      "kubelet-client-certificate",
      clientCertificateFile,
      "kubelet-client-key",
      clientKeyFile,
    );
    const types = this.list(
      "kubelet-preferred-address-types",
      kubelet.preferredAddressTypes,
      checkNodeAddressType,
    );
    return {
      ...kubelet,
      certificateAuthorityFile: authority ?? kubelet.certificateAuthorityFile,
      // An authority is given so that kubelets are verified by it.
      insecureSkipTLSVerify: authority === undefined && kubelet.insecureSkipTLSVerify,
      clientCertificateFile,
      clientKeyFile,
      preferredAddressTypes: types.filter(isNodeAddressType),
    };
  }

  limits(limits: GatewayConfiguration["limits"]): GatewayConfiguration["limits"] {
    const flag = "max-connection-bytes-per-sec";
    const bytesPerSecond = countFlag(flag, this) ?? limits.maxConnectionBytesPerSecond;
    const slow = checkBytesPerSecond(bytesPerSecond);
    if (slow !== undefined) this.refuse(flag, slow);
    return {
      ...limits,
      maxConnectionBytesPerSecond: bytesPerSecond,
      maxHttp2Streams: this.#http2Streams() ?? limits.maxHttp2Streams,
    };
  }

  /** Zero means the default, as at kube-apiserver. */
  #http2Streams(): number | undefined {
    const flag = "http2-max-streams-per-connection";
    const streams = countFlag(flag, this);
    const { max } = limitRanges.maxHttp2Streams;
    if (streams !== undefined && streams > max) this.refuse(flag, `must be at most ${max}`);
    return streams === 0 ? undefined : streams;
  }

  featureGates(gates: GatewayConfiguration["featureGates"]): GatewayConfiguration["featureGates"] {
    try {
      return gates.with(this.#flags["feature-gates"] ?? "");
    } catch (reason) {
      if (!(reason instanceof FeatureGateError)) {
        throw reason;
      }
      this.refuse("feature-gates", reason.message);
      return gates;
    }
  }

  text(flag: KubeApiServerFlag): string | undefined {
    const value = this.#flags[flag];
    if (value === "") {
      this.refuse(flag, "must not be empty");
    }
    return value;
  }

  file(
    flag: KubeApiServerFlag,
    content?: FileContent,
    certificateFile?: string | undefined,
  ): string | undefined {
    const value = this.text(flag);
    if (value === undefined) return undefined;
    const file = resolve(value);
    const place = { source: `--${flag}`, line: 0, path: "" };
    if (content !== undefined) this.files.push({ file, content, certificateFile, ...place });
    return file;
  }

  list(
    flag: KubeApiServerFlag,
    fallback: readonly string[],
    check: (item: string) => string | undefined,
  ): readonly string[] {
    const items = this.#flags[flag]?.split(",").map((item) => item.trim());
    for (const wrong of (items ?? []).map(check)) {
      if (wrong !== undefined) {
        this.refuse(flag, wrong);
      }
    }
    return items ?? fallback;
  }

  #host(fallback: string): string {
    const value = this.#flags["bind-address"];
    const wrong = value === undefined ? undefined : checkHost(value);
    if (wrong !== undefined) {
      this.refuse("bind-address", wrong);
    }
    return value ?? fallback;
  }

  #port(fallback: number): number {
    const value = this.#flags["secure-port"];
    if (value === undefined) {
      return fallback;
    }
    if (!/^\d{1,5}$/.test(value) || Number(value) > 65_535) {
      this.refuse(
        "secure-port",
        `must be a port between 0 (any free one) and 65535, got ${JSON.stringify(value)}`,
      );
    }
    return Number(value);
  }

  #requirePair(
    oneFlag: KubeApiServerFlag,
    one: string | undefined,
    otherFlag: KubeApiServerFlag,
    other: string | undefined,
  ): void {
    if (one !== undefined && other === undefined) {
      this.refuse(oneFlag, `needs --${otherFlag} too`);
    } else if (one === undefined && other !== undefined) {
      this.refuse(otherFlag, `needs --${oneFlag} too`);
    } else if (one !== undefined && other !== undefined && this.#flags[oneFlag] && !this.#flags[otherFlag]) {
      // The file's key belongs to the flag's certificate from now on.
      const place = { source: `--${oneFlag}`, line: 0, path: "" };
      this.files.push({ file: other, content: "private key", certificateFile: one, ...place });
    }
  }

  refuse(flag: KubeApiServerFlag, message: string): void {
    this.#problems.push({ source: `--${flag}`, line: 0, column: 0, path: "", message });
  }
}
