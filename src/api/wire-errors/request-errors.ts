import {
  badRequest,
  forbidden,
  genericError,
  internalError,
  requestEntityTooLarge,
  serviceUnavailable,
  tooManyRequests,
  unauthorized,
  unsupportedMediaType,
} from "@sluice/client/internal/api/status";
import type { WireError } from "./wire-error.ts";

const unavailable = (text: string) => () => genericError(503, text);

/**
 * Answers that only an Ingress gives. Visitors must see no name that the operator chose, and no
 * address.
 */
export const ROUTE_ERRORS = {
  "host-twice": {
    cause: "The request has several Host headers",
    ingress: () => genericError(400, "more than one Host header"),
  },
  "host-missing": {
    cause: "The request has no Host header",
    ingress: () => genericError(400, "missing Host header"),
  },
  "host-malformed": {
    cause: "The Host header names no host",
    ingress: () => genericError(400, "malformed Host header"),
  },
  "other-protocol": {
    cause: "The backend answers in another protocol than the Service declares",
    ingress: ({ protocol }: { protocol: string }) =>
      genericError(502, `the backend does not speak ${protocol}`),
  },
  "no-service": {
    cause: "The route's Service does not exist",
    ingress: unavailable("the service of this route does not exist"),
  },
  "no-such-port": {
    cause: "The Service has no such port",
    ingress: unavailable("the service of this route has no such port"),
  },
  "external-name": {
    cause: "The Service is an external name",
    ingress: unavailable("the service of this route is an external name, which is not served"),
  },
  "no-authority": {
    cause: "The authority of the Service's certificates is not known",
    ingress: unavailable("the certificate authority for the service of this route is not known"),
  },
  "endpoints-refused": {
    cause: "The endpoints' addresses may not be dialled",
    ingress: unavailable("the endpoints of this route's service have addresses that may not be dialled"),
  },
  "no-endpoints": {
    cause: "The Service has no ready endpoint",
    ingress: unavailable("the service of this route has no ready endpoints"),
  },
  "streaming-gateway-silent": {
    cause: "The route's StreamingGateway fails its health checks",
    ingress: unavailable("this streaming gateway does not answer"),
  },
  "streaming-gateway-unknown": {
    cause: "The route's StreamingGateway is not configured",
    ingress: unavailable("this streaming gateway is not configured"),
  },
} as const satisfies Record<string, WireError>;

/** Requests that no route or session ever sees, or that the first checks refuse. */
export const REQUEST_ERRORS = {
  "gateway-failed": {
    cause: "The gateway fails",
    streaming: () => internalError("the gateway failed to handle the request"),
    ingress: () => genericError(500, "the gateway failed to handle the request"),
  },
  "too-many-headers": {
    cause: "The request has more header lines than `limits.maxRequestHeaders`",
    streaming: () => genericError(431, "too many header lines"),
    ingress: () => genericError(431, "too many header lines"),
  },
  "target-not-path": {
    cause: "The request's target is not a path",
    streaming: () => badRequest("the request target must be a path"),
    ingress: () => genericError(400, "malformed request target"),
  },
  "path-ambiguous": {
    cause: "Two servers could read the path differently",
    streaming: ({ why }: { why: string }) => badRequest(`the request path is ambiguous: ${why}`),
  },
  "origin-refused": {
    cause: "A web page of another origin opens a session",
    streaming: ({ origin }: { origin: string }) =>
      forbidden("", "", `the origin ${origin} is not among edge.allowedOrigins`),
  },
  "too-many-requests": {
    cause: "The request gets no seat",
    streaming: ({ seconds }: { seconds: number }) =>
      tooManyRequests("Too many requests, please try again later.", seconds),
    ingress: () => genericError(503, "too many requests at a time"),
  },
  unauthenticated: {
    cause: "The request has no valid credentials",
    streaming: unauthorized,
    kubelet: () => genericError(401, "Unauthorized"),
  },
  forbidden: {
    cause: "The authorizer does not allow the request",
    streaming: ({ resource, name, reason }: { resource: string; name: string; reason: string }) =>
      forbidden(resource, name, reason),
    kubelet: ({ attributes }: { attributes: string }) => genericError(403, `Forbidden ${attributes}\n`),
  },
  "authorizer-failed": {
    cause: "The authorizer gives no decision",
    kubelet: ({ attributes }: { attributes: string }) =>
      genericError(500, `Authorization error ${attributes}`),
  },
  "authorizer-busy": {
    cause: "The webhook authorizer has no free place",
    streaming: ({ seconds }: { seconds: number }) =>
      tooManyRequests("too many requests wait to be authorized", seconds),
  },
  "token-review-busy": {
    cause: "The API server reviews too many tokens already",
    streaming: ({ seconds }: { seconds: number }) =>
      tooManyRequests("too many tokens wait to be reviewed", seconds),
  },
  "impersonation-without-name": {
    cause: "The request impersonates groups, uid or extras without a user",
    streaming: ({ user }: { user: string }) =>
      badRequest(`requested ${user} without impersonating a user name`),
  },
  "impersonation-spaced": {
    cause: "An HTTP/2 request impersonates a name that begins or ends with white space",
    streaming: () => badRequest("an impersonated name begins or ends with white space"),
  },
  "impersonation-too-long": {
    cause: "The request impersonates too many groups and extras",
    streaming: () => genericError(431, "too many impersonation headers"),
  },
  "impersonation-unchecked": {
    cause: "The authorizer gives no decision on an impersonation",
    streaming: ({ name }: { name: string }) =>
      forbidden("users", name, "the permission could not be checked"),
  },
  "audit-unavailable": {
    cause: "The audit log does not accept the event, and `audit.onFailure` is refuse",
    streaming: () => serviceUnavailable("the audit log is not available; no request goes on without it"),
  },
  "media-type": {
    cause: "A review has an unsupported media type",
    streaming: ({ types }: { types: readonly string[] }) => unsupportedMediaType(types),
  },
  "review-unreadable": {
    cause: "A review's body is not a review",
    streaming: ({ problem }: { problem: string }) => badRequest(`couldn't get version/kind: ${problem}`),
  },
  "body-too-large": {
    cause: "A review's body is larger than its limit",
    streaming: ({ maxBytes }: { maxBytes: number }) => requestEntityTooLarge(maxBytes),
  },
  "body-cut": { cause: "A review's body ends early", streaming: () => badRequest("the body ended early") },
  "body-late": {
    cause: "A review's body stalls",
    streaming: () => genericError(408, "the request's body did not come in time"),
  },
} as const satisfies Record<string, WireError>;
