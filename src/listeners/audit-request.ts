import type { Duplex } from "node:stream";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import { headerValue } from "@sluice/client/internal/http/header-list";
import type { AuditLog } from "../access/audit/audit-log.ts";
import { AuditTrail } from "../access/audit/audit-trail.ts";
import type { Attributes } from "../access/authz/authorizer.ts";
import type { UserInfo } from "../access/user-info.ts";
import { switchedStatusOf } from "../http/upgrade/answer-switched.ts";
import type { IncomingStreaming } from "../sessions/incoming-request.ts";
import type { StreamingRequest } from "../sessions/streaming-request.ts";

/** How audit interprets a listener's requests. */
export interface AuditedRoutes {
  /** The attributes by which an authorizer would judge this request. */
  attributesOf(user: UserInfo, incoming: IncomingStreaming): Attributes;
  /** True if the start and the end of the answer are separate audit events. */
  isLongRunning(url: URL): boolean;
}

/** Starts the audit record of a request, before any decision about it. */
export function auditTrailOf(
  incoming: IncomingStreaming,
  audit: AuditLog,
  routes: AuditedRoutes,
): AuditTrail {
  const { target, url, headers, remoteAddress, sourceAddresses } = incoming;
  const request = {
    requestUri: target,
    sourceAddresses: sourceAddresses ?? [remoteAddress],
    userAgent: headerValue(headers, "user-agent") ?? "",
    isLongRunning: routes.isLongRunning(url),
  };
  return new AuditTrail(audit, request, (user) => routes.attributesOf(user, incoming));
}

/** Completes the record when the answer has been sent or the client has left. */
export function completeWithResponse(trail: AuditTrail, downstream: HttpDownstream): void {
  downstream.onClose(() => {
    if (downstream.hasResponded) trail.complete({ code: downstream.status });
    else trail.left();
  });
}

/** Completes the record of an upgrade to the API server when its connection or HTTP/2 stream closes. */
export function completeWithSocket(trail: AuditTrail, socket: Duplex): void {
  const answer = { code: switchedStatusOf(socket) };
  trail.started(answer);
  if (socket.destroyed) trail.complete(answer);
  else socket.once("close", () => trail.complete(answer));
}

const OPTIONS_KINDS = {
  exec: "PodExecOptions",
  attach: "PodAttachOptions",
  portforward: "PodPortForwardOptions",
};

/** A streaming request's options, as the object into which Kubernetes decodes them. */
export function requestedOptions(request: StreamingRequest): object {
  const { subresource, container, command, streams, ports } = request;
  const kind = { kind: OPTIONS_KINDS[subresource], apiVersion: "v1" };
  if (subresource === "portforward") return { ...kind, ...(ports.length > 0 && { ports }) };
  return {
    ...kind,
    ...streams,
    ...(container !== undefined && { container }),
    ...(command.length > 0 && { command }),
  };
}
