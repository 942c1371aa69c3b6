import type { Duplex } from "node:stream";
import type { RequestTrace, Tracing } from "../observability/trace.ts";
import { type HeaderEdit, HeaderNames } from "./header-edit.ts";
import { type HeaderList, headerValues, withoutHeaders } from "./header-list.ts";

const TRACE_NAMES = ["traceparent", "tracestate"];
const TRACE = new HeaderNames(TRACE_NAMES);

/** Adds the headers that make the upstream's spans part of this trace; none without tracing. */
export function withTrace(headers: HeaderList, trace: RequestTrace | undefined): HeaderList {
  return trace === undefined ? headers : [...withoutHeaders(headers, TRACE_NAMES), ...trace.headers];
}

/** The same for an edit. */
export function addTrace(edit: HeaderEdit, trace: RequestTrace | undefined): void {
  if (trace === undefined) return;
  edit.drop(TRACE);
  for (const [name, value] of trace.headers) edit.add(name, value);
}

/** Begins a request's trace, within the client's own trace if the request names one. */
export function beginTrace(
  tracing: Tracing | undefined,
  {
    method,
    target,
    headers,
  }: Readonly<Record<"method" | "target", string>> & { readonly headers: HeaderList },
  connection: { readonly encrypted?: boolean } | Duplex,
  sourceAddresses: readonly string[],
): RequestTrace | undefined {
  if (tracing === undefined) return undefined;
  const scheme = "encrypted" in connection && connection.encrypted === true ? "https" : "http";
  return tracing.begin({
    method,
    scheme,
    clientAddress: sourceAddresses[0] ?? "",
    path: /^[^?#]{0,1024}/.exec(target)?.[0] ?? "",
    traceparent: headerValues(headers, "traceparent"),
    tracestate: headerValues(headers, "tracestate"),
  });
}
