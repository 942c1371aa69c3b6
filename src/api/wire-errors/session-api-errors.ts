import { goQuote } from "@sluice/client/internal/api/go-json";
import {
  badRequest,
  methodNotAllowed,
  notFound,
  resourceExpired,
  StatusError,
  serviceUnavailable,
  tooManyRequests,
} from "@sluice/client/internal/api/status";
import type { Status } from "@sluice/client/internal/api/status-body";

type Named = {
  /** `streamingsessions.sluice.dev`. */
  readonly resource: string;
  readonly name: string;
};

/** The API group of sessions, in kube-apiserver's words if it has any. */
export const SESSION_API_ERRORS = {
  "object-unknown": {
    cause: "A session that does not run, read or ended by its name",
    streaming: ({ resource, name }: Named) => notFound(resource, name),
  },
  "verb-not-allowed": {
    cause: "A method that sessions do not know",
    streaming: ({ method, resource, name }: Named & { readonly method: string }) =>
      methodNotAllowed(method, resource, name),
  },
  "continue-invalid": {
    cause: "A `continue` parameter that Sluice did not give out",
    streaming: () => badRequest("continue key is not valid: it was not given out by this server"),
  },
  "continue-expired": {
    cause: "A `continue` parameter of a list of sessions that began too long ago",
    streaming: () =>
      resourceExpired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
      ),
  },
  "delete-options": {
    cause: "A body of a delete that is not a DeleteOptions, or asks for what sessions do not have",
    streaming: ({ problem }: { readonly problem: string }) => badRequest(problem),
  },
  "uid-conflict": {
    cause: "A delete of a session with another uid",
    streaming: ({ resource, name, uid }: Named & { readonly uid: string }) =>
      conflict(
        { resource, name },
        `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${name}`,
      ),
  },
  "too-many-viewers": {
    cause: "A viewer of a session that has as many as it may, or of one session too many",
    streaming: ({ name }: Pick<Named, "name">) =>
      tooManyRequests(`session ${name} has too many viewers, or too many sessions are viewed`, 5),
  },
  "session-undecoded": {
    cause: "A viewer of a port-forward, or of a session through a proxy subresource",
    streaming: ({ name }: Pick<Named, "name">) => badRequest(`session ${name} has no output to view`),
  },
  "session-without-input": {
    cause: "A joiner of a session that was opened without stdin",
    streaming: ({ name }: Pick<Named, "name">) => badRequest(`session ${name} has no stdin to type into`),
  },
  "session-input-ended": {
    cause: "A joiner of a session whose stdin has ended, or whose bytes are not decoded",
    streaming: ({ name }: Pick<Named, "name">) =>
      conflict(
        { resource: "streamingsessions.sluice.dev", name },
        "its command reads no input, or none any more",
      ),
  },
  "session-unreachable": {
    cause: "A session whose worker or replica does not answer",
    streaming: ({ name }: Pick<Named, "name">) =>
      serviceUnavailable(`the process that carries session ${name} does not answer`),
  },
  "recordings-too-many": {
    cause: "A watch of more recordings than a process follows",
    streaming: ({ most }: { readonly most: number }) =>
      badRequest(`more than ${most} recordings cannot be watched: list them page by page`),
  },
  "recording-unreachable": {
    cause: "A recording that may be in the folder of a replica that does not answer",
    streaming: ({ name }: Pick<Named, "name">) =>
      serviceUnavailable(`recording ${name} may be with a replica that does not answer`),
  },
  "recording-folder-silent": {
    cause: "A request for recordings whose folder is on a disk that hangs",
    streaming: () => serviceUnavailable("the folder of recordings does not answer"),
  },
  "recording-folder-read": {
    cause: "A list of recordings whose folder is read for the first time, for longer than a request waits",
    streaming: () => serviceUnavailable("the folder of recordings is still being read", 1),
  },
  "recording-store-failed": {
    cause: "A recording that may be in the store, which refuses or does not answer",
    streaming: ({ name, problem }: Pick<Named, "name"> & { readonly problem: string }) =>
      serviceUnavailable(`recording ${name} may be in the store, which cannot be read: ${problem}`),
  },
  "recording-stored": {
    cause: "A delete of a recording that is in the store",
    streaming: ({ resource, name }: Named) =>
      conflict({ resource, name }, "it is in the store, which only a lifecycle rule of the bucket empties"),
  },
};

/** 409, as for any object. */
function conflict({ resource, name }: Named, problem: string): StatusError {
  const status: Status = {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `Operation cannot be fulfilled on ${resource} ${goQuote(name)}: ${problem}`,
    reason: "Conflict",
    details: { name, kind: resource },
    code: 409,
  };
  return new StatusError(status);
}
