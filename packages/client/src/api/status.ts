// packages/client/api: Status as the API server writes it, options of logs

import { goQuote } from "./go-json.ts";
import type { Status, StatusCause } from "./status-body.ts";

/**
 * A refusal that is answered with its Status. The client sees its message, which must hold no
 * secret.
 */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;

  constructor(status: Status) {
    super(status.message ?? "");
    this.status = status;
  }

  get code(): number {
    return this.status.code;
  }
}

/** 404 `pods "web" not found`. */
export function notFound(resource: string, name: string): StatusError {
  return failure(404, "NotFound", `${resource} ${goQuote(name)} not found`, { name, kind: resource });
}

/** 404 for an unknown path or resource. */
export function unknownPath(): StatusError {
  return failure(404, "NotFound", "the server could not find the requested resource", {});
}

export function badRequest(message: string): StatusError {
  return failure(400, "BadRequest", message);
}

/**
 * 403 `pods "web" is forbidden: <reason>`. With an empty reason the message ends in a blank, as in
 * Kubernetes.
 */
export function forbidden(resource: string, name: string, reason: string): StatusError {
  const subject = [resource, name === "" ? "" : goQuote(name)].filter((part) => part !== "").join(" ");
  const message = subject === "" ? `forbidden: ${reason}` : `${subject} is forbidden: ${reason}`;
  const details = { ...(name !== "" && { name }), ...(resource !== "" && { kind: resource }) };
  return failure(403, "Forbidden", message, details);
}

export function unauthorized(): StatusError {
  return failure(401, "Unauthorized", "Unauthorized");
}

/** 405 with client-go's sentence and the attempted operation in brackets: `(post pods web)`. */
export function methodNotAllowed(method: string, resource = "", name = ""): StatusError {
  const tried = [method.toLowerCase(), resource, name].filter((part) => part !== "").join(" ");
  const sentence = "the server does not allow this method on the requested resource";
  return failure(405, "MethodNotAllowed", resource === "" ? sentence : `${sentence} (${tried})`, {
    ...(name !== "" && { name }),
    ...(resource !== "" && { kind: resource }),
  });
}

export function notAcceptable(acceptedMediaTypes: readonly string[]): StatusError {
  const types = acceptedMediaTypes.join(", ");
  return failure(406, "NotAcceptable", `only the following media types are accepted: ${types}`);
}

/** 413 for a body above its limit. */
export function requestEntityTooLarge(maxBytes: number): StatusError {
  return failure(413, "RequestEntityTooLarge", `Request entity too large: limit is ${maxBytes}`);
}

export function unsupportedMediaType(acceptedMediaTypes: readonly string[]): StatusError {
  const types = acceptedMediaTypes.join(", ");
  const sentence = "the body of the request was in an unknown format - accepted media types include";
  return failure(415, "UnsupportedMediaType", `${sentence}: ${types}`);
}

/** 410 for a watch or list that starts at a forgotten version. */
export function resourceExpired(message: string): StatusError {
  return failure(410, "Expired", message);
}

/** 422 `Pod "web" is invalid: <errors>`. */
export function invalid(
  kind: string,
  name: string,
  errors: string,
  causes: readonly StatusCause[],
  group = "",
): StatusError {
  const subject = group === "" ? kind : `${kind}.${group}`;
  const details = { name, ...(group !== "" && { group }), kind, causes };
  return failure(422, "Invalid", `${subject} ${goQuote(name)} is invalid: ${errors}`, details);
}

/** 429; the answer's `Retry-After` must have the same number of seconds. */
export function tooManyRequests(message: string, retryAfterSeconds: number): StatusError {
  return failure(429, "TooManyRequests", message, { retryAfterSeconds });
}

/** 500 `Internal error occurred: <message>`. */
export function internalError(message: string): StatusError {
  return failure(500, "InternalError", `Internal error occurred: ${message}`, { causes: [{ message }] });
}

/**
 * 503, with the time until the next try if it is known; the answer's `Retry-After` must have the
 * same number of seconds.
 */
export function serviceUnavailable(message: string, retryAfterSeconds?: number): StatusError {
  const details = retryAfterSeconds === undefined ? undefined : { retryAfterSeconds };
  return failure(503, "ServiceUnavailable", message, details);
}

/**
 * The API server's form for an error that is not an API status (a failed dial, an EOF): the text
 * without a reason.
 */
export function genericError(code: number, message: string): StatusError {
  return new StatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    code,
  });
}

function failure(code: number, reason: string, message: string, details?: Status["details"]): StatusError {
  return new StatusError({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason,
    ...(details && { details }),
    code,
  });
}
