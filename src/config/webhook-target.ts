import type { Section } from "./section.ts";
import { readUpstreamTrust, type UpstreamTrust } from "./upstream-trust.ts";

/** Where something that is asked by POST is, said in the configuration itself. */
export interface WebhookUrl extends UpstreamTrust {
  readonly kind: "url";
  readonly url: string;
  /** A bearer token for it, read again for every question: Kubernetes replaces service account tokens on disk. */
  readonly tokenFile: string | undefined;
}

/** The same in a file of kubeconfig format, as kube-apiserver's `--*-webhook-config-file` have it. */
export interface WebhookKubeconfigFile {
  readonly kind: "kubeconfig";
  readonly file: string;
}

export type WebhookTarget = WebhookUrl | WebhookKubeconfigFile;

/** In which words reviews are asked for. kube-apiserver's flags mean v1beta1 where they say nothing. */
export const REVIEW_VERSIONS = ["v1", "v1beta1"] as const;
export type ReviewVersion = (typeof REVIEW_VERSIONS)[number];

/** Undefined when the section says nothing that can be used; why is noted. `example` is a URL for the message. */
export function readWebhookTarget(section: Section, example: string): WebhookTarget | undefined {
  const file = section.optionalFile("kubeconfigFile", "webhook kubeconfig");
  const url = section.optionalString("url", checkWebhookUrl);
  const rest = {
    ...readUpstreamTrust(section, false),
    tokenFile: section.optionalFile("tokenFile", "text"),
  };
  if (section.has("kubeconfigFile")) {
    const beside = ["url", ...URL_FIELDS].filter((name) => section.has(name));
    for (const name of beside) section.problem(name, "must not stand beside kubeconfigFile, which says it");
    return file === undefined ? undefined : { kind: "kubeconfig", file };
  }
  if (!section.has("url")) section.problem("url", `is required, such as ${JSON.stringify(example)}`);
  return url === undefined ? undefined : { kind: "url", url, ...rest };
}

const URL_FIELDS = [
  "tokenFile",
  "certificateAuthorityFile",
  "insecureSkipTLSVerify",
  "clientCertificateFile",
  "clientKeyFile",
];

export function checkWebhookUrl(value: string): string | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol !== "https:" && url?.protocol !== "http:") {
    return `must be an http or https URL, got ${JSON.stringify(value.slice(0, 80))}`;
  }
  return url.username === "" && url.password === "" ? undefined : "must not hold credentials";
}
