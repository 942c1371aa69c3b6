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

export const NON_ZERO_EXIT_CODE_PREFIX = "command terminated with non-zero exit code: ";

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
