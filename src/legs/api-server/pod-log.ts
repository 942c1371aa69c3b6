import type { IncomingMessage } from "node:http";
import {
  badRequest,
  genericError,
  internalError,
  type StatusError,
} from "@sluice/client/internal/api/status";
import type { HttpDownstream } from "@sluice/client/internal/http/downstream/http-downstream";
import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { openAnswer } from "@sluice/client/internal/http/upstream/ask-json";
import { HttpUpstream } from "@sluice/client/internal/http/upstream/http-upstream";
import { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import { locate } from "../../cluster/locate.ts";
import { writeAnswer } from "../../listeners/answer.ts";
import type { ClusterContext, SessionRunContext } from "../../sessions/context.ts";
import { dialingError } from "../../sessions/upstream-errors.ts";
import { endpointOf } from "./dial-node.ts";

/** The pod that a log path names. */
interface PodLogPath {
  readonly namespace: string;
  readonly pod: string;
}

const LOG_PATH = /^\/api\/v1\/namespaces\/([^/]+)\/pods\/([^/]+)\/log\/?$/;

/** Undefined if the path is not a pod's log. Segments are percent-decoded. */
export function matchPodLogPath(pathname: string): PodLogPath | undefined {
  const [, namespace, pod] = LOG_PATH.exec(pathname) ?? [];
  if (namespace === undefined || pod === undefined) return undefined;
  try {
    const names = { namespace: decodeURIComponent(namespace), pod: decodeURIComponent(pod) };
    return /[/\\]|^\.{1,2}$/.test(names.namespace) || /[/\\]|^\.{1,2}$/.test(names.pod) ? undefined : names;
  } catch {
    return undefined;
  }
}

const TEXT: HeaderList = [["Content-Type", "text/plain"]];
const FLAGS = ["follow", "previous", "timestamps"];
const NUMBERS = ["sinceSeconds", "tailLines", "limitBytes"];
const TEXTS = ["sinceTime", "stream"];

/**
 * Answers an authorized log request from the node's kubelet, with recognized options only. Throws
 * StatusError; never ends a truncated log as if it were complete.
 */
export async function answerPodLog(
  { namespace, pod: podName }: PodLogPath,
  method: string,
  query: URLSearchParams,
  downstream: HttpDownstream,
  gateway: ClusterContext & Pick<SessionRunContext, "limits" | "timeouts">,
): Promise<void> {
  if (method !== "GET") throw WIRE_ERRORS["method-not-allowed"].streaming({ method });
  const pod = gateway.cluster.getPod(namespace, podName);
  if (pod === undefined) throw WIRE_ERRORS["pod-unknown"].streaming({ name: podName });
  const options = kubeletQuery(query);
  const wanted = {
    subresource: "exec",
    namespace,
    pod: podName,
    container: query.get("container") ?? "",
  } as const;
  if ((pod.spec.nodeName ?? "") === "") {
    // The container has not run, so its log is empty.
    writeAnswer(downstream, 200, TEXT, Buffer.alloc(0));
    return;
  }
  const { container = "", node } = locate(gateway.cluster, wanted, gateway.kubelet);
  const endpoint = await endpointOf(node, gateway.kubelet);
  const segments = [namespace, podName, container].map(encodeURIComponent).join("/");
  const upstream = new HttpUpstream({ endpoint, dialTimeoutMs: gateway.timeouts.dialMs });
  try {
    await relayLog(`/containerLogs/${segments}${options}`, upstream, downstream, gateway);
  } finally {
    upstream.close();
  }
}

/** Parses options by kube-apiserver's query rules and writes them for the kubelet. Throws StatusError 400. */
function kubeletQuery(query: URLSearchParams): string {
  const options = new URLSearchParams();
  for (const name of FLAGS) {
    const value = query.get(name);
    if (value !== null && value !== "0" && value.toLowerCase() !== "false") options.set(name, "true");
  }
  for (const name of NUMBERS) {
    const value = query.get(name);
    if (value === null || value === "") continue;
    if (!/^[+-]?\d{1,18}$/.test(value)) {
      throw WIRE_ERRORS["log-number-invalid"].streaming({ value: JSON.stringify(value) });
    }
    options.set(name, value);
  }
  for (const name of TEXTS) {
    const value = query.get(name);
    if (value !== null && value !== "") options.set(name, value);
  }
  return options.size === 0 ? "" : `?${options}`;
}

async function relayLog(
  path: string,
  upstream: HttpUpstream,
  downstream: HttpDownstream,
  { limits, timeouts }: Pick<SessionRunContext, "limits" | "timeouts">,
): Promise<void> {
  const answer = await ask(path, upstream, downstream, timeouts.upgradeResponseMs);
  const status = answer.statusCode ?? 0;
  if (status !== 200) {
    const { maxRefusalBodyBytes } = limits;
    // If a kubelet falls silent in the middle of its refusal, the part that arrived is passed on.
    const timer = setTimeout(() => answer.destroy(), timeouts.upgradeResponseMs);
    downstream.onClose(() => answer.destroy());
    throw refusalOf(status, await textOf(answer, maxRefusalBodyBytes).finally(() => clearTimeout(timer)));
  }
  const sink = downstream.respond(200, "OK", [...TEXT, ["Date", new Date().toUTCString()]]);
  // Cuts the client's answer off if the kubelet's is cut off, and closes the kubelet's connection
  // when the client leaves.
  await new Promise<void>((resolve) => {
    downstream.onClose(() => {
      answer.destroy();
      resolve();
    });
    answer.on("close", () => {
      if (answer.complete) downstream.finish([]);
      else downstream.truncate();
    });
    answer.pipe(sink, { end: false });
  });
}

async function ask(
  path: string,
  upstream: HttpUpstream,
  downstream: HttpDownstream,
  timeoutMs: number,
): Promise<IncomingMessage> {
  const ending = new AbortController();
  const timer = setTimeout(
    () => ending.abort(new UpstreamError("response-timeout", "net/http: timeout awaiting response headers")),
    timeoutMs,
  );
  downstream.onClose(() => ending.abort());
  try {
    const answer = await openAnswer(upstream, { path, signal: ending.signal });
    answer.on("error", () => {});
    return answer;
  } catch (error) {
    throw error instanceof UpstreamError ? dialingError(error) : error;
  } finally {
    clearTimeout(timer);
  }
}

/** The kubelet answers in text, but the client expects an API server's Status. */
function refusalOf(status: number, text: string): StatusError {
  if (status === 500) return internalError(text);
  if (status === 400) return badRequest(text);
  const code = status >= 400 ? status : 500;
  return text.trim() === ""
    ? WIRE_ERRORS["node-refused-log"].streaming({ status, code })
    : genericError(code, text.trim());
}

/** The beginning of the body; if the body is cut off, the part that arrived. */
async function textOf(answer: IncomingMessage, maxBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of answer as AsyncIterable<Buffer>) {
      parts.push(part);
      bytes += part.byteLength;
      if (bytes >= maxBytes) break;
    }
  } catch {
    // If the body is cut off, the status line is still known.
  }
  return Buffer.concat(parts).toString("utf8", 0, maxBytes);
}
