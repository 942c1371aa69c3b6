import { withoutUserinfo } from "../configuration-error.ts";
import { shaped, type Table, type ValuesOf } from "../field.ts";
import { boolean, file, implied, string } from "../fields.ts";
import { checkUpstreamTrust, type UpstreamTrust, upstreamTrustFields } from "./upstream-trust.ts";

/** A server that receives POSTs, set in the configuration itself. */
export interface WebhookUrl extends UpstreamTrust {
  readonly kind: "url";
  readonly url: string;
  /** A bearer token, read for every request: Kubernetes replaces service account tokens on disk. */
  readonly tokenFile: string | undefined;
}

/** The same in a kubeconfig, as for kube-apiserver's `--*-webhook-config-file`. */
interface WebhookKubeconfigFile {
  readonly kind: "kubeconfig";
  readonly file: string;
}

/**
 * The API server of this pod's cluster, with the pod's ServiceAccount. Reached by address:
 * authentication must not need DNS.
 */
interface InClusterServer {
  readonly kind: "inCluster";
}

export type WebhookTarget = WebhookUrl | WebhookKubeconfigFile | InClusterServer;

/** Versions of reviews. kube-apiserver's flags default to v1beta1. */
export const REVIEW_VERSIONS = ["v1", "v1beta1"] as const;

/** Either `kubeconfigFile`, set by `flag`, or the other fields. */
export function webhookTargetFields(flag: string) {
  const replaced = { impliedBy: [implied(flag, null)] };
  return {
    kubeconfigFile: file(
      "A kubeconfig with URL and credentials, instead of the fields from `url` to `tokenFile`.",
      "webhook kubeconfig",
      { flag },
    ),
    url: string("URL to POST to, without credentials.", { ...replaced, check: checkWebhookUrl }),
    ...upstreamTrustFields({
      certificateAuthorityFile: replaced,
      insecureSkipTLSVerify: replaced,
      clientCertificateFile: replaced,
      clientKeyFile: replaced,
    }),
    tokenFile: file("Bearer token; read for every request.", "text", replaced),
  };
}

/** Sends reviews to a webhook or to the own cluster's API server. */
export function reviewTargetFields(flag: string) {
  return {
    ...webhookTargetFields(flag),
    inCluster: boolean(
      "Use this pod's cluster and service account, instead of the fields from `kubeconfigFile` to `tokenFile`.",
      { default: false, impliedBy: [implied(flag, null)] },
    ),
  };
}

type TargetValues = ValuesOf<ReturnType<typeof webhookTargetFields>> & { readonly inCluster?: boolean };

const URL_FIELDS = [
  "url",
  "tokenFile",
  "certificateAuthorityFile",
  "insecureSkipTLSVerify",
  "clientCertificateFile",
  "clientKeyFile",
] as const;

/** Replaces the fields above by `target`; `example` is a URL for the message. */
export function withTarget<Values extends TargetValues>(fields: Table<Values>, example: string) {
  return shaped(fields, (values, section) => {
    checkUpstreamTrust(values, section);
    if (values.inCluster) {
      for (const name of ["kubeconfigFile", ...URL_FIELDS].filter((field) => section.has(field)))
        section.problem(name, "must not stand beside inCluster, which says it");
    } else if (section.has("kubeconfigFile")) {
      for (const name of URL_FIELDS.filter((field) => section.has(field)))
        section.problem(name, "must not stand beside kubeconfigFile, which says it");
    } else if (!section.has("url")) {
      section.problem("url", `is required, such as ${JSON.stringify(example)}`);
    }
    return targetOf(values);
  });
}

function targetOf<Values extends TargetValues>({
  kubeconfigFile,
  url = "",
  certificateAuthorityFile,
  insecureSkipTLSVerify,
  clientCertificateFile,
  clientKeyFile,
  tokenFile,
  inCluster = false,
  ...rest
}: Values) {
  const trust = { certificateAuthorityFile, insecureSkipTLSVerify, clientCertificateFile, clientKeyFile };
  return { target: target(), ...rest };

  function target(): WebhookTarget {
    if (inCluster) return { kind: "inCluster" };
    if (kubeconfigFile !== undefined) return { kind: "kubeconfig", file: kubeconfigFile };
    return { kind: "url", url, ...trust, tokenFile };
  }
}

export function checkWebhookUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") {
    return `must be an http or https URL, got ${JSON.stringify(withoutUserinfo(value).slice(0, 80))}`;
  }
  return url.username === "" && url.password === "" ? undefined : "must not hold credentials";
}
