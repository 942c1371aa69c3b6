import { setTimeout as delay } from "node:timers/promises";
import { suggestion } from "@sluice/client/internal/config/nearest-name";
import { deleteObject, getBody } from "@sluice/client/internal/get-object";
import { ConnectError } from "@sluice/client/internal/http/upstream/connect-error";
import { linesUpTo } from "@sluice/client/internal/net/lines-up-to";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { isDeeperThan, MAX_OBJECT_DEPTH } from "../../api/is-deeper-than.ts";
import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { STREAMING_SESSIONS, type StreamingSession } from "../../session-api/streaming-session.ts";
import { type Invocation, UsageError } from "../command.ts";
import type { command } from "../commands/sessions.ts";
import { refuseIgnored } from "../flag-readers.ts";
import { printYaml } from "../print-text.ts";
import { object } from "./answer-shape.ts";
import { type ClientConnection, openConnection } from "./connection.ts";
import { joinSession } from "./join-session.ts";
import { reportError } from "./report-error.ts";
import {
  allPages,
  collectionPath,
  GROUP_VERSION,
  type SessionList,
  type SessionsValues,
  sessionPath,
  sessionShape,
} from "./session-requests.ts";
import { viewSession } from "./view-session.ts";

interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: StreamingSession;
}

/** Connections in a row that `sessions list --watch` may lose. Past it the command fails. */
const MAX_LOST_WATCHES = 5;
/** The pause before it lists again. */
const AGAIN_MS = 1_000;

/** Bytes in one line of a watch. Past it the watch begins again. */
const MAX_WATCH_LINE_BYTES = 1024 * 1024;

/** `sluice sessions list|watch|join|end`. */
export async function run(invocation: Invocation<typeof command.flags>): Promise<number> {
  const { values, operands } = invocation;
  const [action, ...given] = operands;
  const names = given.map(sessionName);
  if (action === undefined) throw new UsageError("list, watch, join or end must be specified");
  if (action !== "list" && action !== "watch" && action !== "join" && action !== "end")
    throw new UsageError(`unknown action ${JSON.stringify(action)}${suggestion(action, Object.keys(ABOUT))}`);
  if (action === "list" && names.length > 0) throw new UsageError("list takes no name");
  if (action === "end" && names.length === 0) throw new UsageError("end needs the name of a session");
  if ((action === "watch" || action === "join") && names.length !== 1)
    throw new UsageError(`${action} needs the name of one session`);
  refuseIgnored(values, ABOUT[action], ignoredBy(action, values));
  const connection = await openConnection(values);
  try {
    if (action === "list") return await list(connection, values);
    if (action === "watch") return await viewSession(connection, names[0] ?? "", values);
    if (action === "join") return await joinSession(connection, names[0] ?? "", values);
    return await endAll(connection, names, values);
  } catch (error) {
    return reportError(error);
  }
}

/** As kubectl prints names, and without the resource. Throws UsageError for other resources. */
function sessionName(given: string): string {
  const name = given.replace(/^(?:streamingsessions?(?:\.sluice\.dev)?|sess)\//, "");
  if (name.includes("/")) throw new UsageError(`${given} is not a session's name`);
  return name;
}

const ABOUT = {
  list: "a list",
  watch: "one session's output",
  join: "a join",
  end: "a session's end",
} as const;

function ignoredBy(
  action: keyof typeof ABOUT,
  { output }: SessionsValues,
): readonly (keyof SessionsValues)[] {
  if (action === "list") return ["reason"];
  const ofLists = ["selector", "field-selector", "watch"] as const;
  if (action === "end") return [...ofLists, ...(output === "table" ? [] : (["output"] as const))];
  if (action === "join") return [...ofLists, "reason", ...(output === "table" ? [] : (["output"] as const))];
  return [...ofLists, "reason", ...(output === "table" || output === "json" ? [] : (["output"] as const))];
}

async function list(connection: ClientConnection, values: SessionsValues): Promise<number> {
  const first = await allPages(connection, values);
  const { output } = values;
  if ((output === "json" || output === "yaml") && !values.watch) {
    const whole = { apiVersion: GROUP_VERSION, kind: "StreamingSessionList", ...first };
    if (output === "yaml") await printYaml(whole);
    else process.stdout.write(`${quietJson(whole, 4)}\n`);
    return 0;
  }
  const printer = new SessionPrinter(values);
  if (first.items.length === 0 && !values.watch) {
    const where = values["all-namespaces"] ? "" : ` in ${maskControls(connection.namespace)} namespace`;
    process.stderr.write(`No sessions found${where}.\n`);
    return 0;
  }
  await printer.print(first.items);
  if (values.watch) await watch(connection, values, first, printer);
  return 0;
}

/**
 * Prints changes until the process ends. If a watch ends, or its version is too old, it begins
 * again with a list.
 */
async function watch(
  connection: ClientConnection,
  values: SessionsValues,
  { items = [], metadata }: SessionList,
  printer: SessionPrinter,
): Promise<never> {
  const known = new Map(items.map((session) => [session.metadata.name, session]));
  let version = metadata.resourceVersion ?? "";
  const isFull = values.output === "json" || values.output === "yaml";
  const changed = async (type: WatchEvent["type"], session: StreamingSession): Promise<void> => {
    if (type === "DELETED") known.delete(session.metadata.name);
    else known.set(session.metadata.name, session);
    // People want to see beginnings and ends; programs get the counters, too.
    if (type !== "MODIFIED" || isFull) await printer.print([session], type);
  };
  for (let lost = 0; ; await delay(AGAIN_MS)) {
    try {
      for await (const { type, object } of eventsOf(connection, values, version)) await changed(type, object);
    } catch (error) {
      if (!isLost(error)) throw error;
    }
    try {
      const now = await allPages(connection, values);
      const running = new Set(now.items.map((session) => session.metadata.name));
      for (const [name, session] of known) if (!running.has(name)) await changed("DELETED", session);
      for (const session of now.items) if (!known.has(session.metadata.name)) await changed("ADDED", session);
      version = now.metadata.resourceVersion ?? "";
      lost = 0;
    } catch (error) {
      lost += 1;
      if (!isLost(error) || lost > MAX_LOST_WATCHES) throw error;
    }
  }
}

/** Returns when the watch ends, or reports that its version is too old. */
async function* eventsOf(
  connection: ClientConnection,
  values: SessionsValues,
  resourceVersion: string,
): AsyncGenerator<WatchEvent, void> {
  const { signal } = new AbortController();
  const path = collectionPath(connection, values, { watch: "true", resourceVersion });
  const body = await getBody(connection.target, path, { signal, timeoutMs: connection.requestTimeoutMs });
  const refuse = (problem: string): Error => new UpstreamError("malformed-response", `a line ${problem}`);
  for await (const line of linesUpTo(body, MAX_WATCH_LINE_BYTES, refuse)) {
    const event = eventIn(line);
    if (event === undefined) return;
    yield event;
  }
}

const EVENTS: ReadonlySet<unknown> = new Set(["ADDED", "MODIFIED", "DELETED"]);
const isEvent = object({ type: (type) => EVENTS.has(type), object: sessionShape });

/** Undefined for any other line. */
function eventIn(line: Buffer): WatchEvent | undefined {
  try {
    const event: unknown = JSON.parse(line.toString("utf8"));
    return isEvent(event) && !isDeeperThan(event, MAX_OBJECT_DEPTH) ? (event as WatchEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** False for an answer of the server, except that a version is too old. */
function isLost(error: unknown): boolean {
  return error instanceof ConnectError
    ? error.leg !== "http" || error.apiStatus?.code === 410
    : error instanceof UpstreamError;
}

/** Ends the others if one cannot be ended, as kubectl deletes them. */
async function endAll(
  connection: ClientConnection,
  names: readonly string[],
  values: SessionsValues,
): Promise<number> {
  let code = 0;
  for (const name of names) {
    await end(connection, name, values).catch((error: unknown) => {
      code = reportError(error);
    });
  }
  return code;
}

async function end(connection: ClientConnection, name: string, values: SessionsValues): Promise<void> {
  const query = values.reason ? `?${new URLSearchParams({ reason: values.reason })}` : "";
  const path = `${await sessionPath(connection, name, values)}${query}`;
  const status = await deleteObject(connection.target, path, { timeoutMs: connection.requestTimeoutMs });
  process.stdout.write(`session ${maskControls(name)} ${status === 202 ? "is ending" : "ended"}\n`);
}

/**
 * Prints sessions in the chosen format. Masks control characters, because names come from other
 * clients.
 */
class SessionPrinter {
  readonly #values: SessionsValues;
  #widths: readonly number[] = [];

  constructor(values: SessionsValues) {
    this.#values = values;
  }

  async print(sessions: readonly StreamingSession[], event?: string): Promise<void> {
    const { output, watch: isWatch } = this.#values;
    if (output === "json") {
      for (const object of sessions) write(quietJson({ type: event ?? "ADDED", object }));
    } else if (output === "yaml") {
      for (const object of sessions) {
        write("---");
        await printYaml({ type: event ?? "ADDED", object });
      }
    } else if (output === "name") {
      if (event !== "DELETED") for (const { metadata } of sessions) write(maskControls(metadata.name));
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
          .map((cell, index) => maskControls(String(cell ?? "")).padEnd(this.#widths[index] ?? 0))
          .join("   ")
          .trimEnd(),
      );
  }
}

function write(line: string): void {
  process.stdout.write(`${line}\n`);
}
