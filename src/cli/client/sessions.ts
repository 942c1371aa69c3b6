import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { deleteObject, getBody, getObject } from "@sluice/client/internal/get-object";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { maskControls } from "../../observability/mask-controls.ts";
import { TERMINAL_RESET, TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { SESSION_OVER } from "../../session-api/output-stream.ts";
import {
  SESSIONS_GROUP,
  SESSIONS_VERSION,
  STREAMING_SESSIONS,
  type StreamingSession,
} from "../../session-api/streaming-session.ts";
import type { Invocation } from "../command.ts";
import type { sessionsFlags } from "../commands/sessions.ts";
import { UsageError } from "../usage-error.ts";
import { type ClientConnection, openConnection } from "./connection.ts";
import { reportError } from "./report-error.ts";

type SessionsInvocation = Invocation<typeof sessionsFlags>;
type SessionsValues = SessionsInvocation["values"];

interface SessionList {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly StreamingSession[];
}

interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: StreamingSession;
}

const ROOT = `/apis/${SESSIONS_GROUP}/${SESSIONS_VERSION}`;
/** kubectl's. */
const PAGE_SESSIONS = "500";
/** Connections in a row that `sessions list --watch` may lose. Past it the command fails. */
const MAX_LOST_WATCHES = 5;
/** The pause before it lists again. */
const AGAIN_MS = 1_000;

/** `sluice sessions list|watch|end`. */
export async function run(invocation: SessionsInvocation): Promise<number> {
  const { values, operands } = invocation;
  const [action, ...names] = operands;
  if (action !== "list" && action !== "watch" && action !== "end")
    throw new UsageError("list, watch or end must be specified");
  if (action === "list" && names.length > 0) throw new UsageError("list takes no name");
  if (action === "end" && names.length === 0) throw new UsageError("end needs the name of a session");
  if (action === "watch" && names.length !== 1) throw new UsageError("watch needs the name of one session");
  const connection = await openConnection(values);
  try {
    if (action === "list") return await list(connection, values);
    if (action === "watch") return await view(connection, names[0] ?? "", values);
    for (const name of names) await end(connection, name, values);
    return 0;
  } catch (error) {
    return reportError(error);
  }
}

async function list(connection: ClientConnection, values: SessionsValues): Promise<number> {
  const first = await allPages(connection, values);
  if (values.output === "json" && !values.watch) {
    const whole = { apiVersion: `${SESSIONS_GROUP}/${SESSIONS_VERSION}`, kind: "StreamingSessionList" };
    process.stdout.write(`${JSON.stringify({ ...whole, ...first }, undefined, 4)}\n`);
    return 0;
  }
  const printer = new SessionPrinter(values);
  if (first.items.length === 0 && !values.watch) {
    const where = values["all-namespaces"] ? "" : ` in ${connection.namespace} namespace`;
    process.stderr.write(`No sessions found${where}.\n`);
    return 0;
  }
  printer.print(first.items);
  if (values.watch) await watch(connection, values, first, printer);
  return 0;
}

/** Prints changes until the process ends. A watch that ends, or is too old, begins again with a list. */
async function watch(
  connection: ClientConnection,
  values: SessionsValues,
  { items, metadata }: SessionList,
  printer: SessionPrinter,
): Promise<never> {
  const known = new Map(items.map((session) => [session.metadata.name, session]));
  let version = metadata.resourceVersion ?? "";
  const changed = (type: WatchEvent["type"], session: StreamingSession): void => {
    if (type === "DELETED") known.delete(session.metadata.name);
    else known.set(session.metadata.name, session);
    // People ask what begins and ends; programs get the counters, too.
    if (type !== "MODIFIED" || values.output === "json") printer.print([session], type);
  };
  for (let lost = 0; ; await delay(AGAIN_MS)) {
    try {
      for await (const { type, object } of eventsOf(connection, values, version)) changed(type, object);
    } catch (error) {
      if (!isLost(error)) throw error;
    }
    try {
      const now = await allPages(connection, values);
      const running = new Set(now.items.map((session) => session.metadata.name));
      for (const [name, session] of known) if (!running.has(name)) changed("DELETED", session);
      for (const session of now.items) if (!known.has(session.metadata.name)) changed("ADDED", session);
      version = now.metadata.resourceVersion ?? "";
      lost = 0;
    } catch (error) {
      lost += 1;
      if (!isLost(error) || lost > MAX_LOST_WATCHES) throw error;
    }
  }
}

/** Ends when the watch ends, or says that its version is too old. */
async function* eventsOf(
  connection: ClientConnection,
  values: SessionsValues,
  resourceVersion: string,
): AsyncGenerator<WatchEvent, void> {
  const { signal } = new AbortController();
  const path = pathOf(connection, values, { watch: "true", resourceVersion });
  const body = await getBody(connection.target, path, { signal, timeoutMs: connection.requestTimeoutMs });
  for await (const line of linesOf(body)) {
    const event = eventIn(line);
    if (event === undefined) return;
    yield event;
  }
}

/** Whole lines. Node's readline would end the process where the body is cut short. */
async function* linesOf(body: Readable): AsyncGenerator<string, void> {
  let rest = "";
  for await (const text of body.setEncoding("utf8")) {
    const lines = `${rest}${text}`.split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}

const EVENTS: ReadonlySet<string> = new Set(["ADDED", "MODIFIED", "DELETED"]);

/** Undefined for any other line. */
function eventIn(line: string): WatchEvent | undefined {
  try {
    const event = JSON.parse(line) as WatchEvent;
    return EVENTS.has(event.type) ? event : undefined;
  } catch {
    return undefined;
  }
}

/** False for an answer of the server, other than that a version is too old. */
function isLost(error: unknown): boolean {
  return error instanceof ConnectError
    ? error.leg !== "http" || error.apiStatus?.code === 410
    : error instanceof UpstreamError;
}

/** Prints a session's output until it ends: 0. A view that is cut short: 1; by SIGINT: 130. */
async function view(connection: ClientConnection, name: string, values: SessionsValues): Promise<number> {
  const { target, requestTimeoutMs: timeoutMs } = connection;
  const namespace = values["all-namespaces"] ? await namespaceOf(connection, name) : connection.namespace;
  const path = `${collectionIn(namespace)}/${encodeURIComponent(name)}/output`;
  const interrupt = new AbortController();
  const onInterrupt = (): void => interrupt.abort();
  process.once("SIGINT", onInterrupt);
  const filter = new TerminalFilter();
  let message: string | undefined;
  try {
    const body = await getBody(target, path, { signal: interrupt.signal, timeoutMs });
    for await (const line of linesOf(body)) {
      if (values.output === "json") write(line);
      if (!line.startsWith("[")) continue;
      const [, code, text] = JSON.parse(line) as [number, string, string];
      if (code === "o" && values.output !== "json") process.stdout.write(filter.push(text));
      if (code !== "m") continue;
      message = text;
      if (text !== SESSION_OVER) process.stderr.write(`sluice: ${maskControls(text)}\n`);
    }
  } catch (error) {
    if (interrupt.signal.aborted) return 130;
    throw error;
  } finally {
    process.off("SIGINT", onInterrupt);
    // What the session has set stays with its owner.
    if (process.stdout.isTTY && values.output !== "json") process.stdout.write(`${TERMINAL_RESET}\n`);
  }
  if (message !== SESSION_OVER) {
    process.stderr.write("error: the view ended before its session\n");
    return 1;
  }
  process.stderr.write(`session ${maskControls(name)} is over\n`);
  return 0;
}

async function end(connection: ClientConnection, name: string, values: SessionsValues): Promise<void> {
  const { target, requestTimeoutMs: timeoutMs } = connection;
  const namespace = values["all-namespaces"] ? await namespaceOf(connection, name) : connection.namespace;
  const query = values.reason ? `?${new URLSearchParams({ reason: values.reason })}` : "";
  const path = `${collectionIn(namespace)}/${encodeURIComponent(name)}${query}`;
  const status = await deleteObject(target, path, { timeoutMs });
  process.stdout.write(`session ${maskControls(name)} ${status === 202 ? "is ending" : "ended"}\n`);
}

async function namespaceOf({ target, namespace, requestTimeoutMs }: ClientConnection, name: string) {
  const query = new URLSearchParams({ fieldSelector: `metadata.name=${name}` });
  const path = `${ROOT}/${STREAMING_SESSIONS.name}?${query}`;
  const { items } = await getObject<SessionList>(target, path, { timeoutMs: requestTimeoutMs });
  // Unknown in all namespaces, it gets the answer of any.
  return items[0]?.metadata.namespace ?? namespace;
}

async function allPages(connection: ClientConnection, values: SessionsValues): Promise<SessionList> {
  const { target, requestTimeoutMs: timeoutMs } = connection;
  const items: StreamingSession[] = [];
  for (let next = ""; ; ) {
    const path = pathOf(connection, values, { limit: PAGE_SESSIONS, ...(next !== "" && { continue: next }) });
    const page = await getObject<SessionList>(target, path, { timeoutMs });
    items.push(...page.items);
    next = page.metadata.continue ?? "";
    if (next === "") return { metadata: { resourceVersion: page.metadata.resourceVersion ?? "" }, items };
  }
}

function pathOf(
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

/** Prints sessions in the chosen format. What a user typed is masked: names come from other clients. */
class SessionPrinter {
  readonly #values: SessionsValues;
  #widths: readonly number[] = [];

  constructor(values: SessionsValues) {
    this.#values = values;
  }

  print(sessions: readonly StreamingSession[], event?: string): void {
    const { output, watch: isWatch } = this.#values;
    if (output === "json") {
      for (const object of sessions) write(JSON.stringify({ type: event ?? "ADDED", object }));
    } else if (output === "name") {
      if (event !== "DELETED") for (const { metadata } of sessions) write(metadata.name);
    } else this.#printRows(sessions, isWatch ? (event ?? "ADDED") : undefined);
  }

  #printRows(sessions: readonly StreamingSession[], event: string | undefined): void {
    if (sessions.length === 0) return;
    const { printer } = STREAMING_SESSIONS;
    const { output, "all-namespaces": showsNamespace } = this.#values;
    const shown = printer.columns.map(({ isWide = false }) => !isWide || output === "wide");
    const now = new Date();
    const rows = sessions.map((session) => [
      ...(event === undefined ? [] : [event]),
      ...(showsNamespace ? [session.metadata.namespace ?? ""] : []),
      ...printer.cells(session, now).filter((_, index) => shown[index]),
    ]);
    if (this.#widths.length === 0) {
      const titles = printer.columns.filter((_, index) => shown[index]).map(({ name }) => name.toUpperCase());
      rows.unshift([
        ...(event === undefined ? [] : ["EVENT"]),
        ...(showsNamespace ? ["NAMESPACE"] : []),
        ...titles,
      ]);
      this.#widths = (rows[0] ?? []).map((_, index) =>
        Math.max(...rows.map((row) => (row[index] ?? "").length), index === 0 && event !== undefined ? 7 : 0),
      );
    }
    for (const row of rows)
      write(
        row
          .map((cell, index) => maskControls(cell).padEnd(this.#widths[index] ?? 0))
          .join("   ")
          .trimEnd(),
      );
  }
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
