import type { Status } from "@sluice/client/internal/api/status";
import type { Impersonated } from "../authn/impersonation.ts";
import type { Attributes } from "../authz/authorizer.ts";
import type { UserInfo } from "../user-info.ts";

/**
 * How much of a request is recorded. `Request` adds the requested object, `RequestResponse` also
 * the answer.
 */
const AUDIT_LEVELS = ["None", "Metadata", "Request", "RequestResponse"] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];

/**
 * Bytes of an answer in an audit event; events wait in memory. Past it the answer is left out, and
 * an annotation says so.
 */
export const MAX_RESPONSE_OBJECT_BYTES: number = 64 * 1024;

const AUDIT_STAGES = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"] as const;
export type AuditStage = (typeof AUDIT_STAGES)[number];

/** An audit.k8s.io/v1 Event, with members in the order of Kubernetes' struct. */
export interface AuditEvent {
  readonly kind: "Event";
  readonly apiVersion: "audit.k8s.io/v1";
  readonly level: AuditLevel;
  readonly auditID: string;
  readonly stage: AuditStage;
  readonly requestURI: string;
  readonly verb: string;
  readonly user: object;
  readonly impersonatedUser?: object;
  readonly authenticationMetadata?: object;
  readonly sourceIPs?: readonly string[];
  readonly userAgent?: string;
  readonly objectRef?: object;
  readonly responseStatus?: object;
  readonly requestObject?: object;
  readonly responseObject?: object;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A request's fields before authentication. */
export interface AuditedRequest {
  /** Path and query as received. */
  readonly requestUri: string;
  readonly sourceAddresses: readonly string[];
  readonly userAgent: string;
  /** A streaming session or a watch; its start is recorded, too. */
  readonly isLongRunning: boolean;
}

export function userRecord({ name, uid, groups, extra }: UserInfo): object {
  return {
    ...(name !== "" && { username: name }),
    ...(uid !== "" && { uid }),
    ...(groups.length > 0 && { groups }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}

/** The impersonated user, and the constrained impersonation verb that allowed it. */
export function impersonationRecord({ user, constraint }: Impersonated): object {
  return {
    impersonatedUser: userRecord(user),
    ...(constraint !== undefined && { authenticationMetadata: { impersonationConstraint: constraint } }),
  };
}

/**
 * Characters of a URI in an audit event; level Request records a longer command line among the
 * options. Past it the URI is cut, with `...TRUNCATED`.
 */
const MAX_AUDITED_URI_CHARACTERS = 8 * 1024;
/**
 * A User-Agent (as in kube-apiserver), name, message or annotation in an audit event. Past it the
 * text is cut, with `...TRUNCATED`.
 */
const MAX_AUDITED_TEXT_CHARACTERS = 1024;
/** kube-apiserver's mark for a cut text. */
const TRUNCATED = "...TRUNCATED";

export function cutText(text: string, maxCharacters: number = MAX_AUDITED_TEXT_CHARACTERS): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)}${TRUNCATED}`;
}

export function objectReference(attributes: Attributes): object | undefined {
  if (!attributes.isResourceRequest) return undefined;
  const { resource, namespace, name, apiGroup, apiVersion, subresource } = attributes;
  const members = { resource, namespace, name, apiGroup, apiVersion, subresource };
  const named = Object.entries(members).filter(([, value]) => value !== "");
  return Object.fromEntries(named.map(([member, value]) => [member, cutText(value)]));
}

/** Keeps only a Status's outcome; just `code` if there was no Status. */
export function responseRecord({ status, message, reason, details, code }: Partial<Status>): object {
  return {
    metadata: {},
    ...(status !== undefined && { status }),
    ...(message && { message: cutText(message) }),
    ...(reason && { reason }),
    ...(details !== undefined && { details }),
    code,
  };
}

const SECRET_PARAMETERS = /([?&](?:access_token|id_token|token|password|authorization)=)[^&#]*/gi;

/**
 * Cuts the URI, and redacts secrets that clients other than Kubernetes' put into URLs. Keeps the
 * command line, because audit needs it.
 */
export function auditedUri(uri: string): string {
  return cutText(uri.replace(SECRET_PARAMETERS, "$1[redacted]"), MAX_AUDITED_URI_CHARACTERS);
}

/** Kubernetes' MicroTime: six digits after the point. */
export function microTime(date: Date): string {
  return date.toISOString().replace("Z", "000Z");
}
