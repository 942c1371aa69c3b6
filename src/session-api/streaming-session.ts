import type { AdminSession } from "../admin/admin-server.ts";
import type { ApiObject } from "../api/api-object.ts";
import type { Column, Printer } from "../api/read-only-server/columns.ts";
import { ageOf } from "../api/read-only-server/human-duration.ts";
import { READ_VERBS, type Resource } from "../api/read-only-server/resources.ts";
import { replicaOfSession } from "../sessions/session-id.ts";

export const SESSIONS_GROUP = "sluice.dev";
export const SESSIONS_VERSION = "v1alpha1";
const KIND = "StreamingSession";
/** The longest value of a label, in characters. A longer pod name has no label. */
const MAX_LABEL_VALUE = 63;

interface SessionSpec {
  readonly pod: string;
  readonly container?: string | undefined;
  /** The container is an ephemeral one; absent: it is not one, or that is unknown. */
  readonly ephemeral?: true | undefined;
  readonly subresource: string;
  readonly tty?: boolean | undefined;
  readonly stdin?: boolean | undefined;
  readonly node: string;
  readonly user: {
    readonly username: string;
    readonly requestedBy?: string | undefined;
    /** Like `command`, only if the session was requested by its name. */
    readonly groups?: readonly string[] | undefined;
  };
  /** Absent unless it is an exec. */
  readonly command?: readonly string[] | undefined;
  readonly client?: { readonly address: string; readonly userAgent: string } | undefined;
  readonly protocol?: string | undefined;
  readonly plan: string;
  readonly planReason: string;
}

interface SessionStatus {
  readonly phase: "Running";
  readonly startedAt: string;
  readonly bytesToClient: number;
  readonly bytesToNode: number;
  /** The users that have joined the session and can type. */
  readonly joiners?: readonly string[] | undefined;
  readonly replica: string;
  readonly worker?: number | undefined;
}

/**
 * A running session as an API object. Only a request by its name returns the command line, which
 * may contain secrets; lists and watches leave it out.
 */
export interface StreamingSession extends ApiObject {
  readonly spec: SessionSpec & Readonly<Record<string, unknown>>;
  readonly status: SessionStatus & Readonly<Record<string, unknown>>;
}

const columns: readonly Column[] = [
  { name: "Name", description: "The session's id, which names it until it ends." },
  { name: "Pod", description: "The pod that it streams to." },
  { name: "Container", description: "The container of an exec or attach, and whether it is ephemeral." },
  { name: "Subresource", description: "exec, attach or portforward." },
  { name: "User", description: "The user whose session it is." },
  { name: "Age", description: "Time since it began." },
  { name: "Node", description: "The node or API server that it leads to.", isWide: true },
  { name: "Client", description: "The address that it comes from.", isWide: true },
  { name: "Plan", description: "How its bytes are carried.", isWide: true },
  { name: "To-Client", description: "Bytes towards the client so far.", isWide: true },
  { name: "To-Node", description: "Bytes towards the node so far.", isWide: true },
  { name: "Joiners", description: "The users that have joined it and can type in it.", isWide: true },
  { name: "Replica", description: "The replica of the gateway that carries it.", isWide: true },
];

const printer: Printer = {
  columns,
  cells(object, now) {
    const { metadata, spec, status } = object as StreamingSession;
    return [
      metadata.name,
      spec.pod,
      spec.ephemeral ? `${spec.container} (ephemeral)` : spec.container || "<none>",
      spec.subresource,
      spec.user.username,
      ageOf(metadata.creationTimestamp, now),
      spec.node,
      spec.client?.address ?? "<unknown>",
      spec.plan,
      String(status.bytesToClient),
      String(status.bytesToNode),
      status.joiners?.join(",") || "<none>",
      status.replica,
    ];
  },
};

type SelectedSpec = Pick<SessionSpec, "pod" | "container" | "subresource" | "node" | "user">;
const specOf = (object: ApiObject): SelectedSpec => object.spec as SelectedSpec;

/** The fields that field selectors can use, for sessions and recordings. */
export const SELECTABLE_FIELDS: NonNullable<Resource["selectableFields"]> = {
  "spec.pod": (object) => specOf(object).pod,
  "spec.container": (object) => specOf(object).container,
  "spec.subresource": (object) => specOf(object).subresource,
  "spec.node": (object) => specOf(object).node,
  "spec.user.username": (object) => specOf(object).user.username,
};

export const STREAMING_SESSIONS: Resource = {
  group: SESSIONS_GROUP,
  version: SESSIONS_VERSION,
  name: "streamingsessions",
  singularName: "streamingsession",
  kind: KIND,
  isNamespaced: true,
  verbs: ["delete", ...READ_VERBS],
  printer,
  shortNames: ["sess"],
  subresources: [
    { name: "attach", kind: KIND, verbs: ["create", "get"] },
    { name: "output", kind: KIND, verbs: ["get"] },
  ],
  selectableFields: SELECTABLE_FIELDS,
};

interface NamedSession {
  readonly id: string;
  readonly namespace: string;
  readonly pod: string;
  readonly subresource: string;
  /** ISO 8601. */
  readonly startedAt: string;
}

/** The apiVersion, kind and metadata of a session, or of its recording. */
export function headOf(
  kind: string,
  { id, namespace, pod, subresource, startedAt }: NamedSession,
  version: number,
) {
  return {
    apiVersion: `${SESSIONS_GROUP}/${SESSIONS_VERSION}`,
    kind,
    metadata: {
      name: id,
      namespace,
      uid: id,
      resourceVersion: String(version),
      creationTimestamp: startedAt.replace(/\.\d+Z$/, "Z"),
      labels: {
        "sluice.dev/subresource": subresource,
        ...(pod !== "" && pod.length <= MAX_LABEL_VALUE && { "sluice.dev/pod": pod }),
      },
    },
  };
}

/** A listed session as an API object, at the version of its last report to watches. */
export function streamingSessionOf(session: AdminSession, resourceVersion: number): StreamingSession {
  const { pod, subresource, plan, client } = session;
  // Other processes send their lists as JSON, with dates as text.
  const startedAt = new Date(session.startedAt).toISOString();
  return {
    ...headOf(KIND, { ...session, startedAt }, resourceVersion),
    spec: {
      pod,
      container: session.container,
      ephemeral: session.ephemeral,
      subresource,
      tty: session.tty,
      stdin: session.stdin,
      node: session.node,
      user: { username: session.user, requestedBy: session.requestedBy },
      client: client && { address: client.address, userAgent: client.agent },
      protocol: session.protocol,
      plan: plan.kind,
      planReason: plan.reason,
    },
    status: {
      phase: "Running",
      startedAt,
      bytesToClient: session.downstreamBytes,
      bytesToNode: session.upstreamBytes,
      joiners: session.joiners,
      replica: replicaOfSession(session.id) ?? "",
      worker: session.worker,
    },
  };
}
