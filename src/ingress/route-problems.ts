import { type HeaderList, headerTokens } from "../http/header-list.ts";
import type { IngressProblem } from "./problem-reporter.ts";
import type { ServiceRoute } from "./route-backend.ts";
import type { EndpointPicker } from "./service-balancer.ts";

/** Problems that requests found, at once. Those past it are served as the others, and not reported. */
export const MAX_ROUTE_PROBLEMS = 1_000;
const MAX_NAMED_ADDRESSES = 5;

/** What shows only when a request comes: it is reported for as long as requests find it. */
export class RouteProblems {
  readonly #present = new Map<string, IngressProblem>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get all(): readonly IngressProblem[] {
    return [...this.#present.values()];
  }

  /** Problems of Ingresses that are served no longer go with them. */
  retain(ingresses: readonly IngressProblem["ingress"][]): void {
    const served = new Set(ingresses);
    for (const [key, { ingress }] of this.#present) if (!served.has(ingress)) this.#present.delete(key);
  }

  /** Of one request for the route. */
  judge(route: ServiceRoute, { refused, appProtocol }: EndpointPicker, headers: HeaderList): void {
    this.#set(
      route,
      "EndpointAddressRefused",
      refused.length === 0 ? undefined : refusedText(route, refused),
    );
    const needsHttp2 = appProtocol === undefined && isGrpc(headers);
    // Other requests say nothing of it, and only another Service ends it.
    if (needsHttp2 || appProtocol !== undefined)
      this.#set(route, "MissingAppProtocol", needsHttp2 ? appProtocolText(route) : undefined);
  }

  #set(route: ServiceRoute, reason: string, message: string | undefined): void {
    const { ingress, namespace, service, port } = route;
    const key = `${reason} ${namespace}/${ingress.metadata.name} ${service} ${port}`;
    const known = this.#present.get(key);
    if (known?.message === message && (known === undefined || known.ingress === ingress)) return;
    if (message === undefined) this.#present.delete(key);
    else if (known !== undefined || this.#present.size < MAX_ROUTE_PROBLEMS)
      this.#present.set(key, { ingress, reason, message });
    else return;
    this.#onChange();
  }
}

function refusedText({ service }: ServiceRoute, refused: readonly string[]): string {
  const rest = refused.length - MAX_NAMED_ADDRESSES;
  const named = refused.slice(0, MAX_NAMED_ADDRESSES).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  return `endpoints of service ${JSON.stringify(service)} have addresses that may not be dialled: ${named} (listeners.ingress.allowedEndpointAddresses)`;
}

function appProtocolText({ service, port }: ServiceRoute): string {
  return `gRPC needs HTTP/2, and port ${JSON.stringify(port)} of service ${JSON.stringify(service)} says nothing of it: set appProtocol: kubernetes.io/h2c there`;
}

/** gRPC alone: gRPC-Web is for HTTP/1.1. */
function isGrpc(headers: HeaderList): boolean {
  return headerTokens(headers, "content-type").some((type) => /^application\/grpc(?:$|[+;])/i.test(type));
}
