import type { Shape } from "./shape.ts";

/**
 * The outermost fields of an object that a shape lacks, such as `spec.containers[].args`, each
 * once.
 */
export function unreadFields(value: unknown, shape: Shape): string[] {
  const found = new Set<string>();
  visit(value, shape, "", found);
  return [...found];
}

function visit(value: unknown, shape: Shape, path: string, found: Set<string>): void {
  if (shape.json === "array" && Array.isArray(value)) {
    for (const item of value) visit(item, shape.items, `${path}[]`, found);
    return;
  }
  if (shape.json !== "struct" || typeof value !== "object" || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    if (member === null) continue;
    const field = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
    const memberPath = path === "" ? name : `${path}.${name}`;
    if (field === undefined) found.add(memberPath);
    else visit(member, field, memberPath, found);
  }
}
