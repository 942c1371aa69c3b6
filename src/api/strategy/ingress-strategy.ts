import type { FieldPath } from "@sluice/client/internal/config/yaml-field-places";
import type { FeatureGates } from "../../config/feature-gates.ts";
import { type FieldError, invalidValue } from "../field-errors.ts";
import {
  INGRESS_CLASS_ANNOTATION,
  type Ingress,
  type IngressAddress,
  NETWORKING_API_VERSION,
} from "../networking-objects.ts";
import {
  isLenientIP,
  labelProblems,
  NOT_AN_IP,
  serviceNameProblems,
  subdomainProblems,
} from "../validation/name-rules.ts";
import { ingressShape } from "../validation/networking-shapes.ts";
import {
  annotationErrors,
  type IngressRules,
  isWildcardHost,
  ruleValueErrors,
  secretNameProblems,
  validateIngress,
} from "../validation/validate-ingress.ts";
import { validateMetadataUpdate } from "../validation/validate-metadata.ts";
import { ingressV1beta1, NETWORKING_V1BETA1 } from "./ingress-v1beta1.ts";
import { keepingStatus, type Strategy, withFirstGeneration, withNextGeneration } from "./strategy.ts";

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
