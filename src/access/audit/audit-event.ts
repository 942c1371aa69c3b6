/**
 * How much of a request is recorded. `Request` adds the requested object, `RequestResponse` also
 * the answer.
 */
const AUDIT_LEVELS = ["None", "Metadata", "Request", "RequestResponse"] as const;
type AuditLevel = (typeof AUDIT_LEVELS)[number];

const AUDIT_STAGES = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"] as const;
type AuditStage = (typeof AUDIT_STAGES)[number];

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
