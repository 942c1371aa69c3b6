import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, invalidValue, notSupported, required } from "../field-errors.ts";
import {
  INGRESS_CLASS_ANNOTATION,
  type Ingress,
  type IngressPath,
  type IngressRule,
  type IngressSpec,
  type IngressTls,
} from "../networking-objects.ts";
import { isLenientIP, subdomainProblems, wildcardSubdomainProblems } from "./name-rules.ts";
import { type BackendRules, backendErrors } from "./validate-ingress-backend.ts";
import { validateMetadata } from "./validate-metadata.ts";

const PATH_TYPES = ["Exact", "ImplementationSpecific", "Prefix"];
/** With each of these the matched path and the backend's could differ. */
const FORBIDDEN_SEQUENCES = ["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_ENDINGS = ["/..", "/."];

/** Values that a stored object may keep although they are invalid today. */
export interface IngressRules extends BackendRules {
  readonly allowsInvalidSecretNames: boolean;
  readonly allowsInvalidWildcardRules: boolean;
}

/** The API server's checks for create and update (pkg/apis/networking/validation). */
export function validateIngress({ metadata, spec = {} }: Ingress, rules: IngressRules): FieldError[] {
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
export function annotationErrors({ metadata, spec }: Ingress): FieldError[] {
  const annotation = metadata.annotations?.[INGRESS_CLASS_ANNOTATION];
  const className = spec?.ingressClassName;
  if (annotation === undefined || className === undefined || annotation === className) return [];
  const sentence = "must match `ingressClassName` when both are specified";
  return [invalidValue(["annotations", INGRESS_CLASS_ANNOTATION], annotation, sentence)];
}

export function isWildcardHost(host: string): boolean {
  return host.includes("*");
}

export function ruleValueErrors({ http }: IngressRule, path: FieldPath, rules: BackendRules): FieldError[] {
  if (http === undefined) return [];
  const { paths = [] } = http as Partial<typeof http>;
  const pathsAt = [...path, "http", "paths"];
  return [
    ...(paths.length === 0 ? [required(pathsAt)] : []),
    ...paths.flatMap((entry, index) => pathErrors(entry ?? {}, [...pathsAt, index], rules)),
  ];
}

/** An empty name counts as absent. */
export function secretNameProblems(name: string): string[] {
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
