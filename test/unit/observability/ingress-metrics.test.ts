import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { atOnce } from "../../../src/lifecycle/slices.ts";
import { RouteMetrics, type RouteNames } from "../../../src/observability/ingress-metrics.ts";

const PREFIX = "sluice_ingress_route_requests_total";

function names(service: string, ingress = "shop"): RouteNames {
  return { namespace: "web", ingress, service };
}

function metrics(routes: readonly RouteNames[], maxRoutes: number) {
  const registry = new Registry();
  const counted = new RouteMetrics(registry);
  atOnce(counted.routesReplaced(routes, maxRoutes));
  return { counted, lines: async () => (await registry.metrics()).split("\n") };
}

function line({ namespace, ingress, service }: RouteNames, code: string, count: number): string {
  return `${PREFIX}{namespace="${namespace}",ingress="${ingress}",service="${service}",code="${code}"} ${count}`;
}

const OTHER = { namespace: "_other", ingress: "_other", service: "_other" };
const UNMATCHED = { namespace: "_none", ingress: "_none", service: "_none" };

describe("metrics by route", () => {
  it("counts by Ingress, Service and class of the code, and what no rule matched", async () => {
    const { counted, lines } = metrics([names("a"), names("b")], 10);
    for (const code of [200, 204, 503]) counted.requestEnded(names("a"), code, 0.01);
    counted.requestEnded(names("b"), 101, undefined);
    counted.requestEnded(names("b"), 0, 2);
    counted.requestEnded(undefined, 404, 0);
    const shown = await lines();
    expect(shown.filter((each) => each.startsWith(PREFIX)).toSorted()).toEqual(
      [
        line(names("a"), "2xx", 2),
        line(names("a"), "5xx", 1),
        line(names("b"), "1xx", 1),
        line(names("b"), "none", 1),
        line(UNMATCHED, "4xx", 1),
      ].toSorted(),
    );
    expect(shown).toContain(
      'sluice_ingress_request_duration_seconds_count{namespace="web",ingress="shop",service="b"} 1',
    );
  });

  it("replaces routes in as many steps as there are", () => {
    const { counted } = metrics([], 10);
    const many = Array.from({ length: 100 }, (_, index) => names(`s${index}`));
    expect([...counted.routesReplaced(many, 10)]).toHaveLength(many.length);
  });

  it("past the limit counts the rest together, and says how many they are", async () => {
    const many = Array.from({ length: 100 }, (_, index) => names(`s${index}`));
    const { counted, lines } = metrics([...many, ...many], 3);
    for (const route of many) counted.requestEnded(route, 200, 0.01);
    // Names that no route has, as of a request that was on its way while routes were replaced.
    counted.requestEnded(names("gone"), 200, 0.01);
    const shown = await lines();
    expect(shown.filter((each) => each.startsWith(PREFIX))).toHaveLength(4);
    expect(shown).toContain(line(OTHER, "2xx", 98));
    expect(shown).toContain("sluice_ingress_routes_without_series 97");
  });

  it("removes the series of routes that are gone, and keeps the counts of the others", async () => {
    const { counted, lines } = metrics([names("a"), names("b")], 2);
    for (const service of ["a", "b"]) counted.requestEnded(names(service), 200, 0.01);
    atOnce(counted.routesReplaced([names("b"), names("c")], 2));
    for (const service of ["a", "b", "c"]) counted.requestEnded(names(service), 200, 0.01);
    const shown = (await lines()).join("\n");
    expect(shown).not.toContain('service="a"');
    expect(shown).toContain(line(names("b"), "2xx", 2));
    expect(shown).toContain(line(names("c"), "2xx", 1));
    expect(shown).toContain(line(OTHER, "2xx", 1));
  });
});
