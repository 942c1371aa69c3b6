/** The known name that differs only in case, separators or a few letters. */
export function nearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = plain(name).slice(0, MAX_COMPARED_CHARACTERS);
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(wanted, plain(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.min(wanted.length / 2, Math.max(2, wanted.length / 3))
    ? best.candidate
    : undefined;
}

/** `; did you mean "x"?`, or the valid names. */
export function suggestion(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  return nearest === undefined
    ? `; valid: ${known.join(", ")}`
    : `; did you mean ${JSON.stringify(nearest)}?`;
}

/** No known name is longer. The comparison's time grows with the product of both lengths. */
const MAX_COMPARED_CHARACTERS = 64;

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, "");
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j += 1) {
      const replaced = (row[j] ?? 0) + (a[i] === b[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
