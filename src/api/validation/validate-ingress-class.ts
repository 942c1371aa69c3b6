import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import {
  type FieldError,
  forbiddenField,
  invalidValue,
  notSupported,
  required,
  tooLong,
} from "../field-errors.ts";
import type { IngressClass, IngressClassSpec } from "../networking-objects.ts";
import { labelProblems, subdomainProblems } from "./name-rules.ts";
import { resourceReferenceErrors } from "./validate-ingress-backend.ts";
import { validateMetadata } from "./validate-metadata.ts";

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
