import { goQuote } from "@sluice/client/internal/api/go-json";
import type { HTTPHeader } from "../../api/probe-objects.ts";

export type HeaderLines = readonly (readonly [name: string, value: string])[];

export interface ProbeHeaders {
  /** Canonical names, repeated ones in order; without Host and Connection. */
  readonly lines: HeaderLines;
  /** The Host header's value; undefined means the dialled address. */
  readonly host: string | undefined;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the controls are what is refused
const CONTROLS = /[\x00-\x08\x0a-\x1f\x7f]/;

/** Go's client writes these itself or drops them. */
const NOT_SENT = new Set(["Host", "Content-Length", "Transfer-Encoding", "Trailer"]);

/**
 * The action's headers, plus User-Agent and Accept unless it names them. An empty value removes
 * either. Throws Error in Go's words for invalid names and values.
 */
export function probeHeaders(given: readonly HTTPHeader[], userAgent: string): ProbeHeaders {
  const canonical = given.map(({ name, value }) => [canonicalName(name), value] as const);
  for (const [name, value] of canonical) {
    if (!TOKEN.test(name)) throw new Error(`net/http: invalid header field name ${goQuote(name)}`);
    if (CONTROLS.test(value)) throw new Error(`net/http: invalid header field value for ${goQuote(name)}`);
  }
  const first = (name: string) => canonical.find(([other]) => other === name)?.[1];
  const agent = first("User-Agent") ?? userAgent;
  const lines = canonical
    .filter(([name]) => !NOT_SENT.has(name) && name !== "User-Agent")
    // Only the first Accept decides whether it is removed.
    .filter(([name]) => name !== "Accept" || first("Accept") !== "")
    .map(([name, value]) => [name, value.trim()] as const);
  return {
    lines: [
      ...(agent === "" ? [] : [["User-Agent", agent] as const]),
      ...(first("Accept") === undefined ? [["Accept", "*/*"] as const] : []),
      ...lines,
    ],
    host: first("Host") || undefined,
  };
}

/** `x-header-NAME` -> `X-Header-Name`; a name that is not a token stays as it is. */
function canonicalName(name: string): string {
  if (!TOKEN.test(name)) return name;
  return name.toLowerCase().replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
