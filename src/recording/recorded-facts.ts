import path from "node:path";
import type { RecordingRule } from "../config/sections/recording.ts";
import type { SessionInfo } from "../sessions/session-info.ts";
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

/** The path of a session's recording within the folder; any time of the session's first day leads to it. */
export function recordingFileOf(id: string, startedAt: Date): string {
  return `${startedAt.toISOString().slice(0, 10).replaceAll("-", "/")}/${id}.cast`;
}

/** What a `tar` command does with its archive: `pack` writes it to stdout, `unpack` reads it from stdin. */
type ArchiveUse = "pack" | "unpack";

const SHELLS = ["sh", "bash", "ash", "dash", "busybox"];
/** `sluice cp`, and `kubectl cp` when it resumes, run tar in a shell script. */
const IN_SCRIPT = /(?:^|[;&|]\s*|\bexec\s+)tar\s+(\S+)/;

/** Recognises the commands of `kubectl cp` and `sluice cp`. Undefined for any other command. */
export function archiveUseOf(command: readonly string[]): ArchiveUse | undefined {
  const [program = "", first = "", script = ""] = command;
  const name = path.posix.basename(program);
  if (name === "tar") return useOf(first);
  if (!SHELLS.includes(name) || first !== "-c") return undefined;
  return useOf(IN_SCRIPT.exec(script)?.[1] ?? "");
}

function useOf(options: string): ArchiveUse | undefined {
  if (options === "--create" || /^-?[a-zA-Z]*c/.test(options)) return "pack";
  return options === "--extract" || options === "--get" || /^-?[a-zA-Z]*x/.test(options)
    ? "unpack"
    : undefined;
}
