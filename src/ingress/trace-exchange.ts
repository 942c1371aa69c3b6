import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { beginTrace } from "@sluice/client/internal/http/trace-headers";
import type { RequestTrace } from "@sluice/client/internal/observability/trace";
import type { IngressContext } from "./ingress-context.ts";
import type { RequestOrigin } from "./ingress-request.ts";
import type { RouteBackend } from "./route.ts";

/** Traces an exchange of the front door under its rule's names; undefined if tracing is off. */
export function traceExchange(
  request: { readonly method: string; readonly target: string; readonly headers: HeaderList },
  { isTls, remoteAddress }: RequestOrigin,
  route: RouteBackend | undefined,
  { tracing, edge }: Pick<IngressContext, "tracing" | "edge">,
): RequestTrace | undefined {
  if (tracing === undefined) return undefined;
  const { method, headers } = request;
  const addresses = edge.sourceAddressesOf(headers, remoteAddress);
  const trace = beginTrace(tracing, request, { encrypted: isTls }, addresses);
  if (route === undefined) return trace;
  const { namespace, ingress, service } = route.names;
  trace?.rename(`${method} ${namespace}/${ingress}`);
  trace?.set({ "k8s.namespace.name": namespace, "k8s.ingress.name": ingress, "k8s.service.name": service });
  return trace;
}
