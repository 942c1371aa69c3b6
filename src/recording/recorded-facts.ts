import type { RecordingRule } from "../config/sections/recording.ts";
import type { SessionInfo } from "../sessions/session-info.ts";
import { archiveUseOf } from "./archive-command.ts";
import { FORMAT, type RecordedFacts } from "./format/asciicast.ts";

/** The session's facts for the recording's header. */
export function factsOf(info: SessionInfo, { name, record }: RecordingRule): RecordedFacts {
  const { id, startedAt, subresource, namespace, pod, node, user, requestedBy, plan, details } = info;
  const { container, command, tty, stdin, groups, client, protocol } = details ?? NO_DETAILS;
  const archive = tty ? undefined : archiveUseOf(command);
  return {
    format: FORMAT,
    session: id,
    startedAt: startedAt.toISOString(),
    rule: name,
    record: record === "all" ? "all" : "output",
    subresource,
    namespace,
    pod,
    node,
    ...(container !== undefined && { container }),
    user,
    ...(requestedBy !== undefined && { requestedBy }),
    groups,
    command,
    tty,
    stdin,
    client,
    plan: plan.kind,
    planReason: plan.reason,
    protocol,
    ...(archive !== undefined && { archive }),
  };
}

const NO_DETAILS: NonNullable<SessionInfo["details"]> = {
  command: [],
  tty: false,
  stdin: false,
  groups: [],
  client: { address: "", agent: "" },
  protocol: "",
};

/** The path of a session's recording within the folder. */
export function recordingFileOf({ id, startedAt }: Pick<SessionInfo, "id" | "startedAt">): string {
  return `${startedAt.toISOString().slice(0, 10).replaceAll("-", "/")}/${id}.cast`;
}
