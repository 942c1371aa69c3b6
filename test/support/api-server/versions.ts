import type { ApiObject } from "../../../src/api/api-object.ts";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import { asV1beta1 } from "./ingress-v1beta1.ts";
import { groupVersionOf, type Resource } from "./resources.ts";

/** Objects are stored in one version, and shown in the version that a client asks for. */
export function inVersionOf(resource: Resource, object: ApiObject): ApiObject {
  const groupVersion = groupVersionOf(resource);
  if (object.apiVersion === groupVersion) return object;
  const isOther = strategyOf(resource.kind)?.otherVersions[groupVersion] !== undefined;
  return isOther ? asV1beta1(object) : object;
}
