import { getBody } from "@sluice/client/internal/get-object";
import { linesUpTo } from "@sluice/client/internal/net/lines-up-to";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { isDeeperThan, MAX_OBJECT_DEPTH } from "../../api/is-deeper-than.ts";
import { maskControls, quietJson } from "../../observability/mask-controls.ts";
import { TerminalFilter } from "../../recording/format/terminal-filter.ts";
import { SESSION_OVER } from "../../session-api/output-stream.ts";
import { lendTerminal, writeOut } from "../print-text.ts";
import { number, object, text } from "./answer-shape.ts";
import type { ClientConnection } from "./connection.ts";
import { type SessionsValues, sessionPath } from "./session-requests.ts";
import { takeKeys } from "./terminal.ts";

/**
 * Bytes in a line of the view: an event has one piece of output, of 64 KiB or more. Past it the
 * view fails.
 */
const MAX_VIEW_LINE_BYTES = 8 * 1024 * 1024;

/**
 * Prints a session's output until it ends. Exit codes: 0, 1 if the view is cut short, 130 after
 * SIGINT.
 */
export async function viewSession(
  connection: ClientConnection,
  name: string,
  values: SessionsValues,
): Promise<number> {
  const { target, requestTimeoutMs: timeoutMs } = connection;
  const path = `${await sessionPath(connection, name, values)}/output`;
  const interrupt = new AbortController();
  const onInterrupt = (): void => interrupt.abort();
  process.once("SIGINT", onInterrupt);
  const isJson = values.output === "json";
  const filter = new TerminalFilter();
  let takeBack: (() => void) | undefined;
  let giveBackKeys: (() => void) | undefined;
  let message: string | undefined;
  try {
    const body = await getBody(target, path, { signal: interrupt.signal, timeoutMs });
    for await (const line of linesUpTo(body, MAX_VIEW_LINE_BYTES, malformed)) {
      const value = parsed(line);
      if (isJson) await writeOut(`${quietJson(value)}\n`, interrupt.signal);
      if (!Array.isArray(value)) continue;
      const [, code, data] = value as [number, string, string];
      if (code === "o" && !isJson) {
        // Terminal modes that the session sets stay with its owner.
        takeBack ??= lendTerminal(TerminalFilter.RESET);
        giveBackKeys ??= takeKeys();
        // A viewer that cannot keep up gets a fresh screen from the server, not all that it missed.
        await writeOut(filter.push(data), interrupt.signal);
      }
      if (code !== "m") continue;
      message = data;
      if (data === SESSION_OVER) break;
      process.stderr.write(`sluice: ${maskControls(data)}\n`);
    }
  } catch (error) {
    if (interrupt.signal.aborted) return 130;
    throw error;
  } finally {
    process.off("SIGINT", onInterrupt);
    giveBackKeys?.();
    takeBack?.();
  }
  if (message !== SESSION_OVER) {
    process.stderr.write("error: the view ended before its session\n");
    return 1;
  }
  process.stderr.write(`session ${maskControls(name)} is over\n`);
  return 0;
}

/** Reads a header or an event. Throws UpstreamError for any other line. */
function parsed(line: Buffer): unknown {
  let value: unknown;
  try {
    value = JSON.parse(line.toString("utf8"));
  } catch {
    throw malformed("is not JSON");
  }
  if (!isHeader(value) && !isEvent(value)) throw malformed("is not an event");
  if (isDeeperThan(value, MAX_OBJECT_DEPTH))
    throw malformed(`is nested deeper than ${MAX_OBJECT_DEPTH} levels`);
  return value;
}

const isHeader = object({});
const isEvent = (value: unknown): boolean =>
  Array.isArray(value) && number(value[0]) && text(value[1]) && text(value[2]);

function malformed(problem: string): UpstreamError {
  return new UpstreamError("malformed-response", `a line of the server's answer ${problem}`);
}
