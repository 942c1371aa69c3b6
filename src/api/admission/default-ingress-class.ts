import { forbidden, internalError } from "@sluice/client/internal/api/status";
import {
  DEFAULT_CLASS_ANNOTATION,
  INGRESS_CLASS_ANNOTATION,
  type Ingress,
  type IngressClass,
} from "../networking-objects.ts";

/**
 * How to treat several default classes: API servers since 1.26 take the newest, older ones refuse.
 */
type SeveralDefaults = "newest" | "refused";

/**
 * The admission plugin DefaultIngressClass: gives a new Ingress without a class the default class.
 * Throws a 403 `StatusError` if there are several defaults and the option refuses that.
 */
export function withDefaultIngressClass(
  ingress: Ingress,
  classes: readonly IngressClass[],
  severalDefaults: SeveralDefaults = "newest",
): Ingress {
  const isSet = ingress.spec?.ingressClassName !== undefined;
  const isAnnotated = ingress.metadata.annotations?.[INGRESS_CLASS_ANNOTATION] !== undefined;
  if (isSet || isAnnotated) return ingress;
  const defaults = classes.filter(isDefaultClass).sort(newestFirst);
  const [first] = defaults;
  if (first === undefined) return ingress;
  if (defaults.length > 1 && severalDefaults === "refused") {
    const sentence = `${defaults.length} default IngressClasses were found, only 1 allowed`;
    throw forbidden("ingresses.networking.k8s.io", ingress.metadata.name, internalError(sentence).message);
  }
  return { ...ingress, spec: { ...ingress.spec, ingressClassName: first.metadata.name } };
}

/** Only the exact value `true` counts. */
function isDefaultClass({ metadata }: IngressClass): boolean {
  return metadata.annotations?.[DEFAULT_CLASS_ANNOTATION] === "true";
}

function newestFirst(left: IngressClass, right: IngressClass): number {
  const [a, b] = [left, right].map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? "") || 0);
  if (a !== b) return (b ?? 0) - (a ?? 0);
  return left.metadata.name < right.metadata.name ? -1 : 1;
}
