import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import {
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from "../field-errors.ts";
import type { IngressBackend, IngressClass, IngressClassSpec } from "../networking-objects.ts";
import {
  labelProblems,
  pathSegmentProblems,
  portNameProblems,
  portNumberProblems,
  serviceNameProblems,
  subdomainProblems,
} from "./name-rules.ts";
import { validateMetadata } from "./validate-metadata.ts";

export interface BackendRules {
  /** Service names may begin with a digit (gate RelaxedServiceNameValidation). */
  readonly allowsRelaxedServiceNames: boolean;
}

type ServiceBackend = NonNullable<IngressBackend["service"]>;
type ResourceReference = NonNullable<IngressBackend["resource"]>;

export function backendErrors(
  backend: Partial<IngressBackend>,
  path: FieldPath,
  rules: BackendRules,
): FieldError[] {
  const { service, resource } = backend;
  if (service !== undefined && resource !== undefined) {
    return [invalidValue(path, "", "cannot set both resource and service backends")];
  }
  if (resource !== undefined) return resourceReferenceErrors(resource, [...path, "resource"]);
  if (service !== undefined) return serviceErrors(service, path, rules);
  return [invalidValue(path, "", "resource or service backend is required")];
}

/** A reference by group, kind and name, from a backend or a class's parameters. */
function resourceReferenceErrors(
  { apiGroup, kind = "", name = "" }: Partial<ResourceReference>,
  path: FieldPath,
): FieldError[] {
  const segmentErrors = (field: string, value: string): FieldError[] =>
    value === ""
      ? [required([...path, field])]
      : pathSegmentProblems(value).map((problem) => invalidValue([...path, field], value, problem));
  const groupProblems = apiGroup === undefined ? [] : subdomainProblems(apiGroup);
  return [
    ...groupProblems.map((problem) => invalidValue([...path, "apiGroup"], apiGroup, problem)),
    ...segmentErrors("kind", kind),
    ...segmentErrors("name", name),
  ];
}

function serviceErrors(service: ServiceBackend, path: FieldPath, rules: BackendRules): FieldError[] {
  const { name = "", port = {} } = service as Partial<ServiceBackend>;
  const namePath = [...path, "service", "name"];
  const nameProblems = rules.allowsRelaxedServiceNames ? labelProblems : serviceNameProblems;
  return [
    ...(name === ""
      ? [required(namePath)]
      : nameProblems(name).map((problem) => invalidValue(namePath, name, problem))),
    ...servicePortErrors(port, path),
  ];
}

function servicePortErrors(
  { name = "", number = 0 }: NonNullable<ServiceBackend["port"]>,
  path: FieldPath,
): FieldError[] {
  const at = (field: string): FieldPath => [...path, "service", "port", field];
  if (name !== "" && number !== 0) {
    return [invalidValue(path, "", "cannot set both port name & port number")];
  }
  if (name !== "") return portNameProblems(name).map((problem) => invalidValue(at("name"), name, problem));
  if (number !== 0) {
    return portNumberProblems(number).map((problem) => invalidValue(at("number"), number, problem));
  }
  return [required(path, "port name or number is required")];
}

/** Kubernetes' limit for spec.controller. */
const MAX_CONTROLLER_BYTES = 250;

const PATH_PATTERN = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+";

type Parameters = NonNullable<IngressClassSpec["parameters"]>;

export function validateIngressClass({ metadata, spec = {} }: IngressClass): FieldError[] {
  const { controller = "", parameters } = spec;
  const path = ["spec", "controller"];
  const bytes = new TextEncoder().encode(controller).byteLength;
  return [
    ...validateMetadata(metadata, { isNamespaced: false, nameProblems: subdomainProblems }),
    ...(bytes > MAX_CONTROLLER_BYTES ? [tooLong(path, MAX_CONTROLLER_BYTES)] : []),
    ...domainPrefixedPathErrors(controller, path),
    ...(parameters ? parametersErrors(parameters, ["spec", "parameters"]) : []),
  ];
}

/** `example.com/name`. */
function domainPrefixedPathErrors(value: string, path: FieldPath): FieldError[] {
  if (value === "") return [required(path)];
  const slash = value.indexOf("/");
  const [domain, rest] = slash === -1 ? ["", ""] : [value.slice(0, slash), value.slice(slash + 1)];
  if (domain === "" || rest === "") {
    return [invalidValue(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')];
  }
  const isPath = new RegExp(`^${PATH_PATTERN}$`).test(rest);
  const sentence = `Invalid path (regex used for validation is '${PATH_PATTERN}')`;
  return [
    ...subdomainProblems(domain).map((problem) => invalidValue(path, domain, problem)),
    ...(isPath ? [] : [invalidValue(path, rest, sentence)]),
  ];
}

function parametersErrors(parameters: Parameters, path: FieldPath): FieldError[] {
  return [...resourceReferenceErrors(parameters, path), ...scopeErrors(parameters, path)];
}

function scopeErrors({ scope, namespace }: Parameters, path: FieldPath): FieldError[] {
  const namespacePath = [...path, "namespace"];
  switch (scope) {
    case undefined:
      return [required([...path, "scope"])];
    case "Cluster": {
      const sentence = "`parameters.scope` is set to 'Cluster'";
      return namespace === undefined ? [] : [forbiddenField(namespacePath, sentence)];
    }
    case "Namespace":
      if (namespace === undefined)
        return [required(namespacePath, "`parameters.scope` is set to 'Namespace'")];
      return labelProblems(namespace).map((problem) => invalidValue(namespacePath, namespace, problem));
    default:
      return [notSupported([...path, "scope"], scope, ["Cluster", "Namespace"])];
  }
}
