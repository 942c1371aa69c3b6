import type { HeaderLines } from "@sluice/protocols/websocket";

/** Header lines as Go's http.Header stores them: canonical names, values in order, no Host. */
function goHeader(lines: HeaderLines): Map<string, string[]> {
  const header = new Map<string, string[]>();
  for (let at = 0; at + 1 < lines.length; at += 2) {
    const name = canonicalName(lines[at] ?? "");
    if (name !== "Host") header.set(name, [...(header.get(name) ?? []), lines[at + 1] ?? ""]);
  }
  return header;
}

export function goHeaderCount(lines: HeaderLines): number {
  return goHeader(lines).size;
}

/** Go's %#v of a header. */
export function goHeaderDump(lines: HeaderLines): string {
  const entries = [...goHeader(lines)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(
      ([name, values]) =>
        `${JSON.stringify(name)}:[]string{${values.map((value) => JSON.stringify(value)).join(", ")}}`,
    );
  return `http.Header{${entries.join(", ")}}`;
}

function canonicalName(name: string): string {
  return name.toLowerCase().replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());
}
