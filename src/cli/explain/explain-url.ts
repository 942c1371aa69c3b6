import type { HeaderList } from "@sluice/client/internal/http/header-list";
import { WIRE_ERRORS } from "../../api/wire-errors/wire-errors.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { GatewayConfiguration } from "../../config/configuration.ts";
import { loadConfiguration } from "../../config/load-configuration.ts";
import type { IngressListener } from "../../config/sections/ingress-listener.ts";
import { compileRoutes, findingServed } from "../../ingress/compile-routes.ts";
import { IngressClasses } from "../../ingress/ingress-classes.ts";
import { readIngressRequest, withoutSegments } from "../../ingress/ingress-request.ts";
import { rewrittenTarget } from "../../ingress/path-rewrite.ts";
import { accepts, backendOf, type Route, type RouteBackend, type RouteFilters } from "../../ingress/route.ts";
import type { RouteTable } from "../../ingress/route-table.ts";
import { snapshotCluster } from "../../kubernetes/component.ts";
import { atOnce } from "../../lifecycle/slices.ts";
import { UsageError } from "../command.ts";
import { printText } from "../print-text.ts";

/**
 * Prints the Ingress that serves a URL, and the request its backend gets, or the redirect to HTTPS.
 * Exit code 1 if no rule matches. Throws UsageError.
 */
export async function explainUrl(url: string, configFile: string): Promise<number> {
  const configuration = await loadConfiguration(configFile);
  const { ingress } = configuration.listeners;
  if (ingress === undefined) throw new UsageError("a URL needs listeners.ingress in the configuration");
  refuseLive(configuration);
  // Keeps the URL as written: a parser would normalize what a client sends.
  const [, authority = "", target = ""] = /^https?:\/\/([^/?#]*)([^#]*)$/i.exec(url) ?? [];
  const headers: HeaderList = [["Host", authority]];
  const request = readIngressRequest("GET", target === "" ? "/" : target, headers, 1);
  if ("refusal" in request) {
    printText(`refused with ${request.refusal.code}: ${request.refusal.message}\n`);
    return 1;
  }
  const matched = await snapshotCluster(
    configuration,
    () => undefined,
    ({ store }) =>
      routesOf(store, ingress).match(request.host, request.path, (route) =>
        accepts(route, { method: "GET", headers }),
      ),
  );
  const route = matched && backendOf(matched);
  if (route?.type === "service" && matched?.filters.redirectsToTls === true && /^http:/i.test(url)) {
    printText(`${ingressLine(route)}redirected with 308 to https://${request.host}${request.target}\n`);
    return 0;
  }
  const sent = route && matched && sentTarget(route, matched.filters, request.target);
  if (route === undefined || sent === undefined) {
    const { code, message } = WIRE_ERRORS["path-unknown"].ingress();
    printText(`refused with ${code}: ${message}\n`);
    return 1;
  }
  printText(describe(route, request.target, sent));
  return 0;
}

function refuseLive({ cluster }: GatewayConfiguration): void {
  if (cluster.live !== undefined) throw new UsageError("a URL is explained from cluster.manifests");
}

function routesOf(
  store: Pick<Cluster, "list" | "getNamespace">,
  listener: IngressListener,
): RouteTable<Route> {
  const classes = new IngressClasses(store.list("IngressClass"), listener);
  const served = atOnce(findingServed(store.list("Ingress"), classes, (name) => store.getNamespace(name)));
  return atOnce(compileRoutes(served, listener.hostOwnership)).table;
}

function sentTarget(route: RouteBackend, { rewrite }: RouteFilters, target: string): string | undefined {
  if (route.type === "streaming") return withoutSegments(target, route.strippedSegments);
  return rewrite === undefined ? target : rewrittenTarget(rewrite, target);
}

function describe(route: RouteBackend, asked: string, sent: string): string {
  const backend =
    route.type === "streaming"
      ? `StreamingGateway ${route.name}`
      : `Service ${route.service}, port ${route.port}`;
  const path = sent === asked ? `${sent}, as it came` : `${sent} in place of ${asked}`;
  const affinity = route.type === "service" ? route.options.affinity : undefined;
  const session = affinity && `session cookie ${affinity.name}, ${affinity.mode}`;
  const lines = [backend, `path ${path}`, session, ""];
  return ingressLine(route) + lines.filter((line) => line !== undefined).join("\n");
}

function ingressLine({ names: { namespace, ingress } }: RouteBackend): string {
  return `Ingress ${namespace}/${ingress}\n`;
}
