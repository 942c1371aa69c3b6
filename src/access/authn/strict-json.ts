/** A string, or a character that marks a position in the document. */
const TOKEN = /"(?:[^"\\]|\\.?)*"?|[{}[\],:]/gs;

/**
 * Parses a JSON object. Throws for anything else, a byte order mark, invalid UTF-8, and a duplicate
 * name, because readers differ in which value counts.
 */
export function parseStrictObject(bytes: Uint8Array): Record<string, unknown> {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("not an object");
  requireUniqueNames(text);
  return value as Record<string, unknown>;
}

/** `text` is valid JSON. */
function requireUniqueNames(text: string): void {
  const open: (Set<string> | undefined)[] = [];
  let previous = "";
  for (const [token] of text.matchAll(TOKEN)) {
    const names = open.at(-1);
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (names !== undefined && token.startsWith('"') && previous !== ":") {
      const name = JSON.parse(token) as string;
      if (names.has(name)) throw new Error("an object has a name twice");
      names.add(name);
    }
    previous = token;
  }
}
