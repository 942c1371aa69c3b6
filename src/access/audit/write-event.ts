import { isDeeperThan, MAX_OBJECT_DEPTH } from "../../api/is-deeper-than.ts";
import { quietJson } from "../../observability/mask-controls.ts";
import type { AuditEvent } from "./audit-event.ts";

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
