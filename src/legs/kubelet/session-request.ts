import { tunnelOffers } from "@sluice/protocols/portforward";
import type { RequestedStreams } from "@sluice/protocols/remotecommand";
import type { KubeletPath } from "../../api/kubelet-path.ts";
import { nonUtf8Parameter } from "../../http/request-url.ts";
import { type ClientOffer, clientOfferOf } from "../../sessions/client-offer.ts";
import type { IncomingStreaming } from "../../sessions/incoming-request.ts";
import type { StreamingRequest } from "../../sessions/streaming-request.ts";
import { textRefusal } from "./text-refusal.ts";

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
  throw textRefusal(
    500,
    "rpc error: code = Internal desc = grpc: error while marshaling: string field contains invalid UTF-8",
  );
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
    throw textRefusal(400, "you must specify at least 1 of stdin, stdout, stderr");
  }
  return streams;
}

/** Only the legacy WebSocket port-forward names its ports in the URL, and there they are required. */
function portsOf(query: URLSearchParams, offer: ClientOffer): readonly number[] {
  if (offer.transport !== "websocket" || tunnelOffers(offer.protocols).length > 0) return [];
  const values = query.getAll("port");
  if (values.length === 0) throw textRefusal(400, 'query parameter "port" is required');
  return values.flatMap((value) => {
    if (value === "") throw textRefusal(400, 'query parameter "port" cannot be empty');
    return value.split(",").map(parsePort);
  });
}

function parsePort(text: string): number {
  const quoted = JSON.stringify(text);
  if (!/^\d+$/.test(text)) {
    throw textRefusal(
      400,
      `unable to parse ${quoted} as a port: strconv.ParseUint: parsing ${quoted}: invalid syntax`,
    );
  }
  const port = Number(text);
  if (port > 65_535) {
    throw textRefusal(
      400,
      `unable to parse ${quoted} as a port: strconv.ParseUint: parsing ${quoted}: value out of range`,
    );
  }
  if (port === 0) throw textRefusal(400, `port ${quoted} must be > 0`);
  return port;
}
