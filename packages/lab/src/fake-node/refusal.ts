/** An answer instead of an upgrade. */
export interface Refusal {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /**
   * golang.org/x/net/websocket's form: neither Date nor Content-Length; the connection's end ends
   * the body.
   */
  readonly isBare?: boolean;
}

const TEXT = ["Content-Type", "text/plain; charset=utf-8"] as const;
const NO_SNIFFING = ["X-Content-Type-Options", "nosniff"] as const;

/** go-restful's form of an error: the text alone. */
export function textRefusal(status: number, body: string): Refusal {
  return { status, headers: [TEXT], body };
}

/** Go's http.Error: one line of text. Further headers appear in Go's sorted order. */
export function httpError(
  status: number,
  line: string,
  headers: readonly (readonly [string, string])[] = [],
): Refusal {
  const sorted = [TEXT, NO_SNIFFING, ...headers].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return { status, headers: sorted, body: `${line}\n` };
}
