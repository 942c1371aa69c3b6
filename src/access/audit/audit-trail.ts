import { randomUUID } from "node:crypto";
import type { Status } from "@sluice/client/internal/api/status-body";
import type { Impersonated } from "../authn/impersonation.ts";
import type { Attributes, Authorizer } from "../authz/authorizer.ts";
import type { UserInfo } from "../user-info.ts";
import type { AuditEvent } from "./audit-event.ts";
import type { AuditDecision, AuditLog } from "./audit-log.ts";

/** A request's fields before authentication. */
interface AuditedRequest {
  /** Path and query as received. */
  readonly requestUri: string;
  readonly sourceAddresses: readonly string[];
  readonly userAgent: string;
  /** A streaming session or a watch; its start is recorded, too. */
  readonly isLongRunning: boolean;
}

/**
 * Bytes of an answer in an audit event; events wait in memory. Past it the answer is left out, and
 * an annotation says so.
 */
const MAX_RESPONSE_OBJECT_BYTES: number = 64 * 1024;

/** nginx's status for a client that left before its answer. */
export const CLIENT_LEFT = { status: "Failure", message: "the client left", code: 499 } as const;

const NOBODY: UserInfo = { name: "", uid: "", groups: [], extra: {} };
const DECISION = "authorization.k8s.io/decision";
const REASON = "authorization.k8s.io/reason";
const RESPONSE_LEFT_OUT = "sluice.dev/response-object-left-out";

/**
 * Records one request's events from its arrival to its end. Never receives payload, nor any header
 * except User-Agent.
 */
export class AuditTrail {
  readonly #log: AuditLog;
  readonly #request: AuditedRequest;
  readonly #attributesOf: (user: UserInfo) => Attributes;
  readonly #auditId = randomUUID();
  readonly #receivedAt = new Date();
  readonly #annotations: Record<string, string> = {};
  #attributes: Attributes | undefined;
  #decision: AuditDecision | undefined;
  #impersonated: Impersonated | undefined;
  #requestObject: object | undefined;
  #response: Partial<Status> | undefined;
  #responseObject: object | undefined;
  #isComplete = false;

  constructor(log: AuditLog, request: AuditedRequest, attributesOf: (user: UserInfo) => Attributes) {
    this.#log = log;
    this.#request = request;
    this.#attributesOf = attributesOf;
  }

  /**
   * Records the authenticated user. Throws StatusError 503 if the event is required but cannot be
   * stored.
   */
  async received(user: UserInfo): Promise<void> {
    this.#decide(user);
    if (this.#decision?.level === "None") return;
    await this.#log.admit(this.#event("RequestReceived"));
  }

  impersonating(impersonated: Impersonated): void {
    this.#impersonated = impersonated;
  }

  annotate(key: string, value: string): void {
    this.#annotations[key] = cutText(value);
  }

  /** Keeps the requested object, for levels from Request on. */
  requested(object: object): void {
    this.#requestObject = object;
  }

  /** Keeps the JSON answer for level RequestResponse, unless it is too long. */
  responding(json: Uint8Array): void {
    if (this.#decision?.level !== "RequestResponse") return;
    if (this.#attributes?.resource === "secrets") {
      this.annotate(RESPONSE_LEFT_OUT, "contents of secrets are never recorded");
      return;
    }
    if (json.byteLength > MAX_RESPONSE_OBJECT_BYTES) {
      this.annotate(
        RESPONSE_LEFT_OUT,
        `${json.byteLength} bytes, at most ${MAX_RESPONSE_OBJECT_BYTES} are recorded`,
      );
      return;
    }
    this.#responseObject = JSON.parse(Buffer.from(json).toString("utf8")) as object;
  }

  /** The answer's head was sent. */
  started(response: Partial<Status>): void {
    this.#response ??= response;
    if (this.#request.isLongRunning) this.#record("ResponseStarted");
  }

  /** The session continues; records its annotations so far. */
  goesOn(): void {
    if (this.#response !== undefined && !this.#isComplete) this.#record("ResponseStarted");
  }

  /** The answer or its session ended. Only the first call counts. */
  complete(response: Partial<Status>): void {
    if (this.#isComplete) return;
    this.#isComplete = true;
    // Health and version need no user. The API server records forwarded requests.
    if (this.#decision === undefined && (response.code ?? 0) < 400) return;
    if (this.#response === undefined) this.started(response);
    if (response.kind === "Status") this.#responseObject ??= response;
    this.#record("ResponseComplete");
  }

  /** The client left before its answer. Requests without a known user are recorded only if refused. */
  left(): void {
    this.complete(this.#decision === undefined ? {} : CLIENT_LEFT);
  }

  /** Returns the same authorizer; records its final decision on this request. */
  watching(authorizer: Authorizer): Pick<Authorizer, "authorize"> {
    return {
      authorize: async (attributes) => {
        const decision = await authorizer.authorize(attributes);
        this.annotate(DECISION, decision.decision === "allow" ? "allow" : "forbid");
        this.annotate(REASON, decision.reason);
        return decision;
      },
    };
  }

  #decide(user: UserInfo): void {
    this.#attributes = this.#attributesOf(user);
    this.#decision = this.#log.decide(this.#attributes);
  }

  #record(stage: AuditEvent["stage"]): void {
    // Also records the refusal of an unauthenticated request.
    if (this.#decision === undefined) this.#decide(NOBODY);
    const event = this.#event(stage);
    if (event !== undefined) this.#log.record(event);
  }

  /** Undefined if the policy omits the stage or the request. */
  #event(stage: AuditEvent["stage"]): AuditEvent | undefined {
    const { level, omitStages } = this.#decision as AuditDecision;
    if (level === "None" || omitStages.includes(stage)) return undefined;
    const attributes = this.#attributes as Attributes;
    const { requestUri, sourceAddresses, userAgent } = this.#request;
    const objectRef = objectReference(attributes);
    return {
      kind: "Event",
      apiVersion: "audit.k8s.io/v1",
      level,
      auditID: this.#auditId,
      stage,
      requestURI: auditedUri(requestUri),
      verb: attributes.verb,
      user: userRecord(attributes.user),
      ...(this.#impersonated && impersonationRecord(this.#impersonated)),
      ...(sourceAddresses.length > 0 && { sourceIPs: sourceAddresses }),
      ...(userAgent !== "" && { userAgent: cutText(userAgent) }),
      ...(objectRef && { objectRef }),
      ...(this.#response && { responseStatus: responseRecord(this.#response) }),
      ...(level.startsWith("Request") && this.#requestObject && { requestObject: this.#requestObject }),
      ...(level === "RequestResponse" && this.#responseObject && { responseObject: this.#responseObject }),
      requestReceivedTimestamp: microTime(this.#receivedAt),
      stageTimestamp: microTime(stage === "RequestReceived" ? this.#receivedAt : new Date()),
      ...(Object.keys(this.#annotations).length > 0 && { annotations: { ...this.#annotations } }),
    };
  }
}

/** The impersonated user, and the constrained impersonation verb that allowed it. */
function impersonationRecord({ user, constraint }: Impersonated): object {
  return {
    impersonatedUser: userRecord(user),
    ...(constraint !== undefined && { authenticationMetadata: { impersonationConstraint: constraint } }),
  };
}

function objectReference(attributes: Attributes): object | undefined {
  if (!attributes.isResourceRequest) return undefined;
  const { resource, namespace, name, apiGroup, apiVersion, subresource } = attributes;
  const members = { resource, namespace, name, apiGroup, apiVersion, subresource };
  const named = Object.entries(members).filter(([, value]) => value !== "");
  return Object.fromEntries(named.map(([member, value]) => [member, cutText(value)]));
}

/** Keeps only a Status's outcome; just `code` if there was no Status. */
function responseRecord({ status, message, reason, details, code }: Partial<Status>): object {
  return {
    metadata: {},
    ...(status !== undefined && { status }),
    ...(message && { message: cutText(message) }),
    ...(reason && { reason }),
    ...(details !== undefined && { details }),
    code,
  };
}

/**
 * Characters of a URI in an audit event; level Request records a longer command line among the
 * options. Past it the URI is cut, with `...TRUNCATED`.
 */
const MAX_AUDITED_URI_CHARACTERS = 8 * 1024;

const SECRET_PARAMETERS = /([?&](?:access_token|id_token|token|password|authorization)=)[^&#]*/gi;

/**
 * Cuts the URI, and redacts secrets that clients other than Kubernetes' put into URLs. Keeps the
 * command line, because audit needs it.
 */
function auditedUri(uri: string): string {
  return cutText(uri.replace(SECRET_PARAMETERS, "$1[redacted]"), MAX_AUDITED_URI_CHARACTERS);
}

/** Kubernetes' MicroTime: six digits after the point. */
function microTime(date: Date): string {
  return date.toISOString().replace("Z", "000Z");
}

function userRecord({ name, uid, groups, extra }: UserInfo): object {
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

function cutText(text: string, maxCharacters: number = MAX_AUDITED_TEXT_CHARACTERS): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)}${TRUNCATED}`;
}
