import { randomBytes } from "node:crypto";
import { canEndInput, type LoadPart, type LoadPlan } from "@sluice/lab/load/load-plan";
import { LineSequence } from "@sluice/lab/load/seeded-stream";
import { UsageError } from "../command.ts";
import type { LoadValues } from "../commands/load.ts";
import { remotePort } from "../flag-readers.ts";
import { type SessionPlace, sessionPath } from "./load-target.ts";

const PROTOCOLS_OF: Readonly<Record<LoadPlan["kind"], readonly LoadPlan["protocol"][]>> = {
  exec: ["ws-v5", "ws-v4", "spdy"],
  attach: ["ws-v5", "ws-v4", "spdy"],
  "port-forward": ["tunnel", "spdy", "legacy"],
};

/** Throws UsageError. `operands` come before `--`, `command` after it; the server may be on loopback. */
export function planOf(
  values: LoadValues,
  operands: readonly string[],
  command: readonly string[],
  isOnLoopback = false,
): LoadPlan {
  const [kind, pod = "", portText = "", ...rest] = operands;
  if (kind !== "exec" && kind !== "attach" && kind !== "port-forward") {
    throw new UsageError(
      kind === undefined
        ? "exec, attach, port-forward, http, merge or job is required"
        : `${JSON.stringify(kind)}: must be exec, attach, port-forward, http, merge or job`,
    );
  }
  const streamingUrl = values["streaming-url"];
  if (pod === "" && streamingUrl === undefined) throw new UsageError("POD is missing");
  if (kind === "port-forward" && portText === "") throw new UsageError("PORT is missing");
  const port = kind === "port-forward" ? portOf(portText) : 0;
  if (rest.length > 0 || (kind !== "port-forward" && operands.length > 2)) {
    throw new UsageError(`too many arguments: a command comes after "--"`);
  }
  const protocol = oneOf(
    "protocol",
    values.protocol ?? PROTOCOLS_OF[kind][0],
    PROTOCOLS_OF[kind],
  ) as LoadPlan["protocol"];
  const { direction } = values;
  if (direction !== "echo" && values["in-flight"] !== undefined)
    throw new UsageError(`--in-flight ${values["in-flight"]}: only messages of --direction echo come back`);
  const numbers = numbersOf(values);
  const isCommandOurs = kind === "exec" && command.length === 0 && streamingUrl === undefined;
  const verification = verificationOf(values, kind, direction, isCommandOurs, numbers.sessions);
  if (verification === "digest" && !canEndInput({ kind, protocol })) {
    throw new UsageError(`--verify digest: ${kind} over ${protocol} cannot end the remote command's input`);
  }
  const wholeBytes = numbers.messages === 0 ? undefined : numbers.messages * numbers.messageBytes;
  const place: SessionPlace = {
    ...{ kind, streamingUrl, pod, port, protocol },
    speaks: values.speaks,
    namespace: values.namespace,
    container: values.container,
    command: command.length > 0 ? command : defaultCommand(direction, wholeBytes),
    hasInput: direction !== "download",
  };
  const seed = values.seed ?? randomBytes(4).readUInt32BE();
  const messagesInFlight = inFlightOf(values, isOnLoopback);
  return {
    ...{ kind, protocol, direction, verification, path: sessionPath(place), port },
    ...numbers,
    messagesInFlight,
    seed,
  };
}

/** Without a network in between, full buffers would only measure the generator's own queue. */
function inFlightOf(values: LoadValues, isOnLoopback: boolean): number {
  const isClosed = isOnLoopback && values.direction === "echo" && values["message-rate"] === 0;
  return values["in-flight"] ?? (isClosed ? 1 : 0);
}

function numbersOf(values: LoadValues) {
  return {
    sessions: values.sessions,
    arrivalsPerSecond: values["arrival-rate"],
    count: values.count,
    rampMs: values.ramp,
    durationMs: values.duration,
    messages: values.messages,
    messageBytes: values["message-size"],
    messagesPerSecond: values["message-rate"],
    timeoutMs: values.timeout,
  };
}

/**
 * Verifies as much of the output as possible, unless --verify is given. The user's own command is
 * only expected to echo.
 */
function verificationOf(
  { verify }: LoadValues,
  kind: LoadPlan["kind"],
  direction: LoadPlan["direction"],
  isCommandOurs: boolean,
  sessions: number,
): LoadPlan["verification"] {
  if (verify !== undefined) {
    const of = {
      echo: ["echo", "none"],
      upload: ["digest", "none"],
      download: ["sequence", "none"],
    } as const;
    return oneOf("verify", verify, of[direction]) as LoadPlan["verification"];
  }
  // All sessions attached to a container share its output.
  if (direction === "echo") return kind === "attach" && sessions > 1 ? "none" : "echo";
  if (!isCommandOurs) return "none";
  return direction === "upload" ? "digest" : "sequence";
}

/** A part without a session would wait until the end and report nothing. Throws UsageError. */
export function partOf(values: LoadValues, { sessions, count }: LoadPlan, processes: number): LoadPart {
  const part = values.part ?? { index: 0, of: 1 };
  const shares = part.of * processes;
  if (part.of === 1 || (sessions >= shares && (count === 0 || count >= shares))) return part;
  const few = sessions < shares ? "sessions" : "count";
  throw new UsageError(`--${few} must be ${shares} or more for ${part.of} parts of ${processes} processes`);
}

function portOf(text: string): number {
  try {
    return remotePort(text);
  } catch (error) {
    throw new UsageError(`PORT ${text}: ${(error as Error).message}`);
  }
}

function oneOf(flag: string, value: unknown, allowed: readonly string[]): string {
  if (typeof value === "string" && allowed.includes(value)) return value;
  throw new UsageError(`--${flag} ${value}: must be ${allowed.join(", ").replace(/, ([^,]*)$/, " or $1")}`);
}

/** The remote command whose output the generator can judge. */
function defaultCommand(direction: LoadPlan["direction"], byteLength: number | undefined): string[] {
  if (direction === "echo") return ["cat"];
  return direction === "upload" ? ["sha256sum"] : LineSequence.command(byteLength);
}
