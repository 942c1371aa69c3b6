import {
  badRequest,
  forbidden,
  genericError,
  internalError,
  methodNotAllowed,
  notFound,
  resourceExpired,
  serviceUnavailable,
  tooManyRequests,
  unknownPath,
} from "@sluice/client/internal/api/status";
import type { WireError } from "./wire-error.ts";

type Named = {
  readonly name: string;
};

/** Streaming requests, pods' logs and sessions, in kube-apiserver's words if it has any. */
export const SESSION_ERRORS = {
  "no-upgrade": {
    cause: "A streaming request does not ask for an upgrade",
    streaming: () => badRequest("Upgrade request required"),
    kubelet: () => genericError(500, "Upgrade request required"),
  },
  "upgrade-unsupported": {
    cause: "An upgrade asks for a protocol other than WebSocket and SPDY/3.1",
    streaming: () => badRequest("unable to upgrade: only websocket and SPDY/3.1 are supported"),
  },
  "upgrade-with-body": {
    cause: "An upgrade request has a body",
    streaming: () => badRequest("an upgrade request cannot have a body"),
  },
  "spdy-protocol-missing": {
    cause: "A SPDY upgrade names no protocol, and its upstream takes only WebSocket",
    streaming: ({ problem }: { problem: string }) =>
      genericError(400, `unable to upgrade: header X-Stream-Protocol-Version ${problem}\n`),
  },
  "spdy-protocol-unknown": {
    cause: "A SPDY upgrade names only unknown protocols, and its upstream takes only WebSocket",
    streaming: ({ offered, accepted }: { offered: string; accepted: string }) =>
      genericError(
        403,
        `unable to upgrade: unable to negotiate protocol: client supports [${offered}], server accepts [${accepted}]\n`,
      ),
  },
  "websocket-protocol-unknown": {
    cause: "A WebSocket offers only unknown subprotocols, and its upstream takes only WebSocket",
    streaming: () => genericError(403, ""),
  },
  "upgrade-elsewhere": {
    cause: "An upgrade is not exec, attach or portforward, and manifests are served",
    streaming: () => badRequest("only exec, attach and portforward of pods can be upgraded here"),
  },
  "method-not-allowed": {
    cause: "The path does not support the method",
    streaming: ({ method }: { method: string }) => methodNotAllowed(method),
    kubelet: () => genericError(405, "405: Method Not Allowed"),
  },
  "path-unknown": {
    cause: "The path is not served",
    streaming: unknownPath,
    ingress: () => genericError(404, "no rule matches this host and path"),
    kubelet: () => genericError(404, "404 page not found\n"),
  },
  "dry-run": { cause: "The query has `dryRun`", streaming: () => badRequest("dryRun is not supported") },
  "query-not-utf8": {
    cause: "A query parameter is not UTF-8",
    streaming: ({ parameter }: { parameter: string }) =>
      badRequest(`the query parameter ${parameter} is not valid UTF-8`),
    forwarding: () => badRequest("the query is not valid UTF-8"),
    kubelet: () =>
      genericError(
        500,
        "rpc error: code = Internal desc = grpc: error while marshaling: string field contains invalid UTF-8",
      ),
  },
  "port-invalid": {
    cause: "A port in the query is not a number up to 65535",
    streaming: ({ port, problem }: { port: string; problem: string }) =>
      badRequest(`cannot convert to []int32: strconv.ParseUint: parsing ${port}: ${problem}`),
    kubelet: ({ port, problem }: { port: string; problem: string }) =>
      genericError(400, `unable to parse ${port} as a port: strconv.ParseUint: parsing ${port}: ${problem}`),
  },
  "log-number-invalid": {
    cause: "A numeric option of a log is not a number",
    streaming: ({ value }: { value: string }) =>
      badRequest(`strconv.ParseInt: parsing ${value}: invalid syntax`),
  },
  "reason-invalid": {
    cause: "The reason is too long, or has control characters",
    streaming: ({ maxCharacters }: { maxCharacters: number }) =>
      badRequest(`the reason must be one line of at most ${maxCharacters} characters`),
  },
  "pod-unknown": {
    cause: "The pod does not exist",
    streaming: ({ name }: Named) => notFound("pods", name),
    kubelet: () => genericError(404, "pod does not exist"),
  },
  "pod-replaced": {
    cause: "Another pod has the name now",
    kubelet: () => genericError(404, "pod not found"),
  },
  "container-unknown": {
    cause: "The container does not run, or the pod has no such container",
    streaming: ({ container, pod }: { container: string; pod: string }) =>
      badRequest(`container ${container} is not valid for pod ${pod}`),
    kubelet: ({ container }: { container: string }) =>
      genericError(500, `container not found (${container})`),
  },
  "container-not-chosen": {
    cause: "The pod has several containers, and the request names none",
    streaming: ({ pod, containers }: { pod: string; containers: string }) =>
      badRequest(
        `a container name must be specified for pod ${pod}${containers === "" ? "" : `, choose one of: [${containers}]`}`,
      ),
  },
  "pod-unscheduled": {
    cause: "The pod has no node yet",
    streaming: ({ pod }: { pod: string }) => badRequest(`pod ${pod} does not have a host assigned`),
  },
  "node-unknown": {
    cause: "The node does not exist",
    streaming: ({ name }: Named) => notFound("nodes", name),
  },
  "node-without-address": {
    cause: "The node has no address of a preferred type",
    streaming: ({ known }: { known: string }) =>
      genericError(500, `no preferred addresses found; known addresses: [${known}]`),
  },
  "node-failing": {
    cause: "The node's circuit is open",
    streaming: (facts: { node: string; times: string; seconds: number; reason: string }) => {
      const { node, times, seconds, reason } = facts;
      return serviceUnavailable(
        `error dialing backend: node ${node} failed ${times} and is not dialled for ${seconds}s: ${reason}`,
        seconds,
      );
    },
  },
  "node-refused": {
    cause: "The node refuses a session without a text",
    streaming: ({ code }: { code: number }) =>
      genericError(code, `the node refused the session with status code ${code}`),
  },
  "node-refused-log": {
    cause: "The node refuses a log without a text",
    streaming: ({ status, code }: { status: number; code: number }) =>
      genericError(code, `the node answered with status code ${status}`),
  },
  "node-protocol": {
    cause: "The node chooses a stream protocol that was not offered",
    streaming: ({ offered, chosen }: { offered: string; chosen: string }) =>
      genericError(
        500,
        `unable to negotiate protocol: client supports [${offered}], server returned ${chosen}`,
      ),
  },
  "tunnel-protocol": {
    cause: "The node chooses a protocol that the client's tunnel does not carry",
    streaming: () => genericError(500, "unable to negotiate protocol"),
  },
  "policy-denied": {
    cause: "A rule of `policy` denies the session",
    streaming: ({ pod, sentence }: { pod: string; sentence: string }) => forbidden("pods", pod, sentence),
  },
  "policy-blind": {
    cause: "`policy` cannot see what a request through a proxy subresource opens",
    forwarding: ({ resource, name, place }: { resource: string; name: string; place: string }) =>
      forbidden(resource, name, `policy cannot see what this request opens at ${place}`),
  },
  "recording-blind": {
    cause: "`recording` cannot see what a request through a proxy subresource opens",
    forwarding: ({ resource, name, place }: { resource: string; name: string; place: string }) =>
      forbidden(resource, name, `a recording cannot see what this request opens at ${place}`),
  },
  "recording-undecoded": {
    cause: "A rule of `recording` records a session through a proxy subresource",
    forwarding: ({ pod, rule }: { pod: string; rule: string }) =>
      forbidden(
        "pods",
        pod,
        `recording rule ${JSON.stringify(rule)} records it, and a session through a proxy subresource cannot be recorded`,
      ),
  },
  "recording-unavailable": {
    cause: "A rule of `recording` records the session, and no recording can be written",
    streaming: ({ rule }: { rule: string }) =>
      serviceUnavailable(
        `recording rule ${JSON.stringify(rule)} requires a recording, and none can be written now`,
      ),
  },
  "quota-full": {
    cause: "A user or namespace has reached its limit of sessions",
    streaming: (facts: { subject: string; limit: number | undefined; seconds: number }) => {
      const { subject, limit, seconds } = facts;
      return tooManyRequests(
        `${subject} has ${limit} streaming sessions already, which is the limit`,
        seconds,
      );
    },
  },
  "quota-uncounted": {
    cause: "The store of quotas does not answer, and `onFailure` is deny",
    streaming: () => serviceUnavailable("sessions cannot be counted now, please try again later"),
  },
  "too-many-sessions": {
    cause: "`limits.maxConcurrentSessions` sessions are running",
    streaming: ({ seconds }: { seconds: number }) =>
      tooManyRequests("too many streaming sessions, please try again later", seconds),
  },
  "shutting-down": {
    cause: "The gateway drains",
    streaming: () => serviceUnavailable("the gateway is shutting down"),
  },
  "no-credentials": {
    cause: "The gateway's own credentials cannot be read",
    forwarding: () => serviceUnavailable("the gateway has no credentials for the API server"),
    kubelet: () => genericError(503, "there are no credentials for the kubelet\n"),
  },
  "agent-no-credentials": {
    cause: "`sluice agent` has no credentials of its user",
    forwarding: ({ error }: { error: string }) =>
      serviceUnavailable(`the agent has no credentials for the API server: ${error}`),
  },
  "state-stale": {
    cause: "Sluice has not heard from the API server for `cluster.maxStateAge`",
    streaming: ({ heard, maxAge }: { heard: string; maxAge: string }) =>
      serviceUnavailable(
        `the API server was last heard at ${heard}, longer ago than the ${maxAge} of cluster.maxStateAge`,
      ),
  },
  "object-unread": {
    cause: "The pod or node is unknown, and the API server does not answer",
    streaming: ({ kind, name }: { kind: string; name: string }) =>
      serviceUnavailable(`${kind} ${name} is not known here, and the API server cannot be asked`),
  },
  "lookups-busy": {
    cause: "Too many unknown pods or nodes are being looked up",
    streaming: ({ kind }: { kind: string }) =>
      tooManyRequests(`too many ${kind} are being looked up, please try again`, 1),
  },
  "resumption-off": {
    cause: "A client resumes a session, and resumption is off",
    streaming: () => resourceExpired("sessions are not resumed here"),
  },
  "resumption-unknown": {
    cause: "A client resumes a session that is over",
    streaming: () => resourceExpired("the session is not held here, or not any more"),
  },
  "resumption-refused": {
    cause: "A client resumes a session with another user, path or proof",
    streaming: ({ why }: { why: string }) => forbidden("", "", `the session cannot be resumed: ${why}`),
  },
  "resumption-tries": {
    cause: "Clients sent too many wrong proofs for the session",
    streaming: ({ seconds }: { seconds: number }) =>
      tooManyRequests("too many wrong proofs for the session", seconds),
  },
  "resumption-gap": {
    cause: "A client resumes a session, and bytes that it lacks are no longer kept",
    streaming: () => genericError(409, "the session cannot be resumed: bytes are missing"),
  },
  "resumption-silent": {
    cause: "The process that owns the session does not answer",
    streaming: () => serviceUnavailable("the process that owns the session does not answer"),
  },
  "resumption-failed": {
    cause: "The process that owns the session fails",
    streaming: () => internalError("the session could not be resumed"),
  },
  "resumption-none": {
    cause: "Another process relays a request without a session to resume or its user",
    streaming: () => badRequest("the request does not name a session to resume and its user"),
  },
  "relays-out": {
    cause: "Too many sessions are relayed to other replicas",
    streaming: () => serviceUnavailable("too many sessions are relayed to other replicas"),
  },
  "relays-in": {
    cause: "Too many sessions are relayed from other replicas",
    streaming: () => serviceUnavailable("too many sessions are relayed from other replicas"),
  },
} as const satisfies Record<string, WireError>;
