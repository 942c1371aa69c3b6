import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { parseDuration } from "../config/duration.ts";
import { parseQuantity } from "../config/quantity.ts";
import {
  canEndInput,
  type LoadDirection,
  type LoadKind,
  type LoadPlan,
  type LoadProtocol,
  PROTOCOLS_OF,
  type Verification,
} from "../load/index.ts";
import { helpText } from "./flags.ts";
import { defaultCommand, type SessionPlace, sessionPath } from "./load-target.ts";
import { UsageError } from "./usage-error.ts";

const MAX_PROCESSES = 64;
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

export const LOAD_OPTIONS = {
  kubeconfig: { type: "string" },
  context: { type: "string" },
  namespace: { type: "string", short: "n", default: "default" },
  container: { type: "string", short: "c" },
  server: { type: "string" },
  "streaming-url": { type: "string" },
  speaks: { type: "string", default: "api-server" },
  token: { type: "string" },
  "token-file": { type: "string" },
  "certificate-authority": { type: "string" },
  "client-certificate": { type: "string" },
  "client-key": { type: "string" },
  "insecure-skip-tls-verify": { type: "boolean", default: false },
  protocol: { type: "string" },
  direction: { type: "string", default: "echo" },
  verify: { type: "string" },
  sessions: { type: "string", default: "1" },
  "arrival-rate": { type: "string", default: "0" },
  count: { type: "string", default: "0" },
  ramp: { type: "string", default: "0s" },
  duration: { type: "string", default: "10s" },
  messages: { type: "string", default: "0" },
  "message-size": { type: "string", default: "32Ki" },
  "message-rate": { type: "string", default: "0" },
  timeout: { type: "string", default: "30s" },
  seed: { type: "string" },
  processes: { type: "string" },
  json: { type: "string" },
  html: { type: "string" },
  generator: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
} as const;

export const LOAD_HELP: string = helpText(
  "sluice load exec|attach POD [flags] [-- COMMAND...]\n       sluice load port-forward POD PORT [flags]\n       sluice load http PATH [flags]",
  [
    ["--kubeconfig FILE, --context NAME", "the API server, as kubectl finds it"],
    ["--server URL", "instead: a server; with --token or --token-file, --certificate-authority,"],
    ["", "--client-certificate, --client-key, --insecure-skip-tls-verify"],
    ["--speaks api-server|kubelet", "whose paths --server has (api-server)"],
    ["--streaming-url URL", "instead: the URL that a container runtime gave for one session"],
    ["-n, --namespace NAME; -c, --container NAME", "of the pod (default)"],
    ["--protocol NAME", "ws-v5, ws-v4, spdy; port-forward: tunnel, spdy, legacy (the first)"],
    ["--direction echo|upload|download", "echo: what is sent comes back (echo)"],
    ["--verify echo|digest|sequence|none", "by direction: every byte (see docs/load.md)"],
    ["--sessions N", "sessions at once; with --arrival-rate: at most so many (1)"],
    ["--arrival-rate N", "new sessions per second, however the earlier ones fare; 0 keeps --sessions up (0)"],
    ["--count N", "sessions in all; 0: as many as the duration brings (0)"],
    ["--ramp DURATION", "sessions or rate grow from nothing for so long (0s)"],
    ["--duration DURATION", "no new sessions or messages after this (10s)"],
    ["--messages N", "of each session; 0: as many as the duration brings (0)"],
    ["--message-size BYTES", "(32Ki)"],
    ["--message-rate N", "per second and session; 0: as fast as they are taken (0)"],
    ["--timeout DURATION", "a session without progress for so long has failed (30s)"],
    ["--seed N", "of the bytes that are sent; a random one unless given"],
    ["--processes N", "generator processes (half of the cores)"],
    ["--json FILE, --html FILE", "write a report; `-` is stdout"],
  ],
);

export type LoadValues = {
  readonly [Name in keyof typeof LOAD_OPTIONS]?: string | boolean | undefined;
};

/** Throws UsageError. `operands` is what stands before `--`, `command` what stands behind it. */
export function planOf(
  values: LoadValues,
  operands: readonly string[],
  command: readonly string[],
): LoadPlan {
  const [kind, pod = "", portText = "", ...rest] = operands;
  if (kind !== "exec" && kind !== "attach" && kind !== "port-forward") {
    throw new UsageError(
      `${kind === undefined ? "it takes one" : `${JSON.stringify(kind)} is none`} of exec, attach, port-forward, http\n\n${LOAD_HELP}`,
    );
  }
  const streamingUrl = values["streaming-url"] as string | undefined;
  if (pod === "" && streamingUrl === undefined) throw new UsageError("POD is missing");
  if (kind === "port-forward" && portText === "") throw new UsageError("PORT is missing");
  const port = kind === "port-forward" ? count("PORT", portText, 1, 65_535) : 0;
  if (rest.length > 0 || (kind !== "port-forward" && operands.length > 2)) {
    throw new UsageError(`too many arguments: a command comes behind "--"`);
  }
  const protocol = oneOf(
    "protocol",
    values.protocol ?? PROTOCOLS_OF[kind][0],
    PROTOCOLS_OF[kind],
  ) as LoadProtocol;
  const direction = oneOf("direction", values.direction, ["echo", "upload", "download"]) as LoadDirection;
  const numbers = numbersOf(values);
  const isCommandOurs = kind === "exec" && command.length === 0 && streamingUrl === undefined;
  const verification = verificationOf(values, kind, direction, isCommandOurs, numbers.sessions);
  if (verification === "digest" && !canEndInput({ kind, protocol })) {
    throw new UsageError(`--verify digest: ${kind} over ${protocol} cannot end the remote command's input`);
  }
  const wholeBytes = numbers.messages === 0 ? undefined : numbers.messages * numbers.messageBytes;
  const place: SessionPlace = {
    ...{ kind, streamingUrl, pod, port, protocol },
    speaks: oneOf("speaks", values.speaks, ["api-server", "kubelet"]) as "api-server" | "kubelet",
    namespace: String(values.namespace),
    container: values.container as string | undefined,
    command: command.length > 0 ? command : defaultCommand(direction, wholeBytes),
    hasInput: direction !== "download",
  };
  const seed =
    values.seed === undefined ? randomBytes(4).readUInt32BE() : count("--seed", values.seed, 0, 0xffff_ffff);
  return { kind, protocol, direction, verification, path: sessionPath(place), port, ...numbers, seed };
}

function numbersOf(values: LoadValues) {
  return {
    sessions: count("--sessions", values.sessions, 1, 1_000_000),
    arrivalsPerSecond: rate("--arrival-rate", values["arrival-rate"]),
    count: count("--count", values.count, 0, Number.MAX_SAFE_INTEGER),
    rampMs: milliseconds("--ramp", values.ramp),
    durationMs: milliseconds("--duration", values.duration),
    messages: count("--messages", values.messages, 0, Number.MAX_SAFE_INTEGER),
    messageBytes: count("--message-size", values["message-size"], 1, MAX_MESSAGE_BYTES),
    messagesPerSecond: rate("--message-rate", values["message-rate"]),
    timeoutMs: milliseconds("--timeout", values.timeout),
  };
}

/** What can be judged is, unless told otherwise: a command of the caller's own, or a port, is only known to echo if it is said. */
function verificationOf(
  { verify }: LoadValues,
  kind: LoadKind,
  direction: LoadDirection,
  isCommandOurs: boolean,
  sessions: number,
): Verification {
  if (verify !== undefined) {
    const of = {
      echo: ["echo", "none"],
      upload: ["digest", "none"],
      download: ["sequence", "none"],
    } as const;
    return oneOf("verify", verify, of[direction]) as Verification;
  }
  // All who attach to a container share its output.
  if (direction === "echo") return kind === "attach" && sessions > 1 ? "none" : "echo";
  if (!isCommandOurs) return "none";
  return direction === "upload" ? "digest" : "sequence";
}

export function processesOf({ processes }: LoadValues, { sessions }: Pick<LoadPlan, "sessions">): number {
  if (processes !== undefined) return count("--processes", processes, 1, MAX_PROCESSES);
  return Math.min(sessions, Math.max(1, Math.floor(availableParallelism() / 2)));
}

export function count(flag: string, text: unknown, min: number, max: number): number {
  const value = parsed(flag, text, parseQuantity);
  if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new UsageError(`${flag} ${text}: must be a whole number between ${min} and ${max}`);
}

export function rate(flag: string, text: unknown): number {
  const value = Number(text);
  if (text !== "" && Number.isFinite(value) && value >= 0) return value;
  throw new UsageError(`${flag} ${text}: must be a number per second`);
}

export function milliseconds(flag: string, text: unknown): number {
  const value = parsed(flag, text, parseDuration);
  if (value >= 0) return value;
  throw new UsageError(`${flag} ${text}: must not be negative`);
}

function parsed(flag: string, text: unknown, parse: (text: string) => number): number {
  try {
    return parse(String(text));
  } catch (error) {
    throw new UsageError(`${flag} ${text}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function oneOf(flag: string, value: unknown, allowed: readonly string[]): string {
  if (typeof value === "string" && allowed.includes(value)) return value;
  throw new UsageError(`--${flag} ${value}: must be ${allowed.join(" or ")}`);
}
