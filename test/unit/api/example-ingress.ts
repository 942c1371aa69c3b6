import { fieldErrorText } from "../../../src/api/field-errors.ts";
import type { Ingress, IngressClass, IngressPath, IngressSpec } from "../../../src/api/networking-objects.ts";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import type { Strategy } from "../../../src/api/strategy/strategy.ts";
import { FeatureGates } from "../../../src/config/feature-gates.ts";

export const ingressStrategy = strategyOf("Ingress") as Strategy<Ingress>;
export const classStrategy = strategyOf("IngressClass") as Strategy<IngressClass>;

/** Names of Services by the older, stricter rule. */
export const strictNames = FeatureGates.parse("RelaxedServiceNameValidation=false");

export const backend = { service: { name: "web", port: { number: 80 } } };

/** Decoded objects may lack anything, which the types of good ones do not say. */
export function ingressOf(spec: object, metadata: object = {}): Ingress {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name: "a", namespace: "default", ...metadata },
    spec: spec as IngressSpec,
  };
}

/** One rule with one path, good but for these fields. */
export function ingressWithPath(path: object, host?: string): Ingress {
  const entry = { path: "/", pathType: "Prefix", backend, ...path } as IngressPath;
  return ingressOf({ rules: [{ ...(host !== undefined && { host }), http: { paths: [entry] } }] });
}

export function classOf(spec: object, metadata: object = {}): IngressClass {
  return classStrategy.withDefaults({
    apiVersion: "networking.k8s.io/v1",
    kind: "IngressClass",
    metadata: { name: "a", ...metadata },
    spec,
  } as IngressClass);
}

export function createErrors(ingress: Ingress, gates: FeatureGates = FeatureGates.defaults): string[] {
  return ingressStrategy.validateCreate(ingress, gates).map(fieldErrorText);
}

export function updateErrors(
  next: Ingress,
  old: Ingress,
  gates: FeatureGates = FeatureGates.defaults,
): string[] {
  return ingressStrategy.validateUpdate(next, old, gates).map(fieldErrorText);
}

export const texts = {
  subdomain:
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  wildcard:
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  label:
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
  dns1035:
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
  port: "must be between 1 and 65535, inclusive",
} as const;
