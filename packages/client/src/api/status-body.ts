import { goJson } from "./go-json.ts";

/** metav1.Status, the Kubernetes API's one form for errors. */
export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly status: "Failure" | "Success";
  readonly message?: string;
  /** Absent in errors that the API server passes on, such as a failed dial. */
  readonly reason?: string;
  readonly details?: StatusDetails;
  /** HTTP status code. */
  readonly code: number;
}

interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  /** The resource (`pods`) for most reasons, the kind (`Pod`) for Invalid. */
  readonly kind?: string;
  readonly causes?: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

export interface StatusCause {
  readonly reason?: string;
  readonly message?: string;
  readonly field?: string;
}

const ELLIPSIS = "...";
/** A shorter message explains nothing, so details are dropped first. */
const WORTHWHILE_MESSAGE_BYTES = 256;
/** The maximum of Kubernetes' type for `code` and `retryAfterSeconds`. */
const MAX_INT32 = 2 ** 31 - 1;

/**
 * Encodes a Status byte for byte as the API server does. To fit `maxBytes` it drops causes, then
 * cuts the message, then drops all details: gorilla keeps 1,024 bytes of a refused upgrade.
 */
export function statusBody(status: Status, maxBytes = Number.POSITIVE_INFINITY): Uint8Array {
  const whole = encode(status);
  if (whole.byteLength < maxBytes) return whole;
  const { details, ...bare } = status;
  const slim = details ? { ...bare, details: withoutCauses(details) } : bare;
  const slimRoomBytes = maxBytes - encode({ ...slim, message: "" }).byteLength;
  return encode(fitted(slimRoomBytes < WORTHWHILE_MESSAGE_BYTES ? bare : slim, maxBytes));
}

/** Keeps caches and proxies from storing responses, which depend on the user. */
export const NEVER_CACHED = { "Cache-Control": "no-cache, private" } as const;

/** kube-apiserver's headers beside a Status: a 401 names no scheme, and a 403 forbids sniffing. */
export function statusHeaders({ code, details }: Status): Record<string, string> {
  const retryAfter = details?.retryAfterSeconds;
  return {
    ...NEVER_CACHED,
    "Content-Type": "application/json",
    ...(code === 403 && { "X-Content-Type-Options": "nosniff" }),
    ...(retryAfter !== undefined && { "Retry-After": String(retryAfter) }),
  };
}

/**
 * The Status in an answer's body; undefined if there is none, because something else than the API
 * answered.
 */
export function statusOfBody(body: Uint8Array | string): Status | undefined {
  let value: unknown;
  try {
    value = JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body));
  } catch {
    return undefined;
  }
  if (!isRecord(value) || value.kind !== "Status" || value.apiVersion !== "v1") return undefined;
  const { metadata, status, message, reason, details, code } = value;
  if (status !== "Failure" && status !== "Success") return undefined;
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: isRecord(metadata) ? textsOf(metadata) : {},
    status,
    ...(typeof message === "string" && { message }),
    ...(typeof reason === "string" && { reason }),
    ...(isRecord(details) && { details: detailsOf(details) }),
    // The code becomes an answer's status, so an invalid one counts as absent.
    code: isInteger(code, 100, 599) ? code : 0,
  };
}

/** Writes keys in the order of Go's struct, whatever their order in the value. */
function encode({ kind, apiVersion, metadata, status, message, reason, details, code }: Status): Uint8Array {
  const ordered = details && orderedDetails(details);
  // Go omits an empty message and an empty reason.
  const text = goJson({
    kind,
    apiVersion,
    metadata,
    status,
    message: message || undefined,
    reason: reason || undefined,
    details: ordered,
    code,
  });
  return new TextEncoder().encode(`${text}\n`);
}

function orderedDetails({ name, group, kind, causes, retryAfterSeconds }: StatusDetails): StatusDetails {
  const orderedCauses = causes?.map(({ reason, message, field }) => ({ reason, message, field }));
  return { name, group, kind, causes: orderedCauses, retryAfterSeconds } as StatusDetails;
}

/** Finds the longest fitting start of the message by bisection, because escapes vary in length. */
function fitted(status: Status, maxBytes: number): Status {
  const characters = Array.from(status.message ?? "");
  const cutTo = (length: number): Status =>
    length === characters.length
      ? status
      : { ...status, message: characters.slice(0, length).join("") + ELLIPSIS };
  let [fits, tooLong] = [0, characters.length + 1];
  while (tooLong - fits > 1) {
    const middle = Math.floor((fits + tooLong) / 2);
    if (encode(cutTo(middle)).byteLength < maxBytes) fits = middle;
    else tooLong = middle;
  }
  return cutTo(fits);
}

function withoutCauses({ causes, ...rest }: StatusDetails): StatusDetails {
  return rest;
}

function detailsOf(value: Record<string, unknown>): StatusDetails {
  const { name, group, kind, causes, retryAfterSeconds } = value;
  return {
    ...(typeof name === "string" && { name }),
    ...(typeof group === "string" && { group }),
    ...(typeof kind === "string" && { kind }),
    ...(Array.isArray(causes) && { causes: causes.filter(isRecord).map(causeOf) }),
    ...(isInteger(retryAfterSeconds, 0, MAX_INT32) && { retryAfterSeconds }),
  };
}

function causeOf({ reason, message, field }: Record<string, unknown>): StatusCause {
  return {
    ...(typeof reason === "string" && { reason }),
    ...(typeof message === "string" && { message }),
    ...(typeof field === "string" && { field }),
  };
}

/** ListMeta has only strings; a nested value could be too deep to be written again. */
function textsOf(value: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === "string"));
}

function isInteger(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= least && value <= most;
}

/** A map of JSON or YAML. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
