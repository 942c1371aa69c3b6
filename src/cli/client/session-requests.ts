import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import {
  SESSIONS_GROUP,
  SESSIONS_VERSION,
  STREAMING_SESSIONS,
  type StreamingSession,
} from "../../session-api/streaming-session.ts";
import type { ValuesOf } from "../command.ts";
import type { command } from "../commands/sessions.ts";
import { flag, getShaped, listOf, number, object, optional, type Shape, text } from "./answer-shape.ts";
import type { ClientConnection } from "./connection.ts";

export type SessionsValues = ValuesOf<typeof command.flags>;

export interface SessionList {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly StreamingSession[];
}

export const GROUP_VERSION: string = `${SESSIONS_GROUP}/${SESSIONS_VERSION}`;
const ROOT = `/apis/${GROUP_VERSION}`;
/** kubectl's. */
const PAGE_SESSIONS = "500";
/** Sessions in one list; an empty page counts as one. Past it the list is refused. */
const MAX_LISTED_SESSIONS = 100_000;

/** The fields of a session that the printer and the watch read. */
export const sessionShape: Shape = object({
  metadata: object({ name: text, namespace: optional(text), creationTimestamp: text }),
  spec: object({
    pod: text,
    container: optional(text),
    ephemeral: optional(flag),
    subresource: text,
    node: text,
    user: object({ username: text }),
    client: optional(object({ address: text })),
    plan: text,
  }),
  status: object({
    bytesToClient: number,
    bytesToNode: number,
    replica: text,
    joiners: optional(listOf(text)),
  }),
});
const LIST = {
  what: "a list of sessions",
  shape: object({
    metadata: object({ resourceVersion: optional(text), continue: optional(text) }),
    items: optional(listOf(sessionShape)),
  }),
};

/** The path of a session, in its namespace. */
export async function sessionPath(
  connection: ClientConnection,
  name: string,
  { "all-namespaces": isAnywhere }: SessionsValues,
): Promise<string> {
  const namespace = isAnywhere ? await namespaceOf(connection, name) : connection.namespace;
  return `${collectionIn(namespace)}/${encodeURIComponent(name)}`;
}

async function namespaceOf({ target, namespace, requestTimeoutMs }: ClientConnection, name: string) {
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}` });
  const path = `${ROOT}/${STREAMING_SESSIONS.name}?${query}`;
  const { items } = await getShaped<SessionList>(target, path, { ...LIST, timeoutMs: requestTimeoutMs });
  // If no namespace has it, the path leads to the answer for an unknown session.
  return items?.[0]?.metadata.namespace ?? namespace;
}

/** Every session, and the version to watch from. Throws UpstreamError if the pages do not end. */
export async function allPages(
  connection: ClientConnection,
  values: SessionsValues,
): Promise<SessionList & { readonly items: readonly StreamingSession[] }> {
  const { target, requestTimeoutMs: timeoutMs } = connection;
  const items: StreamingSession[] = [];
  let listed = 0;
  for (let next = ""; ; ) {
    const path = collectionPath(connection, values, {
      limit: PAGE_SESSIONS,
      ...(next !== "" && { continue: next }),
    });
    const page = await getShaped<SessionList>(target, path, { ...LIST, timeoutMs });
    // A list's items have neither, and kubectl adds both, before the rest.
    const head = { apiVersion: GROUP_VERSION, kind: STREAMING_SESSIONS.kind };
    for (const item of page.items ?? []) items.push({ ...head, ...item, ...head });
    listed += Math.max(1, page.items?.length ?? 0);
    const { continue: at = "", resourceVersion = "" } = page.metadata;
    if (at === "") return { metadata: { resourceVersion }, items };
    if (at === next || listed >= MAX_LISTED_SESSIONS) {
      throw new UpstreamError("malformed-response", "the pages of the server's list do not end");
    }
    next = at;
  }
}

/** The path of the collection, with the selectors from the flags. */
export function collectionPath(
  { namespace }: ClientConnection,
  values: SessionsValues,
  fields: Readonly<Record<string, string>>,
): string {
  const { selector, "field-selector": fieldSelector } = values;
  const query = new URLSearchParams({
    ...fields,
    ...(selector && { labelSelector: selector }),
    ...(fieldSelector && { fieldSelector }),
  });
  const collection = values["all-namespaces"]
    ? `${ROOT}/${STREAMING_SESSIONS.name}`
    : collectionIn(namespace);
  return `${collection}?${query}`;
}

function collectionIn(namespace: string): string {
  return `${ROOT}/namespaces/${encodeURIComponent(namespace)}/${STREAMING_SESSIONS.name}`;
}
