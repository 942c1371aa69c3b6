import type { PolicyRule } from "../../../api/rbac-objects.ts";
import type { Attributes } from "../authorizer.ts";

const ALL = "*";

/** Whether a rule allows the request, as in pkg/apis/rbac/v1/evaluation_helpers.go. */
export function ruleAllows(attributes: Attributes, rule: PolicyRule): boolean {
  if (!hasOrAll(rule.verbs, attributes.verb)) return false;
  if (!attributes.isResourceRequest) return urlMatches(rule.nonResourceURLs ?? [], attributes.path);
  const { resourceNames = [] } = rule;
  return (
    hasOrAll(rule.apiGroups ?? [], attributes.apiGroup) &&
    resourceMatches(rule.resources ?? [], attributes) &&
    (resourceNames.length === 0 || resourceNames.includes(attributes.name))
  );
}

function hasOrAll(values: readonly string[], wanted: string): boolean {
  return values.includes(ALL) || values.includes(wanted);
}

/**
 * Matches `pods`, `pods/exec`, `*`, and `*` with `/exec` for any resource's subresource. `pods` does
 * not cover `pods/exec`.
 */
function resourceMatches(resources: readonly string[], { resource, subresource }: Attributes): boolean {
  const wanted = subresource === "" ? resource : `${resource}/${subresource}`;
  if (hasOrAll(resources, wanted)) return true;
  return subresource !== "" && resources.includes(`*/${subresource}`);
}

/** Matches `*`, an exact path, or a prefix before a trailing `*`. */
function urlMatches(urls: readonly string[], path: string): boolean {
  return urls.some(
    (url) =>
      url === ALL || url === path || (url.endsWith("*") && path.startsWith(url.replace(/(?<!\*)\*+$/, ""))),
  );
}
