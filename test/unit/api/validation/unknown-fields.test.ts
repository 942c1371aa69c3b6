import { describe, expect, it } from "vitest";
import { strategies } from "../../../../src/api/strategy/strategies.ts";
import { KNOWN_FIELDS } from "../../../../src/api/validation/known-fields.ts";
import type { Shape } from "../../../../src/api/validation/shape.ts";
import { unknownFields } from "../../../../src/api/validation/unknown-fields.ts";

/** Fields of a shape that its type does not have. */
function strangersOf(shape: Shape, type: string | undefined): string[] {
  if (shape.json === "array") return strangersOf(shape.items, type);
  if (shape.json !== "struct" || type === undefined) return [];
  const known = KNOWN_FIELDS.get(type);
  return Object.entries(shape.fields).flatMap(([name, field]) =>
    known?.has(name) ? strangersOf(field, known.get(name)) : [`${type}.${name}`],
  );
}

describe("known fields", () => {
  it.each(
    strategies.map(({ kind, shape }) => [kind, shape] as const),
  )("have all that is read of a %s", (kind, shape) => {
    // Workloads share a shape.
    expect(strangersOf(shape, kind)).toEqual(kind === "DaemonSet" ? ["DaemonSetSpec.replicas"] : []);
  });

  it("name types that are there", () => {
    for (const fields of KNOWN_FIELDS.values()) {
      for (const type of fields.values()) if (type !== undefined) expect(KNOWN_FIELDS.has(type)).toBe(true);
    }
  });

  it("leave maps alone, and end at a hundred", () => {
    const labels = { anything: "goes" };
    expect(unknownFields({ metadata: { labels, annotations: labels } }, "v1", "Pod")).toEqual([]);
    const spec = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`f${index}`, 1]));
    expect(unknownFields({ spec }, "v1", "Pod")).toHaveLength(100);
  });
});
