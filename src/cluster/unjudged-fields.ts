/**
 * Fields of valid objects for which only names and types were checked: one line for each kind,
 * however many objects.
 */
export class UnjudgedFields {
  readonly #fields = new Map<string, Set<string>>();

  add(kind: string, fields: readonly string[]): void {
    if (fields.length === 0) return;
    const known = this.#fields.get(kind) ?? new Set<string>();
    this.#fields.set(kind, known);
    for (const field of fields) known.add(field);
  }

  get lines(): string[] {
    return [...this.#fields].map(([kind, fields]) => {
      const shown = [...fields].slice(0, MAX_SHOWN_FIELDS);
      const rest = fields.size > shown.length ? ` and ${fields.size - shown.length} more` : "";
      return `not judged, but for names and types: ${kind} ${shown.join(", ")}${rest}`;
    });
  }
}

const MAX_SHOWN_FIELDS = 20;
