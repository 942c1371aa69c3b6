import type { ApiObject } from "../../../src/api/api-object.ts";
import type { Ingress, IngressBackend, IngressRule } from "../../../src/api/networking-objects.ts";
import { NETWORKING_V1BETA1 } from "../../../src/api/strategy/ingress-v1beta1.ts";

/** An Ingress or IngressClass as clients of networking.k8s.io/v1beta1 see it. */
export function asV1beta1(object: ApiObject): ApiObject {
  const apiVersion = NETWORKING_V1BETA1;
  const { spec } = object as Partial<Ingress>;
  if (object.kind !== "Ingress" || spec === undefined) return { ...object, apiVersion };
  const { defaultBackend, rules, ...kept } = spec;
  return {
    ...object,
    apiVersion,
    spec: {
      ...kept,
      ...(rules && { rules: rules.map((rule) => ruleOf(rule ?? {})) }),
      ...(defaultBackend && { backend: backendOf(defaultBackend) }),
    },
  };
}

function ruleOf(rule: IngressRule) {
  const { http } = rule;
  if (http?.paths === undefined) return rule;
  const paths = http.paths.map((path) => ({ ...path, backend: backendOf(path?.backend ?? {}) }));
  return { ...rule, http: { ...http, paths } };
}

function backendOf({ service, ...rest }: IngressBackend) {
  if (service === undefined) return rest;
  const { name, port } = service;
  return { ...rest, serviceName: name, servicePort: port?.name || (port?.number ?? 0) };
}
