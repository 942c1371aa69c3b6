/**
 * The candidates of one place in a table, as a list in order of precedence: the longer path of `/foo` and
 * `/foo/`, then the one that was added first.
 */
export interface Candidate<Value> {
  readonly value: Value;
  readonly pathLength: number;
  /** It may refuse a request, which the next one gets. */
  readonly isConditional: boolean;
  readonly next: Candidate<Value> | undefined;
}

/** The list with one more candidate; undefined if one before it takes every request. */
export function withCandidate<Value>(
  list: Candidate<Value> | undefined,
  added: Omit<Candidate<Value>, "next">,
): Candidate<Value> | undefined {
  if (list === undefined || list.pathLength < added.pathLength) return before(list, added);
  if (!list.isConditional) return undefined;
  const next = withCandidate(list.next, added);
  return next && before(next, list);
}

/** Written out, not spread: lookups took twice as long on spread copies. */
function before<Value>(
  next: Candidate<Value> | undefined,
  { value, pathLength, isConditional }: Omit<Candidate<Value>, "next">,
): Candidate<Value> {
  return { value, pathLength, isConditional, next };
}

/** The first value that takes every request, or that `accepts`. */
export function firstOf<Value>(
  list: Candidate<Value> | undefined,
  accepts: (value: Value) => boolean,
): Value | undefined {
  for (let each = list; each !== undefined; each = each.next) {
    if (!each.isConditional || accepts(each.value)) return each.value;
  }
  return undefined;
}
