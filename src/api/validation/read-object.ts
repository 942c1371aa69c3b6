import { formatPath } from "../../config/configuration-error.ts";
import { FeatureGates } from "../../config/feature-gates.ts";
import type { ApiObject } from "../api-object.ts";
import { fieldErrorText } from "../field-errors.ts";
import { goQuote } from "../go-json.ts";
import { groupOf, type Strategy } from "../strategy/strategy.ts";
import { decodeObject, type ObjectProblem } from "./decode-object.ts";
import { lostFields } from "./lost-fields.ts";

export type { ObjectProblem } from "./decode-object.ts";

export const DEFAULT_NAMESPACE = "default";

export type ObjectReading =
  | { readonly isValid: true; readonly object: ApiObject; readonly warnings: readonly string[] }
  | { readonly isValid: false; readonly problems: readonly ObjectProblem[] };

/**
 * Reads one object from untrusted data as a create does: kind, types, conversion, defaults (the namespace too), fields whose gate is
 * off cleared, then every rule. The result needs no further checks.
 */
export function readObject(value: unknown, gates: FeatureGates = FeatureGates.defaults): ObjectReading {
  const decoding = decodeObject(value);
  if (!decoding.isDecoded) return { isValid: false, problems: [decoding.problem] };
  const { strategy } = decoding;
  const { status } = decoding.object;
  const prepared = strategy.prepareForCreate(placed(decoding.object, strategy), gates);
  // A create would begin with an empty status; a file says how things are.
  const { status: _, ...rest } = prepared;
  const object: ApiObject = status === undefined ? rest : { ...rest, status };
  const errors = strategy.validateCreate(object, gates);
  if (errors.length === 0) {
    const lost = lostFields(decoding.object, object).map(
      (path) => `${formatPath(path)} is dropped: its feature gate is off`,
    );
    return { isValid: true, object, warnings: [...strategy.warnings(object), ...lost] };
  }
  const subject = `${kindName(strategy)} ${goQuote(object.metadata.name ?? "")} is invalid`;
  const problems = errors.map((error) => ({
    path: error.path,
    message: `${subject}: ${fieldErrorText(error)}`,
  }));
  return { isValid: false, problems };
}

function placed(object: ApiObject, { isNamespaced }: Strategy): ApiObject {
  if (!isNamespaced || object.metadata.namespace) return object;
  return { ...object, metadata: { ...object.metadata, namespace: DEFAULT_NAMESPACE } };
}

/** `Pod`, `Ingress.networking.k8s.io`. */
function kindName(strategy: Strategy): string {
  const group = groupOf(strategy);
  return group === "" ? strategy.kind : `${strategy.kind}.${group}`;
}
