import { Readable } from "node:stream";
import { StatusError } from "@sluice/client/internal/api/status";
import { statusOfBody } from "@sluice/client/internal/api/status-body";
import type { RefusedUpgrade, UpgradeResponse } from "@sluice/client/internal/http/upgrade/upgrade-request";
import { type ClientHandshake, checkClientHandshake, HandshakeRefusal } from "./client-handshake.ts";
import type { Admission, Fallback, Leg, Refusal } from "./leg.ts";
import type { Plan } from "./plan.ts";

/** An admitted session under one plan, and the handshake for its client. */
interface PlannedSession<A extends Admission = Admission> {
  readonly admission: A;
  readonly handshake: ClientHandshake;
}

/** An upstream's answer, and the plan that it answers. */
export interface UpstreamHandshake<A extends Admission = Admission> extends PlannedSession<A> {
  readonly response: UpgradeResponse;
}

/** Relevant refusals are short: a sentence, or a Status. */
const PEEK = { maxBytes: 4 * 1024, timeoutMs: 1_000 };

/**
 * Requests the session from the upstream, and again by the next plan if it refused the first because
 * of its protocol. The client has no answer yet. Throws as `Leg.dial` does.
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
    // The client's own handshake is invalid, or the upstream has died since: its first answer says more.
    if (error instanceof HandshakeRefusal || error instanceof StatusError)
      return refusedBy(first, refusal, error);
    refusal.answer?.body.destroy();
    throw error;
  }
}

/** The error to answer the client with. Rethrows any other error, such as that the client left. */
function statusErrorOf(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  throw error;
}

async function refusalOf(taken: UpstreamHandshake | StatusError): Promise<Refusal> {
  if (taken instanceof StatusError) return { error: taken };
  const { text, refused } = await peekRefusal(taken.response as RefusedUpgrade, PEEK);
  return { answer: refused, text };
}

/**
 * Returns the first plan's refusal, or, if there was no answer to pass on, throws `error` or the
 * refusal's error.
 */
function refusedBy<A extends Admission>(
  first: PlannedSession<A>,
  refusal: Refusal,
  error?: Error,
): UpstreamHandshake<A> {
  if (refusal.answer === undefined) throw error ?? refusal.error;
  return { ...first, response: refusal.answer };
}

/**
 * Picks the more helpful refusal. Clients fall back too and show the second one; a hop's error page
 * says less than an API server's Status.
 */
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

interface PeekedRefusal {
  /** The beginning of the body, as much as arrived in time. */
  readonly text: string;
  /** The refusal, with its full body readable again. */
  readonly refused: RefusedUpgrade;
}

interface PeekOptions {
  readonly maxBytes: number;
  /** Keeps a slow refusal body from delaying the next attempt. */
  readonly timeoutMs: number;
}

/**
 * Reads the beginning of a refusal's body and puts it back. Never rejects: if the body breaks off,
 * returns the part that came.
 */
export async function peekRefusal(
  refused: RefusedUpgrade,
  { maxBytes, timeoutMs }: PeekOptions,
): Promise<PeekedRefusal> {
  const parts = refused.body[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const seen: Buffer[] = [];
  let seenBytes = 0;
  let pending: Promise<IteratorResult<Buffer>> | undefined;
  let timer: NodeJS.Timeout | undefined;
  const isLate = new Promise<"late">((resolve) => {
    timer = setTimeout(resolve, timeoutMs, "late");
  });
  try {
    while (seenBytes < maxBytes) {
      pending = parts.next();
      const next = await Promise.race([pending, isLate]);
      if (next === "late" || next.done === true) break;
      pending = undefined;
      seen.push(next.value);
      seenBytes += next.value.byteLength;
    }
  } catch {
    // The body's reader will get the same error.
  } finally {
    clearTimeout(timer);
  }
  const body = Readable.from(replay(refused, seen, parts, pending), { objectMode: false });
  // As with the body itself, it may be left unread.
  body.on("error", () => {}).once("close", () => refused.body.destroy());
  const text = Buffer.concat(seen).subarray(0, maxBytes).toString("utf8");
  return { text, refused: { ...refused, body } };
}

async function* replay(
  { body }: RefusedUpgrade,
  seen: readonly Buffer[],
  parts: AsyncIterator<Buffer>,
  pending: Promise<IteratorResult<Buffer>> | undefined,
): AsyncGenerator<Buffer> {
  try {
    yield* seen;
    let next = await (pending ?? parts.next());
    while (next.done !== true) {
      yield next.value;
      next = await parts.next();
    }
  } finally {
    body.destroy();
  }
}
