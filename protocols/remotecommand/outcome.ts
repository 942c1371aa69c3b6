import { type RemoteCommandVersion, specOf } from "./versions.ts";

/**
 * How a session ended, according to its error stream. `missing`: the error stream is empty,
 * although the version requires a Status.
 */
export type Outcome =
  | { readonly type: "success" }
  | { readonly type: "exit"; readonly code: number; readonly message: string }
  | { readonly type: "failure"; readonly message: string; readonly status?: CommandStatus }
  | { readonly type: "missing" };

/**
 * Interprets all bytes of the error stream like client-go, but returns `missing` where client-go
 * reports success.
 */
export function outcomeOf(version: RemoteCommandVersion, errorStreamBytes: Uint8Array): Outcome {
  return specOf(version).hasStatusJson ? outcomeOfStatus(errorStreamBytes) : outcomeOfText(errorStreamBytes);
}

/**
 * Versions before v4 send text, and none at success; containerd's message for an exit code ends in
 * the code.
 */
function outcomeOfText(bytes: Uint8Array): Outcome {
  if (bytes.length === 0) return { type: "success" };
  const message = new TextDecoder().decode(bytes);
  const code = message.startsWith(NON_ZERO_EXIT_CODE_PREFIX) && /exit code (\d+)\s*$/.exec(message)?.[1];
  const exitCode = code ? parseExitCode(code) : undefined;
  return exitCode === undefined ? { type: "failure", message } : { type: "exit", code: exitCode, message };
}

function outcomeOfStatus(bytes: Uint8Array): Outcome {
  if (bytes.length === 0) return { type: "missing" };
  const status = decodeStatus(bytes);
  if (status === undefined)
    return protocolFailure(`not a Status: ${new TextDecoder().decode(bytes.subarray(0, 200))}`);
  if (status.status === "Success") return { type: "success" };
  if (status.status !== "Failure") return protocolFailure("unknown error", status);
  if (status.reason !== "NonZeroExitCode") return { type: "failure", message: status.message ?? "", status };
  return exitOf(status);
}

function exitOf(status: CommandStatus): Outcome {
  if (status.details === undefined) return protocolFailure("details must be set", status);
  const cause = status.details.causes?.find(({ reason }) => reason === "ExitCode");
  if (cause === undefined) return protocolFailure("no ExitCode cause given", status);
  const code = parseExitCode(cause.message ?? "");
  if (code === undefined) {
    return protocolFailure(`invalid exit code value ${JSON.stringify(cause.message ?? "")}`, status);
  }
  return { type: "exit", code, message: status.message ?? "" };
}

/** Parses like Go's ParseUint(text, 10, 8). */
function parseExitCode(text: string): number | undefined {
  if (!/^\d+$/.test(text)) return undefined;
  const code = Number(text);
  return code <= 0xff ? code : undefined;
}

function protocolFailure(problem: string, status?: CommandStatus): Outcome {
  const message = `error stream protocol error: ${problem}`;
  return status === undefined ? { type: "failure", message } : { type: "failure", message, status };
}

/**
 * Encodes a session's final JSON Status for a version: unchanged from v4 on, and before v4 its
 * message, empty for success. A failure is never empty.
 */
export function statusPayload(version: RemoteCommandVersion, status: Uint8Array): Uint8Array {
  if (specOf(version).hasStatusJson) return status;
  const decoded = decodeStatus(status);
  if (decoded?.status === "Success") return new Uint8Array(0);
  return new TextEncoder().encode(decoded?.message || decoded?.reason || "the command failed");
}

/** The part of metav1.Status that runtimes send at the end of a session. */
export interface CommandStatus {
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly status: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: {
    readonly name?: string;
    readonly kind?: string;
    readonly causes?: readonly StatusCause[];
  };
  readonly code?: number;
}

/** Go calls this field Type; on the wire it is `reason`. */
export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
}

const NON_ZERO_EXIT_CODE_PREFIX = "command terminated with non-zero exit code: ";

export function successStatus(): CommandStatus {
  return { metadata: {}, status: "Success" };
}

/** `cause` is the runtime's message, e.g. `error executing command [sh -c x], exit code 7`. */
export function exitCodeStatus(code: number, cause: string): CommandStatus {
  return {
    metadata: {},
    status: "Failure",
    message: NON_ZERO_EXIT_CODE_PREFIX + cause,
    reason: "NonZeroExitCode",
    details: { causes: [{ reason: "ExitCode", message: String(code) }] },
  };
}

export function internalErrorStatus(message: string): CommandStatus {
  return {
    metadata: {},
    status: "Failure",
    message: `Internal error occurred: ${message}`,
    reason: "InternalError",
    details: { causes: [{ message }] },
    code: 500,
  };
}

const goEscapes: Readonly<Record<string, string>> = {
  "<": "\\u003c",
  ">": "\\u003e",
  "&": "\\u0026",
  "\u2028": "\\u2028",
  "\u2029": "\\u2029",
};

/** Encodes like Go: keys in Status' order, HTML characters escaped, no newline at the end. */
export function encodeStatus(status: CommandStatus): Uint8Array {
  const { metadata, message, reason, details, code } = status;
  const json = JSON.stringify({ metadata, status: status.status, message, reason, details, code });
  return new TextEncoder().encode(
    json.replace(/[<>&\u2028\u2029]/g, (character) => goEscapes[character] ?? character),
  );
}

/** Decodes a Status; undefined if the bytes are not one. Fields of a wrong type count as absent. */
export function decodeStatus(bytes: Uint8Array): CommandStatus | undefined {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return undefined;
  }
  if (!isRecord(value) || typeof value.status !== "string") return undefined;
  return {
    status: value.status,
    ...(isRecord(value.metadata) && { metadata: value.metadata }),
    ...(typeof value.message === "string" && { message: value.message }),
    ...(typeof value.reason === "string" && { reason: value.reason }),
    ...(isRecord(value.details) && { details: causesOf(value.details) }),
    ...(typeof value.code === "number" && { code: value.code }),
  };
}

function causesOf(details: Record<string, unknown>): { causes?: StatusCause[] } {
  if (!Array.isArray(details.causes)) return {};
  const causes = details.causes.filter(isRecord).map((cause) => ({
    ...(typeof cause.reason === "string" && { reason: cause.reason }),
    ...(typeof cause.message === "string" && { message: cause.message }),
  }));
  return { causes };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
