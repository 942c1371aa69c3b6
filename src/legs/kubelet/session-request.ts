import { tunnelOffers } from "@sluice/protocols/portforward";
import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import type { KubeletPath } from "../../api/kubelet-path.ts";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { nonUtf8Parameter } from "../../http/request-url.ts";
import { type ClientOffer, clientOfferOf } from "../../sessions/client-offer.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { StreamingRequest } from "../../sessions/streaming-request.ts";

/** A path that opens a session. */
export interface SessionPath extends KubeletPath {
  readonly action: "exec" | "attach" | "portForward";
}

export function isSessionPath(path: KubeletPath): path is SessionPath {
  return path.action === "exec" || path.action === "attach" || path.action === "portForward";
}

export function subresourceOf({ action }: SessionPath): StreamingRequest["subresource"] {
  return action === "portForward" ? "portforward" : action;
}

/** Parses the options like the kubelet. Throws a 400 refusal in its words. */
export function parseSessionRequest(path: SessionPath, incoming: IncomingStreaming): StreamingRequest {
  const { method, url, headers, remoteAddress, isPeerTrusted = false } = incoming;
  const query = url.searchParams;
  requireUtf8(url);
  const offer = clientOfferOf(headers);
  const isPortForward = path.action === "portForward";
  return {
    subresource: subresourceOf(path),
    namespace: path.namespace,
    pod: path.pod,
    method,
    path: url.pathname,
    container: isPortForward ? undefined : path.container,
    command: path.action === "exec" ? query.getAll("command") : [],
    streams: isPortForward ? NO_STREAMS : streamsOf(query),
    ports: isPortForward ? portsOf(query, offer) : [],
    offer,
    reason: "",
    headers,
    remoteAddress,
    isPeerTrusted,
  };
}

/** The kubelet refuses such text, because its runtime client cannot send it. Throws a 500 refusal. */
export function requireUtf8(url: URL): void {
  if (nonUtf8Parameter(url) === undefined) return;
  throw WIRE_ERRORS["query-not-utf8"].kubelet();
}

const NO_STREAMS: RequestedStreams = { stdin: false, stdout: false, stderr: false, tty: false };

/**
 * Only "1" is true. A terminal merges stderr into stdout, and the runtime would refuse both, so
 * stderr is dropped.
 */
function streamsOf(query: URLSearchParams): RequestedStreams {
  const tty = query.get("tty") === "1";
  const streams = {
    tty,
    stdin: query.get("input") === "1",
    stdout: query.get("output") === "1",
    stderr: query.get("error") === "1" && !tty,
  };
  if (!streams.stdin && !streams.stdout && !streams.stderr) {
    throw WIRE_ERRORS["no-stream"].kubelet();
  }
  return streams;
}

/** Only the legacy WebSocket port-forward names its ports in the URL, and there they are required. */
function portsOf(query: URLSearchParams, offer: ClientOffer): readonly number[] {
  if (offer.transport !== "websocket" || tunnelOffers(offer.protocols).length > 0) return [];
  const values = query.getAll("port");
  if (values.length === 0) throw WIRE_ERRORS["port-missing"].kubelet();
  return values.flatMap((value) => {
    if (value === "") throw WIRE_ERRORS["port-empty"].kubelet();
    return value.split(",").map(parsePort);
  });
}

function parsePort(text: string): number {
  const quoted = JSON.stringify(text);
  const isNumber = /^\d+$/.test(text);
  const port = Number(text);
  if (!isNumber || port > 65_535) {
    const problem = isNumber ? "value out of range" : "invalid syntax";
    throw WIRE_ERRORS["port-invalid"].kubelet({ port: quoted, problem });
  }
  if (port === 0) throw WIRE_ERRORS["port-zero"].kubelet({ port: quoted });
  return port;
}
