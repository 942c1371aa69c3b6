import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import { type FieldError, invalidValue, required } from "../field-errors.ts";
import type { IngressBackend } from "../networking-objects.ts";
import {
  labelProblems,
  pathSegmentProblems,
  portNameProblems,
  portNumberProblems,
  serviceNameProblems,
  subdomainProblems,
} from "./name-rules.ts";

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
export function resourceReferenceErrors(
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
