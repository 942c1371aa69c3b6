import { StatusError, statusOfBody } from "../api/status.ts";
import { peekRefusal } from "../http/upgrade/peek-refusal.ts";
import type { RefusedUpgrade, UpgradeResponse } from "../http/upgrade/upgrade-request.ts";
import type { Admission } from "./admission.ts";
import { type ClientHandshake, checkClientHandshake, HandshakeRefusal } from "./client-handshake.ts";
import type { Fallback, Leg, Refusal } from "./leg.ts";
import type { Plan } from "./plan.ts";

/** A session by one plan: what was decided, and how its client's upgrade is answered. */
export interface PlannedSession<A extends Admission = Admission> {
  readonly admission: A;
  readonly handshake: ClientHandshake;
}

/** What an upstream answered, and to which plan. */
export interface UpstreamHandshake<A extends Admission = Admission> extends PlannedSession<A> {
  readonly response: UpgradeResponse;
}

/** Refusals that matter here are a sentence, or a Status. */
const PEEK = { maxBytes: 4 * 1024, timeoutMs: 1_000 };

/**
 * Requests the session from the upstream, and by the next plan if it refused the first because of its
 * path; the client has no answer yet. Throws what `Leg.dial` throws.
 */
export async function negotiateUpgrade<A extends Admission>(
  leg: Leg<A>,
  first: PlannedSession<A>,
  signal: AbortSignal,
): Promise<UpstreamHandshake<A>> {
  const { plan, request } = first.admission;
  const nextPlan = leg.fallback?.planAfter(plan, request.subresource);
  if (leg.fallback === undefined || nextPlan === undefined) return await dial(leg, first, signal);
  return await dialTwice(leg, leg.fallback, first, nextPlan, signal);
}

async function dial<A extends Admission>(
  leg: Leg<A>,
  planned: PlannedSession<A>,
  signal: AbortSignal,
): Promise<UpstreamHandshake<A>> {
  return { ...planned, response: await leg.dial(planned.admission, signal) };
}

async function dialTwice<A extends Admission>(
  leg: Leg<A>,
  fallback: Fallback<A>,
  first: PlannedSession<A>,
  nextPlan: Plan,
  signal: AbortSignal,
): Promise<UpstreamHandshake<A>> {
  const taken = await dial(leg, first, signal).catch(statusErrorOf);
  if (!(taken instanceof StatusError) && taken.response.kind === "switched") return taken;
  const refusal = await refusalOf(taken);
  try {
    const admission = fallback.replan(first.admission, nextPlan, refusal);
    if (admission === undefined) return refusedBy(first, refusal);
    const second = await dial(leg, { admission, handshake: checkClientHandshake(admission) }, signal);
    if (second.response.kind === "refused") return await clearerOf(first, refusal, second, second.response);
    fallback.fellBack(first.admission, refusal);
    refusal.answer?.body.destroy();
    return second;
  } catch (error) {
    // The client's own handshake is wrong, or the upstream is gone meanwhile: what it said first is the better answer.
    if (error instanceof HandshakeRefusal || error instanceof StatusError)
      return refusedBy(first, refusal, error);
    refusal.answer?.body.destroy();
    throw error;
  }
}

/** The error as an answer for the client. Throws any other, e.g. that the client left. */
function statusErrorOf(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  throw error;
}

async function refusalOf(taken: UpstreamHandshake | StatusError): Promise<Refusal> {
  if (taken instanceof StatusError) return { error: taken };
  const { text, refused } = await peekRefusal(taken.response as RefusedUpgrade, PEEK);
  return { answer: refused, text };
}

/** Throws `error`, or the refusal's own, where the first plan had no answer to pass on. */
function refusedBy<A extends Admission>(
  first: PlannedSession<A>,
  refusal: Refusal,
  error?: Error,
): UpstreamHandshake<A> {
  if (refusal.answer === undefined) throw error ?? refusal.error;
  return { ...first, response: refusal.answer };
}

/** Clients fall back themselves and show the second refusal; a hop's own page says less than an API server's Status. */
async function clearerOf<A extends Admission>(
  first: PlannedSession<A>,
  refusal: Refusal,
  second: PlannedSession<A>,
  secondAnswer: RefusedUpgrade,
): Promise<UpstreamHandshake<A>> {
  if (refusal.answer === undefined || statusOfBody(refusal.text) === undefined) {
    refusal.answer?.body.destroy();
    return { ...second, response: secondAnswer };
  }
  const { text, refused } = await peekRefusal(secondAnswer, PEEK);
  const isFirst = statusOfBody(text) === undefined;
  (isFirst ? refused : refusal.answer).body.destroy();
  return isFirst ? { ...first, response: refusal.answer } : { ...second, response: refused };
}
