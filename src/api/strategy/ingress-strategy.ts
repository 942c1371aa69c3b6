import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import type { FeatureGates } from "../../config/feature-gates.ts";
import { type FieldError, invalidValue, notSupported, required } from "../field-errors.ts";
import {
  INGRESS_CLASS_ANNOTATION,
  type Ingress,
  type IngressAddress,
  type IngressPath,
  type IngressRule,
  type IngressSpec,
  type IngressTls,
  NETWORKING_API_VERSION,
} from "../networking-objects.ts";
import {
  isLenientIP,
  labelProblems,
  NOT_AN_IP,
  serviceNameProblems,
  subdomainProblems,
  wildcardSubdomainProblems,
} from "../validation/name-rules.ts";
import { ingressShape } from "../validation/networking-shapes.ts";
import { type BackendRules, backendErrors } from "../validation/validate-ingress-backend.ts";
import { validateMetadata, validateMetadataUpdate } from "../validation/validate-metadata.ts";
import { ingressV1beta1, NETWORKING_V1BETA1 } from "./ingress-v1beta1.ts";
import { keepingStatus, type Strategy, withFirstGeneration, withNextGeneration } from "./strategy.ts";

const PATH_TYPES = ["Exact", "ImplementationSpecific", "Prefix"];

/** With any of these, the matched path and the backend's path could differ. */
const FORBIDDEN_SEQUENCES = ["//", "/./", "/../", "%2f", "%2F"];

const FORBIDDEN_ENDINGS = ["/..", "/."];

export const ingressStrategy: Strategy<Ingress> = {
  kind: "Ingress",
  apiVersion: NETWORKING_API_VERSION,
  resource: "ingresses",
  isNamespaced: true,
  shape: ingressShape,
  otherVersions: { [NETWORKING_V1BETA1]: ingressV1beta1 },
  withDefaults: (ingress) => ingress,
  prepareForCreate: (ingress) => ({ ...withFirstGeneration(ingress), status: { loadBalancer: {} } }),
  validateCreate: (ingress, gates) => [
    ...validateIngress(ingress, rulesFor(gates, undefined)),
    ...annotationErrors(ingress),
    ...ingressStatusErrors(ingress),
  ],
  prepareForUpdate: (next, old) => withNextGeneration(keepingStatus(next, old), old),
  validateUpdate: (next, old, gates) => [
    ...validateMetadataUpdate(next.metadata, old.metadata),
    ...validateIngress(next, rulesFor(gates, old)),
  ],
  warnings: ({ metadata, spec }) => {
    const isAnnotated = metadata.annotations?.[INGRESS_CLASS_ANNOTATION] !== undefined;
    if (!isAnnotated || spec?.ingressClassName !== undefined) return [];
    return [
      `annotation "${INGRESS_CLASS_ANNOTATION}" is deprecated, please use 'spec.ingressClassName' instead`,
    ];
  },
};

/** An older object may keep values that were valid when it was stored. */
function rulesFor(gates: FeatureGates, old: Ingress | undefined): IngressRules {
  const isRelaxed = gates.isEnabled("RelaxedServiceNameValidation");
  return {
    allowsRelaxedServiceNames: isRelaxed || (old !== undefined && hasRelaxedServiceName(old)),
    allowsInvalidSecretNames: old !== undefined && hasInvalidSecretName(old),
    allowsInvalidWildcardRules: old !== undefined && hasInvalidWildcardRule(old),
  };
}

function hasInvalidSecretName({ spec }: Ingress): boolean {
  return (spec?.tls ?? []).some((entry) => secretNameProblems(entry?.secretName ?? "").length > 0);
}

function hasInvalidWildcardRule({ spec }: Ingress): boolean {
  const mildest = { allowsRelaxedServiceNames: true };
  return (spec?.rules ?? []).some(
    (rule) => isWildcardHost(rule?.host ?? "") && ruleValueErrors(rule, [], mildest).length > 0,
  );
}

function hasRelaxedServiceName({ spec }: Ingress): boolean {
  const paths = (spec?.rules ?? []).flatMap((rule) => rule?.http?.paths ?? []);
  const backends = [spec?.defaultBackend, ...paths.map((path) => path?.backend)];
  return backends.some((backend) => {
    const name = backend?.service?.name ?? "";
    return serviceNameProblems(name).length > 0 && labelProblems(name).length === 0;
  });
}

export function ingressStatusErrors({ status }: Ingress): FieldError[] {
  const addresses = status?.loadBalancer?.ingress ?? [];
  return addresses.flatMap((address, index) =>
    addressErrors(address ?? {}, ["status", "loadBalancer", "ingress", index]),
  );
}

function addressErrors({ ip = "", hostname = "" }: IngressAddress, path: FieldPath): FieldError[] {
  const hostnamePath = [...path, "hostname"];
  const nameProblems = hostname === "" ? [] : subdomainProblems(hostname);
  return [
    ...(ip === "" || isLenientIP(ip) ? [] : [invalidValue([...path, "ip"], ip, NOT_AN_IP)]),
    ...nameProblems.map((problem) => invalidValue(hostnamePath, hostname, problem)),
    ...(isLenientIP(hostname)
      ? [invalidValue(hostnamePath, hostname, "must be a DNS name, not an IP address")]
      : []),
  ];
}

/** Values that a stored object may keep although they are invalid today. */
interface IngressRules extends BackendRules {
  readonly allowsInvalidSecretNames: boolean;
  readonly allowsInvalidWildcardRules: boolean;
}

/** The API server's checks for create and update (pkg/apis/networking/validation). */
function validateIngress({ metadata, spec = {} }: Ingress, rules: IngressRules): FieldError[] {
  const { rules: ruleList, defaultBackend, tls = [], ingressClassName } = spec;
  const at = (field: string): FieldPath => ["spec", field];
  const classProblems = ingressClassName === undefined ? [] : subdomainProblems(ingressClassName);
  return [
    ...validateMetadata(metadata, { isNamespaced: true, nameProblems: subdomainProblems }),
    ...emptySpecErrors(spec),
    ...(defaultBackend ? backendErrors(defaultBackend, at("defaultBackend"), rules) : []),
    ...(ruleList ?? []).flatMap((rule, index) => ruleErrors(rule ?? {}, [...at("rules"), index], rules)),
    ...tls.flatMap((entry, index) => tlsErrors(entry ?? {}, [...at("tls"), index], rules)),
    ...classProblems.map((problem) => invalidValue(at("ingressClassName"), ingressClassName, problem)),
  ];
}

/** Only on create. As in Kubernetes, the path lacks `metadata`. */
function annotationErrors({ metadata, spec }: Ingress): FieldError[] {
  const annotation = metadata.annotations?.[INGRESS_CLASS_ANNOTATION];
  const className = spec?.ingressClassName;
  if (annotation === undefined || className === undefined || annotation === className) return [];
  const sentence = "must match `ingressClassName` when both are specified";
  return [invalidValue(["annotations", INGRESS_CLASS_ANNOTATION], annotation, sentence)];
}

function isWildcardHost(host: string): boolean {
  return host.includes("*");
}

function ruleValueErrors({ http }: IngressRule, path: FieldPath, rules: BackendRules): FieldError[] {
  if (http === undefined) return [];
  const { paths = [] } = http as Partial<typeof http>;
  const pathsAt = [...path, "http", "paths"];
  return [
    ...(paths.length === 0 ? [required(pathsAt)] : []),
    ...paths.flatMap((entry, index) => pathErrors(entry ?? {}, [...pathsAt, index], rules)),
  ];
}

/** An empty name counts as absent. */
function secretNameProblems(name: string): string[] {
  return name === "" ? [] : subdomainProblems(name);
}

function emptySpecErrors({ rules, defaultBackend }: IngressSpec): FieldError[] {
  if (defaultBackend !== undefined || (rules ?? []).length > 0) return [];
  return [invalidValue(["spec"], rules, "either `defaultBackend` or `rules` must be specified")];
}

function ruleErrors(rule: IngressRule, path: FieldPath, rules: IngressRules): FieldError[] {
  const { host = "" } = rule;
  const isWildcard = isWildcardHost(host);
  const hostPath = [...path, "host"];
  const isLeftAlone = isWildcard && rules.allowsInvalidWildcardRules;
  return [
    ...(isLenientIP(host) ? [invalidValue(hostPath, host, "must be a DNS name, not an IP address")] : []),
    ...(host === "" ? [] : hostErrors(host, hostPath)),
    ...(isLeftAlone ? [] : ruleValueErrors(rule, path, rules)),
  ];
}

function hostErrors(host: string, path: FieldPath): FieldError[] {
  const problems = isWildcardHost(host) ? wildcardSubdomainProblems(host) : subdomainProblems(host);
  return problems.map((problem) => invalidValue(path, host, problem));
}

function pathErrors(entry: Partial<IngressPath>, at: FieldPath, rules: BackendRules): FieldError[] {
  const { path = "", pathType, backend = {} } = entry;
  if (pathType === undefined) return [required([...at, "pathType"], "pathType must be specified")];
  const pathProblems = PATH_TYPES.includes(pathType) ? problemsOfPath(path, pathType) : [];
  return [
    ...pathProblems.map((problem) => invalidValue([...at, "path"], path, problem)),
    ...(PATH_TYPES.includes(pathType) ? [] : [notSupported([...at, "pathType"], pathType, PATH_TYPES)]),
    ...backendErrors(backend, [...at, "backend"], rules),
  ];
}

function problemsOfPath(path: string, pathType: string): string[] {
  const isFree = pathType === "ImplementationSpecific";
  const notAbsolute = path.startsWith("/") || (isFree && path === "") ? [] : ["must be an absolute path"];
  if (isFree) return notAbsolute;
  return [
    ...notAbsolute,
    ...FORBIDDEN_SEQUENCES.filter((part) => path.includes(part)).map((part) => `must not contain '${part}'`),
    ...FORBIDDEN_ENDINGS.filter((end) => path.endsWith(end)).map((end) => `cannot end with '${end}'`),
  ];
}

function tlsErrors(
  { hosts = [], secretName = "" }: IngressTls,
  at: FieldPath,
  rules: IngressRules,
): FieldError[] {
  const nameProblems = rules.allowsInvalidSecretNames ? [] : secretNameProblems(secretName);
  return [
    ...hosts.flatMap((host, index) => hostErrors(host ?? "", [...at, "hosts", index])),
    ...nameProblems.map((problem) => invalidValue([...at, "secretName"], secretName, problem)),
  ];
}
