import { createHash } from "node:crypto";
import { isRecord } from "@sluice/client/internal/api/status-body";
import type { Resource } from "../api/read-only-server/resources.ts";
import { RECORDINGS } from "./recording-object.ts";
import { SESSIONS_GROUP, SESSIONS_VERSION, STREAMING_SESSIONS } from "./streaming-session.ts";

/** A schema as OpenAPI 3.0 has it, in the parts that are used here. */
interface Schema {
  readonly type: "string" | "integer" | "boolean" | "object" | "array";
  readonly description: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
}

const text = (description: string): Schema => ({ type: "string", description });
const time = (description: string): Schema => ({ type: "string", format: "date-time", description });
const count = (description: string): Schema => ({ type: "integer", format: "int64", description });
const flag = (description: string): Schema => ({ type: "boolean", description });
const texts = (description: string): Schema => ({ type: "array", description, items: text("") });
const object = (description: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  type: "object",
  description,
  properties,
});

const METADATA = object("The object's metadata.", {
  name: text("The session's id, as in logs, audit and recordings."),
  namespace: text("The pod's namespace."),
  uid: text("The same as the name."),
  resourceVersion: text("The version, to watch from."),
  creationTimestamp: time("When the session began."),
  labels: {
    ...object("sluice.dev/subresource, and sluice.dev/pod for names of up to 63 characters.", {}),
    additionalProperties: text(""),
  },
});

const ASKED = {
  pod: text("The pod that it streams to."),
  container: text("The container of an exec or attach."),
  subresource: text("exec, attach or portforward."),
  command: texts("The command line of an exec. Only a get of one object has it: it may contain secrets."),
  tty: flag("Whether it has a terminal."),
  stdin: flag("Whether it has standard input."),
  node: text("The node or API server that it leads to."),
};
const USER = {
  username: text("The user whose session it is."),
  requestedBy: text("The user who impersonated that one."),
};

const SESSION_SPEC = object("What was requested, by whom, and how it is carried.", {
  ...ASKED,
  ephemeral: flag("Whether the container is one of kubectl debug."),
  user: object("The user.", {
    ...USER,
    groups: texts("The user's groups. Only a get of one session has them."),
  }),
  client: object("The client.", {
    address: text("The address that it comes from."),
    userAgent: text("Its User-Agent."),
  }),
  protocol: text("The wire protocol, such as v5.channel.k8s.io."),
  plan: text("How its bytes are carried, such as translate or pass-through."),
  planReason: text("Why that plan was chosen."),
});

const SESSION_STATUS = object("How it runs.", {
  phase: text("Running."),
  startedAt: time("When it began."),
  bytesToClient: count("Bytes towards the client so far."),
  bytesToNode: count("Bytes towards the node so far."),
  joiners: texts("The users that have joined it and can type in it."),
  replica: text("The replica of the gateway that carries it."),
  worker: count("The worker process of that replica."),
});

const RECORDING_SPEC = object("What was recorded, and by which rule.", {
  ...ASKED,
  user: object("The user.", USER),
  rule: text("The rule that recorded it."),
  record: text("What the rule records: output or all."),
});

const RECORDING_STATUS = object("What the recording contains, from its signed last line.", {
  startedAt: time("When the session began."),
  endedAt: time("When it ended; the time of the last event if `end` is crash or write-failed."),
  end: text(
    "How it ended; crash if its gateway died, write-failed if the disk refused its last lines: then a search finished the recording.",
  ),
  outputBytes: count("Bytes of output, recorded or counted."),
  gaps: count("Times at which output could not be recorded."),
  fileBytes: count("The size of the recording."),
  hash: text("The hash of its last chunk, as in the audit log."),
  key: text("The key that signed it."),
});

/** The fields of each kind, which `kubectl explain` shows. */
const KINDS = [
  {
    resource: STREAMING_SESSIONS,
    description: "A running exec, attach or port-forward. Its deletion ends it.",
    spec: SESSION_SPEC,
    status: SESSION_STATUS,
  },
  {
    resource: RECORDINGS,
    description: "A finished recording of a session. Its subresource `content` is the file.",
    spec: RECORDING_SPEC,
    status: RECORDING_STATUS,
  },
];

const GROUP_PATH = `apis/${SESSIONS_GROUP}/${SESSIONS_VERSION}`;
const GVK = "x-kubernetes-group-version-kind";
/** The path of the document about this group. */
export const OPEN_API_PATH: string = `/openapi/v3/${GROUP_PATH}`;

const gvkOf = (kind: string): object => ({ group: SESSIONS_GROUP, version: SESSIONS_VERSION, kind });
const nameOf = ({ kind }: Resource): string => `dev.sluice.${SESSIONS_VERSION}.${kind}`;

function schemaOf({ resource, description, spec, status }: (typeof KINDS)[number]): object {
  const properties = {
    apiVersion: text(`${SESSIONS_GROUP}/${SESSIONS_VERSION}.`),
    kind: text(`${resource.kind}.`),
    metadata: METADATA,
    spec,
    status,
  };
  return { ...object(description, properties), [GVK]: [gvkOf(resource.kind)] };
}

function pathsOf({ resource }: (typeof KINDS)[number]): readonly (readonly [string, object])[] {
  const collection = `/${GROUP_PATH}/namespaces/{namespace}/${resource.name}`;
  const read = (action: string, schema: object): object => {
    const content = { "application/json": { schema } };
    const responses = { "200": { description: "OK", content } };
    return { get: { "x-kubernetes-action": action, [GVK]: gvkOf(resource.kind), responses } };
  };
  const one = { $ref: `#/components/schemas/${nameOf(resource)}` };
  const list = { type: "object", properties: { items: { type: "array", items: one } } };
  return [
    [`/${GROUP_PATH}/${resource.name}`, read("list", list)],
    [collection, read("list", list)],
    [`${collection}/{name}`, read("get", one)],
  ];
}

/** The document about this group, of OpenAPI 3.0. */
export const OPEN_API_DOCUMENT: object = {
  openapi: "3.0.0",
  info: { title: "Sluice", version: SESSIONS_VERSION },
  paths: Object.fromEntries(KINDS.flatMap(pathsOf)),
  components: { schemas: Object.fromEntries(KINDS.map((kind) => [nameOf(kind.resource), schemaOf(kind)])) },
};

/** Clients keep a document until the hash in its URL changes. */
const HASH = createHash("sha256").update(JSON.stringify(OPEN_API_DOCUMENT)).digest("hex").slice(0, 32);

/** `/openapi/v3`: the paths of all documents, of this group alone. */
export const OPEN_API_INDEX: { readonly paths: Readonly<Record<string, object>> } = {
  paths: { [GROUP_PATH]: { serverRelativeURL: `${OPEN_API_PATH}?hash=${HASH}` } },
};

/**
 * Adds this group's document to an answer to `/openapi/v3`. Returns undefined if the answer already
 * lists the group, or is not an index of documents.
 */
export function withSessionsDocument(answer: unknown): object | undefined {
  if (!isRecord(answer) || !isRecord(answer.paths) || Object.hasOwn(answer.paths, GROUP_PATH))
    return undefined;
  return { ...answer, paths: { ...answer.paths, ...OPEN_API_INDEX.paths } };
}
