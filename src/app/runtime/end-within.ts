import { END_HOP_MS, type EndResult, MAX_END_MS } from "../../sessions/session-actions.ts";

/** The answer of a process, `hops` processes before the session's; `unreachable` if it does not come in time. */
export function endWithin(hops: number, asked: Promise<EndResult>): Promise<EndResult> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<EndResult>((resolve) => {
    timer = setTimeout(() => resolve("unreachable"), MAX_END_MS + hops * END_HOP_MS);
  });
  const gone = asked.catch((): EndResult => "unreachable");
  return Promise.race([gone, late]).finally(() => clearTimeout(timer));
}
