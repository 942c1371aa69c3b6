import { isDeeperThan, MAX_OBJECT_DEPTH } from "../../api/is-deeper-than.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { AuditPolicyDocument, AuditPolicyRule } from "../../config/audit-policy.ts";
import { quietJson } from "../../observability/mask-controls.ts";
import type { Attributes } from "../authz/authorizer.ts";
import type { AuditEvent } from "./audit-event.ts";
import type { EventQueue } from "./event-queue.ts";

/** The policy if no file is configured: metadata of every request. */
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

const LEFT_OUT = {
  requestObject: "sluice.dev/request-object-left-out",
  responseObject: "sluice.dev/response-object-left-out",
};

/**
 * Formats an event as a JSON line without newline. Omits an object that cannot be written, with an
 * annotation, so that later events are still stored. Never throws.
 */
export function writeEvent(event: AuditEvent): string {
  const shallow = withoutDeepObjects(event);
  try {
    return quietJson(shallow);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return quietJson(withoutObjects(shallow, ["requestObject", "responseObject"], reason));
  }
}

type ObjectMember = keyof typeof LEFT_OUT;

function withoutDeepObjects(event: AuditEvent): AuditEvent {
  const deep = (["requestObject", "responseObject"] as const).filter(
    (member) => event[member] !== undefined && isDeeperThan(event[member], MAX_OBJECT_DEPTH),
  );
  return deep.length === 0
    ? event
    : withoutObjects(event, deep, `nested deeper than ${MAX_OBJECT_DEPTH} levels`);
}

function withoutObjects(event: AuditEvent, members: readonly ObjectMember[], reason: string): AuditEvent {
  const present = members.filter((member) => event[member] !== undefined);
  const left = Object.fromEntries(present.map((member) => [LEFT_OUT[member], reason]));
  const objects = Object.fromEntries(present.map((member) => [member, undefined]));
  return { ...event, ...objects, annotations: { ...event.annotations, ...left } };
}

export interface AuditBackend {
  readonly queue: EventQueue;
  /**
   * True: requests wait until the event is stored. False: the event is stored in the background.
   */
  readonly isBlocking: boolean;
}

interface AuditLogOptions {
  readonly policy: AuditPolicyDocument;
  readonly backends: readonly AuditBackend[];
  /**
   * What happens to a request whose event cannot be stored: `refuse` it with 503, or `continue` and
   * count the loss.
   */
  readonly onFailure: "refuse" | "continue";
}

const AUDIT_REFUSES = "audit events cannot be stored: every request is refused (audit.onFailure)";

/** Sends events to backends, and applies the failure setting. */
export class AuditLog {
  readonly #options: AuditLogOptions;

  constructor(options: AuditLogOptions) {
    this.#options = options;
  }

  decide(attributes: Attributes): AuditDecision {
    return auditDecision(this.#options.policy, attributes);
  }

  /**
   * Stores the event of this stage, if there is one, in every backend before the request continues.
   * Throws StatusError 503 if a backend fails and the configuration says `refuse`.
   */
  async admit(event: AuditEvent | undefined): Promise<void> {
    const line = event && writeEvent(event);
    const admissions = this.#options.backends.map((backend) => this.#admitTo(backend, line));
    const isStored = (await Promise.all(admissions)).every((stored) => stored);
    if (isStored || this.#options.onFailure === "continue") return;
    throw WIRE_ERRORS["audit-unavailable"].streaming();
  }

  /** Why all requests are currently refused; storing is retried until it succeeds. */
  get refusal(): string | undefined {
    const { backends, onFailure } = this.#options;
    const isFailing = backends.some(({ queue }) => queue.failure !== undefined && queue.waiting > 0);
    return onFailure === "refuse" && isFailing ? AUDIT_REFUSES : undefined;
  }

  /** Records later stages: the request has begun and cannot be refused. */
  record(event: AuditEvent): void {
    const line = writeEvent(event);
    for (const { queue } of this.#options.backends) queue.push(line);
  }

  /** Delivers queued events until the first failure, then stops. */
  async stop(): Promise<void> {
    await Promise.all(
      this.#options.backends.map(async ({ queue }) => {
        await queue.flush().catch(() => {});
        queue.stop();
      }),
    );
  }

  async #admitTo({ queue, isBlocking }: AuditBackend, line: string | undefined): Promise<boolean> {
    const hasRoom = line === undefined || queue.push(line);
    if (this.#options.onFailure === "continue" || !hasRoom) return hasRoom;
    if (!isBlocking) return queue.failure === undefined;
    // Tries again for every request, so that the first one after an outage succeeds.
    return queue.flush().then(
      () => true,
      () => false,
    );
  }
}

/** A policy's decision about one request. */
export interface AuditDecision {
  readonly level: AuditEvent["level"];
  readonly omitStages: readonly string[];
}

/**
 * The first matching rule decides; without one nothing is recorded (kube-apiserver's
 * pkg/audit/policy/checker.go).
 */
function auditDecision(policy: AuditPolicyDocument, attributes: Attributes): AuditDecision {
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
  { group, resources, resourceNames }: AuditPolicyRule["resources"][number],
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
