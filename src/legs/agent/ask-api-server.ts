import { statusOfBody } from "../../api/status.ts";
import { ConnectError, shouldFallBack } from "../../client/index.ts";
import { quotedRefusal } from "../../client/refusal.ts";
import { peekRefusal } from "../../http/peek-refusal.ts";
import { UpstreamError } from "../../net/upstream-error.ts";
import type { PathFailure } from "../../nodes/node-capability.ts";
import { refusedPath } from "../../nodes/refused-path.ts";
import { checkClientHandshake } from "../../sessions/client-handshake.ts";
import type { UpstreamHandshake } from "../../sessions/negotiate-upgrade.ts";
import { type Plan, webSocketPathOf } from "../../sessions/plan.ts";
import { upstreamRequestFor } from "../../sessions/upstream-request.ts";
import type { PreparedStreaming } from "../api-server/prepare-streaming.ts";
import type { AgentContext } from "./agent-context.ts";
import { dialUpstream } from "./dial-upstream.ts";
import { unansweredError } from "./forward.ts";
import { planAfterRefusal } from "./plan-session.ts";

/** Enough for a Status and for the first words of a page. */
const PEEK = { maxBytes: 4 * 1024, timeoutMs: 1_000 };

/** Asks for one session at `target` (path and query as the client wrote them), by the plan that is given. */
type Attempt = (plan: Plan) => Promise<UpstreamHandshake>;

/**
 * Asks the API server for the session, and once more in the client's own protocol where it cannot take the bridge's WebSocket: exactly
 * where client-go falls back. Nobody who refuses an upgrade has begun anything, so nothing happens twice. An API server that then takes
 * the client's protocol is asked in it at once for a while.
 *
 * Throws HandshakeRefusal, StatusError, and UpstreamError "aborted" when the client left.
 */
export async function askApiServer(
  prepared: PreparedStreaming,
  target: string,
  signal: AbortSignal,
  agent: AgentContext,
): Promise<UpstreamHandshake> {
  const attempt: Attempt = async (plan) => {
    const planned = { ...prepared, plan };
    const handshake = checkClientHandshake(planned);
    const kubeletRequest = upstreamRequestFor(prepared.request, targetFor(plan, target), plan);
    const response = await dialUpstream(prepared.request.headers, kubeletRequest, signal, agent);
    return { prepared: planned, handshake, kubeletRequest, response };
  };
  try {
    const nextPlan = planAfterRefusal(prepared.plan);
    return nextPlan === undefined
      ? await attempt(prepared.plan)
      : await askTwice(prepared, nextPlan, attempt, agent);
  } catch (error) {
    throw unansweredError(error);
  }
}

async function askTwice(
  prepared: PreparedStreaming,
  nextPlan: Plan,
  attempt: Attempt,
  agent: AgentContext,
): Promise<UpstreamHandshake> {
  const { request, target } = prepared;
  const path = webSocketPathOf(request.subresource);
  const first = await refusalOf(() => attempt(prepared.plan));
  if (!first.isRefused) {
    agent.nodes.recordSuccess(target.node, path);
    return first.asked;
  }
  agent.note(`${request.subresource} fallback: ${first.why}`);
  const second = await refusalOf(() => attempt(nextPlan)).catch((error: unknown) => {
    if (first.asked === undefined) throw error;
    return undefined;
  });
  if (second?.isRefused === false) {
    discard(first);
    // Permission and load say nothing of the path: the next session may well find it.
    if (first.cause !== undefined) {
      agent.nodes.recordFailure(target.node, path, first.cause);
      agent.metrics.nodes.fellBack(request.subresource, first.cause);
    }
    return second.asked;
  }
  return clearerOf(first, second);
}

interface Refusal {
  readonly isRefused: true;
  /** The answer, with its body whole again; undefined where it was none that could be passed on. */
  readonly asked: UpstreamHandshake | undefined;
  readonly error: unknown;
  /** In words, for the user. */
  readonly why: string;
  readonly hasStatus: boolean;
  /** What it says of the path; undefined where it is about the request. */
  readonly cause: PathFailure | undefined;
}

/** The answer, or the refusal that client-go would fall back on. Throws what it would not fall back on. */
async function refusalOf(
  ask: () => Promise<UpstreamHandshake>,
): Promise<Refusal | { readonly isRefused: false; readonly asked: UpstreamHandshake }> {
  let asked: UpstreamHandshake;
  try {
    asked = await ask();
  } catch (error) {
    const failure = upgradeFailureOf(error);
    if (!shouldFallBack(failure)) throw error;
    const why = failure instanceof Error ? failure.message : String(failure);
    return { isRefused: true, asked: undefined, error, why, hasStatus: false, cause: "wrong-answer" };
  }
  const { response } = asked;
  if (response.kind === "switched") return { isRefused: false, asked };
  const { text, refused } = await peekRefusal(response, PEEK);
  const status = statusOfBody(text);
  const words = status?.message ?? quotedRefusal(Buffer.from(text.slice(0, 200)));
  const why = `${response.status} ${response.statusMessage}: ${words}`;
  return {
    isRefused: true,
    asked: { ...asked, response: refused },
    error: undefined,
    why,
    hasStatus: status !== undefined,
    cause: status?.reason === "Forbidden" ? undefined : refusedPath(response.status, text),
  };
}

/** A complete answer that is no good 101, as the client's library tells it. */
function upgradeFailureOf(error: unknown): unknown {
  if (!(error instanceof UpstreamError)) return error;
  if (error.code === "invalid-status") return new ConnectError("http", error.message);
  if (error.code === "upgrade-mismatch") return new ConnectError("handshake", error.message);
  return error;
}

/** client-go tells of the second; a hop that refuses SPDY by a page of its own says less than an API server's Status. */
function clearerOf(first: Refusal, second: Refusal | undefined): UpstreamHandshake {
  const isFirst = second?.asked === undefined || (first.hasStatus && !second.hasStatus);
  discard(isFirst ? second : first);
  const { asked, error } = isFirst ? first : second;
  if (asked === undefined) throw error;
  return asked;
}

function discard(refusal: Refusal | undefined): void {
  if (refusal?.asked?.response.kind === "refused") refusal.asked.response.body.destroy();
}

/** Legacy port-forward alone names its ports in the URL, and no bridge speaks it onward. */
function targetFor({ kind }: Plan, target: string): string {
  const at = target.indexOf("?");
  if (kind !== "bridge" || at === -1) return target;
  const kept = target
    .slice(at + 1)
    .split("&")
    .filter((part) => !/^ports(?:=|$)/.test(part));
  return kept.length === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${kept.join("&")}`;
}
