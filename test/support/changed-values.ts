/** Yields a JSON value with one part after the other replaced, and left out. */
export function* changedValues(value: unknown): Generator<unknown> {
  for (const other of [null, 7, "x", [], {}, [null], true]) yield other;
  if (typeof value !== "object" || value === null) return;
  for (const [key, part] of Object.entries(value)) {
    if (Array.isArray(value)) {
      yield value.toSpliced(Number(key), 1);
      for (const next of changedValues(part)) yield value.with(Number(key), next);
      continue;
    }
    const { [key]: _, ...rest } = value as Record<string, unknown>;
    yield rest;
    for (const next of changedValues(part)) yield { ...value, [key]: next };
  }
}
