import { END_HOP_MS, type EndResult, MAX_END_MS } from "../../sessions/session-actions.ts";
import type { SessionFacts } from "../../sessions/session-facts.ts";
import type { JoinAnswer } from "../../sessions/session-joins.ts";
import { OUTPUT_WAIT_MS, type OutputAnswer } from "../../sessions/session-outputs.ts";

/** Facts from a process, `hops` processes away; undefined if they do not come in time. */
export function factsWithin(
  hops: number,
  asked: Promise<SessionFacts | undefined>,
): Promise<SessionFacts | undefined> {
  return answerWithin(hops * END_HOP_MS, asked, undefined);
}

/** What became of input in a process, `hops` processes away; `unreachable` if that is not known in time. */
export function typedWithin(hops: number, asked: Promise<JoinAnswer>): Promise<JoinAnswer> {
  return answerWithin<JoinAnswer>(hops * END_HOP_MS, asked, "unreachable");
}

/** Output from a process, `hops` processes away; `unreachable` if it does not come in time. */
export function outputWithin(hops: number, asked: Promise<OutputAnswer>): Promise<OutputAnswer> {
  return answerWithin<OutputAnswer>(OUTPUT_WAIT_MS + hops * END_HOP_MS, asked, "unreachable");
}

/** The answer of a process, `hops` processes before the session's; `unreachable` if it does not come in time. */
export function endWithin(hops: number, asked: Promise<EndResult>): Promise<EndResult> {
  return answerWithin<EndResult>(MAX_END_MS + hops * END_HOP_MS, asked, "unreachable");
}

function answerWithin<T>(ms: number, asked: Promise<T>, otherwise: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => {
    timer = setTimeout(() => resolve(otherwise), ms);
  });
  const gone = asked.catch(() => otherwise);
  return Promise.race([gone, late]).finally(() => clearTimeout(timer));
}
