import type { AuditGroupResources, AuditPolicyDocument, AuditPolicyRule } from "../../config/audit-policy.ts";
import type { Attributes } from "../authz/authorizer.ts";
import type { AuditLevel } from "./audit-event.ts";

/** A policy's decision about one request. */
export interface AuditDecision {
  readonly level: AuditLevel;
  readonly omitStages: readonly string[];
}

/** The policy without a file: metadata of every request. */
export const METADATA_OF_EVERYTHING: AuditPolicyDocument = {
  rules: [
    {
      level: "Metadata",
      users: [],
      userGroups: [],
      verbs: [],
      resources: [],
      namespaces: [],
      nonResourceUrls: [],
      omitStages: [],
    },
  ],
  omitStages: [],
};

/**
 * The first matching rule decides; without one nothing is recorded (kube-apiserver's
 * pkg/audit/policy/checker.go).
 */
export function auditDecision(policy: AuditPolicyDocument, attributes: Attributes): AuditDecision {
  const rule = policy.rules.find((candidate) => isMatch(candidate, attributes));
  if (rule === undefined) return { level: "None", omitStages: policy.omitStages };
  return { level: rule.level, omitStages: [...policy.omitStages, ...rule.omitStages] };
}

function isMatch(rule: AuditPolicyRule, attributes: Attributes): boolean {
  const { user, verb, isResourceRequest, namespace, path } = attributes;
  const isAmong = (wanted: readonly string[], found: string) => wanted.length === 0 || wanted.includes(found);
  if (!isAmong(rule.users, user.name) || !isAmong(rule.verbs, verb)) return false;
  const { userGroups, namespaces, resources, nonResourceUrls } = rule;
  if (userGroups.length > 0 && !userGroups.some((group) => user.groups.includes(group))) return false;
  if (namespaces.length > 0 || resources.length > 0) {
    if (!isResourceRequest || !isAmong(namespaces, namespace)) return false;
    return resources.length === 0 || resources.some((item) => isResourceMatch(item, attributes));
  }
  if (nonResourceUrls.length === 0) return true;
  return !isResourceRequest && nonResourceUrls.some((wanted) => isPathMatch(wanted, path));
}

function isResourceMatch(
  { group, resources, resourceNames }: AuditGroupResources,
  attributes: Attributes,
): boolean {
  const { apiGroup, resource, subresource, name } = attributes;
  if (group !== apiGroup) return false;
  if (resources.length === 0) return true;
  if (resourceNames.length > 0 && !resourceNames.includes(name)) return false;
  const combined = subresource === "" ? resource : `${resource}/${subresource}`;
  return resources.some(
    (wanted) =>
      wanted === "*" ||
      wanted === combined ||
      (subresource !== "" && wanted === `*/${subresource}`) ||
      wanted === `${resource}/*`,
  );
}

function isPathMatch(wanted: string, path: string): boolean {
  return wanted === path || (wanted.endsWith("*") && path.startsWith(wanted.slice(0, -1)));
}
