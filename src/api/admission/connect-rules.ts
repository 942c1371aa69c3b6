import { matchesSelector } from "../label-match.ts";
import type { LabelSelector } from "../rbac-objects.ts";

/** The kinds that configure admission, by resource. */
export const ADMISSION_RESOURCES = {
  validatingwebhookconfigurations: "ValidatingWebhookConfiguration",
  mutatingwebhookconfigurations: "MutatingWebhookConfiguration",
  validatingadmissionpolicies: "ValidatingAdmissionPolicy",
  validatingadmissionpolicybindings: "ValidatingAdmissionPolicyBinding",
  mutatingadmissionpolicies: "MutatingAdmissionPolicy",
  mutatingadmissionpolicybindings: "MutatingAdmissionPolicyBinding",
} as const;

export type AdmissionResource = keyof typeof ADMISSION_RESOURCES;

/**
 * Each kind's objects by name, as an API server wrote them; absent for kinds that are not served.
 */
export type AdmissionObjects = Readonly<Partial<Record<AdmissionResource, ReadonlyMap<string, unknown>>>>;

/** An exec, attach or port-forward as admission sees it: CONNECT on `pods/SUBRESOURCE`. */
export interface ConnectRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly subresource: string;
  /** Undefined for an unknown namespace, which every selector may match. */
  readonly namespaceLabels: Readonly<Record<string, string>> | undefined;
}

/** A webhook, or a policy with one of its bindings. */
export interface ConnectRule {
  /** `ValidatingAdmissionPolicy "no-exec"` */
  readonly source: string;
  /**
   * Whether the API server may call it. CEL expressions (match conditions, validations, parameters)
   * are not evaluated, and count as a match.
   */
  matches(request: ConnectRequest): boolean;
}

/**
 * The rules that may judge a CONNECT on a pod, in the API server's order: mutating before
 * validating. Pure.
 */
export function connectRulesOf(objects: AdmissionObjects): ConnectRule[] {
  return [
    ...policyRules("mutatingadmissionpolicies", "mutatingadmissionpolicybindings", objects),
    ...webhookRules("mutatingwebhookconfigurations", objects),
    ...policyRules("validatingadmissionpolicies", "validatingadmissionpolicybindings", objects),
    ...webhookRules("validatingwebhookconfigurations", objects),
  ].filter(({ constraints }) => constraints.every(mayMatchConnect));
}

/** metav1's MatchResources; a webhook has the same fields itself. */
interface MatchResources {
  readonly namespaceSelector?: LabelSelector | null;
  readonly objectSelector?: LabelSelector | null;
  readonly resourceRules?: readonly ResourceRule[] | null;
  readonly excludeResourceRules?: readonly ResourceRule[] | null;
}

interface ResourceRule {
  readonly operations?: readonly string[] | null;
  readonly apiGroups?: readonly string[] | null;
  readonly apiVersions?: readonly string[] | null;
  readonly resources?: readonly string[] | null;
  readonly resourceNames?: readonly string[] | null;
  readonly scope?: string | null;
}

interface CompiledRule extends ConnectRule {
  /** All must match. */
  readonly constraints: readonly MatchResources[];
}

function compiled(source: string, constraints: readonly MatchResources[]): CompiledRule {
  return {
    source,
    constraints,
    matches: (request) => constraints.every((constraint) => matchesConstraint(constraint, request)),
  };
}

function webhookRules(resource: AdmissionResource, objects: AdmissionObjects): CompiledRule[] {
  return Array.from(objects[resource] ?? [], ([name, object]) => {
    const { webhooks } = fieldsOf(object) as { webhooks?: readonly unknown[] | null };
    return (webhooks ?? []).flatMap((webhook) => {
      const { name: webhookName, rules, ...selectors } = fieldsOf(webhook);
      // Without rules a webhook matches nothing, a policy everything.
      if (!Array.isArray(rules) || rules.length === 0) return [];
      const source = `${ADMISSION_RESOURCES[resource]} ${JSON.stringify(name)}, webhook ${JSON.stringify(webhookName)}`;
      return [compiled(source, [{ ...selectors, resourceRules: rules }])];
    });
  }).flat();
}

/** A policy without a binding has no effect; a binding narrows its policy. */
function policyRules(
  policies: AdmissionResource,
  bindings: AdmissionResource,
  objects: AdmissionObjects,
): CompiledRule[] {
  return Array.from(objects[bindings] ?? [], ([, binding]) => {
    const { policyName, matchResources } = specOf(binding);
    const policy = objects[policies]?.get(String(policyName));
    if (policy === undefined) return [];
    const source = `${ADMISSION_RESOURCES[policies]} ${JSON.stringify(policyName)}`;
    return [compiled(source, [fieldsOf(specOf(policy).matchConstraints), fieldsOf(matchResources)])];
  }).flat();
}

/**
 * Skips rules that match none of our requests: most clusters have many webhooks, but none for
 * CONNECT.
 */
function mayMatchConnect({ objectSelector, resourceRules }: MatchResources): boolean {
  if (!isEmpty(objectSelector)) return false;
  const rules = resourceRules ?? [];
  return rules.length === 0 || rules.some((rule) => STREAMS.some((stream) => matchesRule(rule, stream)));
}

const STREAMS = ["exec", "attach", "portforward"].map((subresource) => ({ subresource, pod: undefined }));

/**
 * Follows the API server's matcher. A CONNECT's object has no labels, so only an empty
 * objectSelector matches it.
 */
function matchesConstraint(
  { namespaceSelector, objectSelector, resourceRules, excludeResourceRules }: MatchResources,
  request: ConnectRequest,
): boolean {
  const { namespaceLabels } = request;
  if (!isEmpty(objectSelector)) return false;
  const isOtherNamespace =
    !isEmpty(namespaceSelector) &&
    namespaceLabels !== undefined &&
    !matchesSelector(withoutNulls(namespaceSelector), namespaceLabels);
  if (isOtherNamespace) return false;
  if ((excludeResourceRules ?? []).some((rule) => matchesRule(rule, request))) return false;
  const rules = resourceRules ?? [];
  return rules.length === 0 || rules.some((rule) => matchesRule(rule, request));
}

/** A bare `*` matches every resource, but no subresource. Without a pod, any name matches. */
function matchesRule(
  rule: ResourceRule,
  { pod, subresource }: { readonly pod: string | undefined; readonly subresource: string },
): boolean {
  const names = rule.resourceNames ?? [];
  return (
    has(rule.operations, "CONNECT") &&
    has(rule.apiGroups, "") &&
    has(rule.apiVersions, "v1") &&
    (rule.scope ?? "*") !== "Cluster" &&
    (rule.resources ?? []).some((resource) => {
      const [name, sub] = resource.split("/", 2);
      return (name === "*" || name === "pods") && (sub === "*" || sub === subresource);
    }) &&
    (names.length === 0 || pod === undefined || names.includes(pod))
  );
}

function has(values: readonly string[] | null | undefined, wanted: string): boolean {
  return (values ?? []).some((value) => value === "*" || value === wanted);
}

function isEmpty(selector: LabelSelector | null | undefined): boolean {
  const { matchLabels, matchExpressions } = selector ?? {};
  return Object.keys(matchLabels ?? {}).length === 0 && (matchExpressions ?? []).length === 0;
}

function withoutNulls(selector: LabelSelector | null | undefined): LabelSelector {
  const { matchLabels, matchExpressions } = selector ?? {};
  return { matchLabels: matchLabels ?? {}, matchExpressions: matchExpressions ?? [] };
}

function specOf(object: unknown): Readonly<Record<string, unknown>> {
  return fieldsOf(fieldsOf(object).spec);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
