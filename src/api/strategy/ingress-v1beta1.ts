import type { ApiObject, Extensible } from "../api-object.ts";
import {
  type Ingress,
  type IngressBackend,
  type IngressRule,
  NETWORKING_API_VERSION,
} from "../networking-objects.ts";
import { ingressV1beta1Shape } from "../validation/networking-shapes.ts";
import type { VersionConversion } from "./strategy.ts";

export const NETWORKING_V1BETA1 = "networking.k8s.io/v1beta1";

/** networking.k8s.io/v1beta1 has other names for backend fields, and a default for pathType. */
export const ingressV1beta1: VersionConversion = {
  shape: ingressV1beta1Shape,
  toHeld: (object) => toHeldIngress(object as unknown as Ingress),
};

interface V1beta1Backend extends Extensible {
  readonly serviceName?: string;
  readonly servicePort?: number | string;
  readonly resource?: IngressBackend["resource"];
}

type Fields = Extensible & Record<string, unknown>;

function toHeldIngress(ingress: Ingress): ApiObject {
  const apiVersion = NETWORKING_API_VERSION;
  const { spec } = ingress;
  if (spec === undefined) return { ...ingress, apiVersion };
  const { rules } = spec;
  const mapped = rules && { rules: rules.map((rule) => toHeldRule(rule ?? {})) };
  return { ...ingress, apiVersion, spec: toHeldSpec({ ...spec, ...mapped }) };
}

function toHeldRule(rule: IngressRule): Fields {
  const { http } = rule;
  if (http?.paths === undefined) return rule;
  return { ...rule, http: { ...http, paths: http.paths.map((path) => toHeldPath(path ?? {})) } };
}

function toHeldSpec({ backend, ...spec }: Fields): Fields {
  return backend === undefined ? spec : { ...spec, defaultBackend: toHeldBackend(backend as V1beta1Backend) };
}

function toHeldPath({ backend, pathType, ...path }: Fields): Fields {
  return {
    ...path,
    pathType: pathType ?? "ImplementationSpecific",
    backend: toHeldBackend((backend ?? {}) as V1beta1Backend),
  };
}

/** Keeps a pure resource backend: adds a service only if a service field is set. */
function toHeldBackend({ serviceName, servicePort, ...rest }: V1beta1Backend): Fields {
  const isGiven = Boolean(serviceName) || typeof servicePort === "string" || Boolean(servicePort);
  if (!isGiven) return rest;
  return { ...rest, service: { name: serviceName ?? "", port: toHeldPort(servicePort) } };
}

function toHeldPort(port: number | string | undefined): Fields {
  if (typeof port === "string") return port === "" ? {} : { name: port };
  return port ? { number: port } : {};
}
