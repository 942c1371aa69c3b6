import type { ApiObject } from "../api/api-object.ts";
import type { Column, Printer } from "../api/read-only-server/columns.ts";
import { ageOf } from "../api/read-only-server/human-duration.ts";
import { READ_VERBS, type Resource } from "../api/read-only-server/resources.ts";
import type { StoredRecording } from "../recording/reading/recording-index.ts";
import { headOf, SELECTABLE_FIELDS, SESSIONS_GROUP, SESSIONS_VERSION } from "./streaming-session.ts";

const KIND = "Recording";

interface RecordingSpec {
  readonly pod: string;
  readonly container?: string | undefined;
  readonly subresource: string;
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly node: string;
  readonly user: { readonly username: string; readonly requestedBy?: string | undefined };
  readonly rule: string;
  readonly record: string;
  /** Left out of lists, because it may contain secrets. */
  readonly command?: readonly string[];
}

interface RecordingStatus {
  readonly startedAt: string;
  readonly endedAt: string;
  readonly end: string;
  readonly outputBytes: number;
  readonly gaps: number;
  readonly fileBytes: number;
  readonly hash: string;
  readonly key: string;
}

/** A finished recording as an API object. */
export interface RecordingObject extends ApiObject {
  readonly spec: RecordingSpec & Readonly<Record<string, unknown>>;
  readonly status: RecordingStatus & Readonly<Record<string, unknown>>;
}

const columns: readonly Column[] = [
  { name: "Name", description: "The id of the recorded session." },
  { name: "Pod", description: "The pod that it streamed to." },
  { name: "Container", description: "The container of an exec or attach." },
  { name: "Subresource", description: "exec, attach or portforward." },
  { name: "User", description: "The user whose session it was." },
  { name: "Age", description: "Time since the session began." },
  { name: "End", description: "How the session ended." },
  { name: "Gaps", description: "Times at which output could not be recorded." },
  { name: "Bytes", description: "The size of the recording.", isWide: true },
  { name: "Rule", description: "The rule that recorded it.", isWide: true },
  { name: "Key", description: "The key that signed it.", isWide: true },
];

const printer: Printer = {
  columns,
  cells(object, now) {
    const { metadata, spec, status } = object as RecordingObject;
    return [
      metadata.name,
      spec.pod,
      spec.container || "<none>",
      spec.subresource,
      spec.user.username,
      ageOf(metadata.creationTimestamp, now),
      status.end,
      String(status.gaps),
      String(status.fileBytes),
      spec.rule,
      status.key,
    ];
  },
};

export const RECORDINGS: Resource = {
  group: SESSIONS_GROUP,
  version: SESSIONS_VERSION,
  name: "recordings",
  singularName: "recording",
  kind: KIND,
  isNamespaced: true,
  verbs: ["delete", ...READ_VERBS],
  printer,
  shortNames: [],
  subresources: [{ name: "content", kind: KIND, verbs: ["get"] }],
  selectableFields: SELECTABLE_FIELDS,
};

/** `withCommand`: includes the command line, which lists leave out. */
export function recordingObjectOf(
  { facts, head, bytes, endedMs }: StoredRecording,
  withCommand: boolean,
): RecordingObject {
  const { startedAt, pod, container, subresource, tty, stdin, node, rule, record } = facts;
  const { user: username, requestedBy, command } = facts;
  return {
    ...headOf(KIND, { ...facts, id: facts.session }, Math.floor(endedMs)),
    spec: {
      pod,
      container,
      subresource,
      tty,
      stdin,
      node,
      user: { username, requestedBy },
      rule,
      record,
      ...(withCommand && { command }),
    },
    status: {
      startedAt,
      endedAt: head.endedAt,
      end: head.end,
      outputBytes: head.bytes,
      gaps: head.gaps,
      fileBytes: bytes,
      hash: head.hash,
      key: head.key,
    },
  };
}
