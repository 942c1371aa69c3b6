import { ingressClassV1beta1, NETWORKING_V1BETA1 } from "../conversion/ingress-v1beta1.ts";
import { invalidValue } from "../field-errors.ts";
import { type IngressClass, NETWORKING_API_VERSION } from "../networking-objects.ts";
import { ingressClassShape } from "../validation/networking-shapes.ts";
import { validateIngressClass } from "../validation/validate-ingress-class.ts";
import { FIELD_IS_IMMUTABLE, validateMetadataUpdate } from "../validation/validate-metadata-update.ts";
import { withFirstGeneration, withNextGeneration } from "./generation.ts";
import { plainStrategy } from "./plain-strategy.ts";

export const ingressClassStrategy = plainStrategy<IngressClass>({
  kind: "IngressClass",
  apiVersion: NETWORKING_API_VERSION,
  resource: "ingressclasses",
  isNamespaced: false,
  shape: ingressClassShape,
  otherVersions: { [NETWORKING_V1BETA1]: ingressClassV1beta1 },
  validate: validateIngressClass,
  withDefaults: (ingressClass) => {
    const { spec } = ingressClass;
    if (spec?.parameters === undefined || spec.parameters.scope !== undefined) return ingressClass;
    return { ...ingressClass, spec: { ...spec, parameters: { ...spec.parameters, scope: "Cluster" } } };
  },
  prepareForCreate: withFirstGeneration,
  prepareForUpdate: withNextGeneration,
  validateUpdate: (next, old) => {
    const controller = next.spec?.controller ?? "";
    const isChanged = controller !== (old.spec?.controller ?? "");
    return [
      ...validateMetadataUpdate(next.metadata, old.metadata),
      ...(isChanged ? [invalidValue(["spec", "controller"], controller, FIELD_IS_IMMUTABLE)] : []),
      ...validateIngressClass(next),
    ];
  },
});
