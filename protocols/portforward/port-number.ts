export type ParsedPort =
  | { readonly ok: true; readonly port: number }
  | { readonly ok: false; readonly reason: string };

/** 1..65535 in decimal digits. A refusal quotes `quoted`, in the words of Go's strconv and of Kubernetes. */
export function parsePort(text: string, quoted: string = text): ParsedPort {
  const problem = problemOf(text);
  if (problem !== undefined) {
    const cause = `strconv.ParseUint: parsing ${JSON.stringify(text)}: ${problem}`;
    return { ok: false, reason: `unable to parse ${JSON.stringify(quoted)} as a port: ${cause}` };
  }
  const port = Number(text);
  if (port < 1) return { ok: false, reason: `port ${JSON.stringify(quoted)} must be > 0` };
  return { ok: true, port };
}

function problemOf(text: string): string | undefined {
  if (!/^[0-9]+$/.test(text)) return "invalid syntax";
  return Number(text) > 0xffff ? "value out of range" : undefined;
}
