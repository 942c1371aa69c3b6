import type { ApiObject } from "../../../src/api/api-object.ts";
import { strategyOf } from "../../../src/api/strategy/strategies.ts";
import { groupVersionOf, type Resource } from "./resources.ts";

/** Objects are stored in one version and seen in the one that a client asks for. */
export function inVersionOf(resource: Resource, object: ApiObject): ApiObject {
  const groupVersion = groupVersionOf(resource);
  if (object.apiVersion === groupVersion) return object;
  return strategyOf(resource.kind)?.otherVersions[groupVersion]?.fromHeld(object) ?? object;
}
