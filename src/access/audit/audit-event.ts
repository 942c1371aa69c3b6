import type { UserInfo } from "../user-info.ts";

/**
 * How much of a request is recorded. `Request` adds the requested object, `RequestResponse` also
 * the answer.
 */
const AUDIT_LEVELS = ["None", "Metadata", "Request", "RequestResponse"] as const;
export type AuditLevel = (typeof AUDIT_LEVELS)[number];

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

export function userRecord({ name, uid, groups, extra }: UserInfo): object {
  return {
    ...(name !== "" && { username: name }),
    ...(uid !== "" && { uid }),
    ...(groups.length > 0 && { groups }),
    ...(Object.keys(extra).length > 0 && { extra }),
  };
}
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
