import { type HeaderList, headerValue } from "@sluice/client/internal/http/header-list";
import type { UpstreamError } from "@sluice/client/internal/net/upstream-error";
import type { RouteBackend, RouteOrigin, ServiceRoute } from "./route.ts";
import type { EndpointPicker } from "./service-balancer.ts";

/** The appProtocol of pods that speak HTTP/2 with prior knowledge (KEP-3726). */
export const H2C_APP_PROTOCOL = "kubernetes.io/h2c";

/** Problems of routes that requests found, at one time. Past it further ones are not reported. */
const MAX_ROUTE_PROBLEMS = 1_000;
const MAX_NAMED_ADDRESSES = 5;

/** The content type of gRPC, but not of gRPC-Web, which uses HTTP/1.1. */
const GRPC = /^application\/grpc(?:$|[+;])/i;

interface RouteProblem extends IngressProblem {
  readonly appProtocol?: string | undefined;
  /** True if an endpoint's answer showed the problem, and not only a request. */
  readonly isAnswered?: boolean;
}

interface ProtocolFinding {
  readonly appProtocol: string | undefined;
  readonly why: string;
  /** Undefined means no appProtocol, which means HTTP/1.1. */
  readonly wanted: string | undefined;
  readonly isAnswered: boolean;
}

/** Problems that only a request reveals; each is reported while requests find it. */
export class RouteProblems {
  readonly #present = new Map<string, RouteProblem>();
  readonly #onChange: () => void;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get all(): readonly IngressProblem[] {
    return [...this.#present.values()];
  }

  /** Drops problems of objects that are no longer served. */
  retain(origins: readonly IngressProblem["origin"][]): void {
    if (this.#present.size === 0) return;
    const served = new Set(origins);
    for (const [key, { origin }] of this.#present) if (!served.has(origin)) this.#present.delete(key);
  }

  /** Checks one request for the route. */
  judge(
    route: ServiceRoute,
    { refused, appProtocol }: Pick<EndpointPicker, "refused" | "appProtocol">,
    headers: HeaderList,
  ): void {
    const needsHttp2 = appProtocol === undefined && GRPC.test(headerValue(headers, "content-type") ?? "");
    if (this.#present.size === 0 && refused.length === 0 && !needsHttp2) return;
    const addresses = keyOf(route, "addresses");
    if (refused.length === 0) this.#end(addresses);
    else {
      const message = refusedText(route, refused);
      this.#begin(addresses, { origin: route.origin, reason: "EndpointAddressRefused", message });
    }
    // Other requests prove nothing about this problem; only a changed Service ends it.
    const protocol = keyOf(route, "protocol");
    if (this.#present.get(protocol)?.appProtocol !== appProtocol) this.#end(protocol);
    const why = "gRPC needs HTTP/2, which it does not name";
    if (needsHttp2)
      this.#setProtocol(route, { appProtocol, why, wanted: H2C_APP_PROTOCOL, isAnswered: false });
  }

  /** Checks a failed exchange: its backend may speak another protocol than the Service declares. */
  judgeError(
    { route, appProtocol }: { readonly route: RouteBackend; readonly appProtocol: string | undefined },
    { spoken }: Pick<UpstreamError, "spoken">,
  ): void {
    // Upgrades always use HTTP/1.1, even if the Service declares HTTP/2.
    if (route.type !== "service" || (spoken === "HTTP/2" && appProtocol === H2C_APP_PROTOCOL)) return;
    const found = (why: string, wanted: string | undefined): void =>
      this.#setProtocol(route, { appProtocol, why, wanted, isAnswered: true });
    if (spoken === "HTTP/1") found("an endpoint does not speak HTTP/2", undefined);
    else if (spoken === "HTTP/2") found("an endpoint speaks HTTP/2 alone", H2C_APP_PROTOCOL);
    else if (spoken === "TLS") found("an endpoint speaks TLS", "https");
  }

  /** An answer's finding replaces a request's. No other does: findings may alternate by request. */
  #setProtocol(route: ServiceRoute, { appProtocol, why, wanted, isAnswered }: ProtocolFinding): void {
    const { origin } = route;
    const key = keyOf(route, "protocol");
    const known = this.#present.get(key);
    const isKnown = known?.origin === origin && known.appProtocol === appProtocol;
    if (isKnown && (known.isAnswered === true || !isAnswered)) return;
    const reason = appProtocol === undefined ? "MissingAppProtocol" : "WrongAppProtocol";
    const port = `port ${JSON.stringify(route.port)} of service ${JSON.stringify(route.service)}`;
    const remedy =
      wanted === undefined ? `remove appProtocol: ${appProtocol} there` : `set appProtocol: ${wanted} there`;
    const message = `${port}: ${why}: ${remedy}`;
    this.#begin(key, { origin, reason, message, appProtocol, isAnswered });
  }

  #begin(key: string, problem: RouteProblem): void {
    const known = this.#present.get(key);
    if (known?.message === problem.message && known.origin === problem.origin) return;
    if (known === undefined && this.#present.size >= MAX_ROUTE_PROBLEMS) return;
    this.#present.set(key, problem);
    this.#onChange();
  }

  #end(key: string): void {
    if (this.#present.delete(key)) this.#onChange();
  }
}

function keyOf({ origin, namespace, service, port }: ServiceRoute, about: string): string {
  return `${about} ${namespace}/${origin.metadata.name} ${service} ${port}`;
}

function refusedText({ service }: ServiceRoute, refused: readonly string[]): string {
  const rest = refused.length - MAX_NAMED_ADDRESSES;
  const named = refused.slice(0, MAX_NAMED_ADDRESSES).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
  return `endpoints of service ${JSON.stringify(service)} have addresses that may not be dialled: ${named} (listeners.ingress.allowedEndpointAddresses)`;
}

export interface IngressProblem {
  readonly origin: RouteOrigin;
  readonly reason: string;
  readonly message: string;
  /** Only logged, because the origin's owner must not see it. */
  readonly owner?: string;
}

interface ProblemReporterOptions {
  readonly log: (problem: IngressProblem) => void;
  /** Sends an Event to the origin's owner. */
  readonly tell: (problem: IngressProblem) => void;
  /** False while another replica sends the Events. */
  readonly mayTell: () => boolean;
}

/** Reports each problem once while it lasts, however often the routes are compiled. */
export class ProblemReporter {
  readonly #options: ProblemReporterOptions;
  #present = new Map<string, { readonly problem: IngressProblem; isTold: boolean }>();

  constructor(options: ProblemReporterOptions) {
    this.#options = options;
  }

  /** Expects the complete list of present problems. */
  report(problems: readonly IngressProblem[]): void {
    const before = this.#present;
    this.#present = new Map();
    for (const problem of problems) {
      const key = problemKey(problem);
      const known = before.get(key);
      if (known === undefined) this.#options.log(problem);
      this.#present.set(key, { problem, isTold: known?.isTold ?? false });
    }
    this.tellRest();
  }

  /** Reports the problems that this replica left to another one. */
  tellRest(): void {
    const { tell, mayTell } = this.#options;
    if (!mayTell()) return;
    for (const entry of this.#present.values()) {
      if (!entry.isTold) tell(entry.problem);
      entry.isTold = true;
    }
  }
}

function problemKey({ origin: { metadata }, reason, message }: IngressProblem): string {
  return `${metadata.namespace ?? "default"}/${metadata.name} ${metadata.uid ?? ""} ${reason} ${message}`;
}
