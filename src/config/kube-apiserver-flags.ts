import type { FlagTable } from "./flag.ts";
import type { KubeApiServerFlag } from "./flags.ts";

const listener = "Flags of kube-apiserver, which override the file: the listener";
const authentication = "Authentication";
const oidc = "Authentication by OpenID Connect";
const webhook = "Authentication by webhook";
const requestHeader = "Authentication by a front proxy";
const authorization = "Authorization";
const audit = "Audit";
const auditWebhook = "Audit by webhook";
const nodes = "Cluster and nodes";

/** Flags of kube-apiserver, and of the kubelet's `--kubeconfig`, that the gateway has too. Each overrides the file's field. */
export const kubeApiServerFlags = {
  "bind-address": { value: "ADDR", help: "the address of the API listener", group: listener },
  "secure-port": { value: "PORT", help: "the port of the API listener; 0 is any free one", group: listener },
  "tls-cert-file": {
    value: "FILE",
    help: "the API listener's certificate, followed by its intermediates; needs --tls-private-key-file",
    completes: "file",
    group: listener,
  },
  "tls-private-key-file": {
    value: "FILE",
    help: "the private key of --tls-cert-file",
    completes: "file",
    group: listener,
  },
  "http2-max-streams-per-connection": {
    value: "N",
    help: "concurrent requests of one HTTP/2 connection; 0 is the default",
    group: listener,
  },
  "max-connection-bytes-per-sec": {
    value: "BYTES",
    help: "bytes per second that one session may carry; 0 is no limit",
    group: listener,
  },
  "feature-gates": { value: "A=true,B=false", help: "feature gates to switch on or off", group: listener },
  "client-ca-file": {
    value: "FILE",
    help: "authorities of client certificates: the common name is the user, organizations are groups",
    completes: "file",
    group: authentication,
  },
  "token-auth-file": {
    value: "FILE",
    help: "bearer tokens, as CSV lines of token, user, UID and groups",
    completes: "file",
    group: authentication,
  },
  "anonymous-auth": {
    value: "true|false",
    help: "admit requests without credentials as system:anonymous",
    choices: ["true", "false"],
    group: authentication,
  },
  "oidc-issuer-url": {
    value: "URL",
    help: "the issuer of ID tokens; needs --oidc-client-id",
    group: oidc,
  },
  "oidc-client-id": {
    value: "LIST",
    help: "the client IDs that a token must be issued for, separated by commas",
    group: oidc,
  },
  "oidc-ca-file": {
    value: "FILE",
    help: "authorities of the issuer's certificate; without it the system's",
    completes: "file",
    group: oidc,
  },
  "oidc-username-claim": { value: "CLAIM", help: "the claim that is the user's name", group: oidc },
  "oidc-username-prefix": {
    value: "PREFIX",
    help: "what is put before user names; - is nothing",
    group: oidc,
  },
  "oidc-groups-claim": { value: "CLAIM", help: "the claim that lists the user's groups", group: oidc },
  "oidc-groups-prefix": { value: "PREFIX", help: "what is put before group names", group: oidc },
  "oidc-required-claim": {
    value: "CLAIM=VALUE,...",
    help: "claims that a token must have, with these values",
    group: oidc,
  },
  "oidc-signing-algs": {
    value: "LIST",
    help: "the signing algorithms that are accepted, separated by commas",
    group: oidc,
  },
  "authentication-token-webhook-config-file": {
    value: "FILE",
    help: "a kubeconfig of the webhook that reviews bearer tokens (TokenReview)",
    completes: "file",
    group: webhook,
  },
  "authentication-token-webhook-version": {
    value: "VERSION",
    help: "the version of TokenReview that is sent",
    choices: ["v1", "v1beta1"],
    group: webhook,
  },
  "authentication-token-webhook-cache-ttl": {
    value: "DURATION",
    help: "how long reviewed tokens are remembered",
    group: webhook,
  },
  "requestheader-client-ca-file": {
    value: "FILE",
    help: "authorities of the front proxy's client certificate; without it its headers are ignored",
    completes: "file",
    group: requestHeader,
  },
  "requestheader-allowed-names": {
    value: "LIST",
    help: "common names that the proxy's certificate may have; without it, any",
    group: requestHeader,
  },
  "requestheader-username-headers": {
    value: "LIST",
    help: "headers with the user's name, the first that is present",
    group: requestHeader,
  },
  "requestheader-uid-headers": {
    value: "LIST",
    help: "headers with the user's UID, the first that is present",
    group: requestHeader,
  },
  "requestheader-group-headers": {
    value: "LIST",
    help: "headers with the user's groups",
    group: requestHeader,
  },
  "requestheader-extra-headers-prefix": {
    value: "LIST",
    help: "prefixes of headers with what else is known of the user",
    group: requestHeader,
  },
  "authorization-mode": {
    value: "LIST",
    help: "authorizers in their order, such as RBAC,Webhook",
    group: authorization,
  },
  "authorization-webhook-config-file": {
    value: "FILE",
    help: "a kubeconfig of the webhook that authorizes (SubjectAccessReview); needs mode Webhook",
    completes: "file",
    group: authorization,
  },
  "authorization-webhook-version": {
    value: "VERSION",
    help: "the version of SubjectAccessReview that is sent",
    choices: ["v1", "v1beta1"],
    group: authorization,
  },
  "authorization-webhook-cache-authorized-ttl": {
    value: "DURATION",
    help: "how long the webhook's allowing answers are remembered",
    group: authorization,
  },
  "authorization-webhook-cache-unauthorized-ttl": {
    value: "DURATION",
    help: "how long its denying answers are remembered",
    group: authorization,
  },
  "audit-policy-file": {
    value: "FILE",
    help: "the audit policy (audit.k8s.io/v1); without it nothing is audited",
    completes: "file",
    group: audit,
  },
  "audit-log-path": {
    value: "FILE",
    help: "where audit events are written, one JSON object a line; - is standard output",
    completes: "file",
    group: audit,
  },
  "audit-log-maxsize": {
    value: "MEGABYTES",
    help: "the size at which the log is rotated; 0 is the default",
    group: audit,
  },
  "audit-log-maxage": { value: "DAYS", help: "how long rotated logs are kept; 0 is forever", group: audit },
  "audit-log-maxbackup": { value: "N", help: "how many rotated logs are kept; 0 is all", group: audit },
  "audit-webhook-config-file": {
    value: "FILE",
    help: "a kubeconfig of the webhook that takes audit events",
    completes: "file",
    group: auditWebhook,
  },
  "audit-webhook-version": {
    value: "VERSION",
    help: "the version of the events that are sent",
    choices: ["audit.k8s.io/v1"],
    group: auditWebhook,
  },
  "audit-webhook-mode": {
    value: "MODE",
    help: "batch sends behind requests; blocking holds each request until its event is sent; blocking-strict also refuses it where that fails",
    choices: ["batch", "blocking", "blocking-strict"],
    group: auditWebhook,
  },
  "audit-webhook-initial-backoff": {
    value: "DURATION",
    help: "the pause before the first retry of a failed request",
    group: auditWebhook,
  },
  "audit-webhook-batch-buffer-size": {
    value: "N",
    help: "events that wait to be sent; more are dropped and counted",
    group: auditWebhook,
  },
  "audit-webhook-batch-max-size": { value: "N", help: "events of one batch", group: auditWebhook },
  "audit-webhook-batch-max-wait": {
    value: "DURATION",
    help: "how long a batch that is not full waits",
    group: auditWebhook,
  },
  "audit-webhook-batch-throttle-enable": {
    value: "true|false",
    help: "limit how many batches are sent per second",
    choices: ["true", "false"],
    group: auditWebhook,
  },
  "audit-webhook-batch-throttle-qps": {
    value: "N",
    help: "batches per second on average",
    group: auditWebhook,
  },
  "audit-webhook-batch-throttle-burst": {
    value: "N",
    help: "batches at once where none was sent before",
    group: auditWebhook,
  },
  kubeconfig: {
    value: "FILE",
    help: "the kubelet's flag: a kubeconfig of the cluster whose pods and nodes are watched",
    completes: "file",
    group: nodes,
  },
  "kubelet-certificate-authority": {
    value: "FILE",
    help: "authorities of kubelets' serving certificates",
    completes: "file",
    group: nodes,
  },
  "kubelet-client-certificate": {
    value: "FILE",
    help: "the certificate that the gateway shows to kubelets; needs --kubelet-client-key",
    completes: "file",
    group: nodes,
  },
  "kubelet-client-key": {
    value: "FILE",
    help: "the private key of --kubelet-client-certificate",
    completes: "file",
    group: nodes,
  },
  "kubelet-preferred-address-types": {
    value: "LIST",
    help: "which address of a node is dialled, in order of preference",
    group: nodes,
  },
} as const satisfies FlagTable & Record<KubeApiServerFlag, unknown>;
