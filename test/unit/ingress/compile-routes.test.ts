import { describe, expect, it } from "vitest";
import type { Ingress, IngressClass } from "../../../src/api/networking-objects.ts";
import type { Namespace } from "../../../src/api/objects.ts";
import type { HostOwnership } from "../../../src/config/sections/ingress-listener.ts";
import { compileRoutes, findingServed } from "../../../src/ingress/compile-routes.ts";
import { IngressClasses } from "../../../src/ingress/ingress-classes.ts";
import { backendOf, type Route } from "../../../src/ingress/route.ts";
import { DEFAULT_TUNNEL_IDLE_TIMEOUT_MS, routeOptionsOf } from "../../../src/ingress/route-options.ts";
import { atOnce } from "../../../src/lifecycle/slices.ts";

const CONTROLLER = "sluice.dev/ingress-controller";
const options = { controllerName: CONTROLLER, legacyClassName: "legacy", servesWithoutClass: false };

function classNamed(name: string, controller = CONTROLLER, more: object = {}): IngressClass {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "IngressClass",
    metadata: { name, ...more },
    spec: { controller },
  };
}

/** Where a request goes whose candidate has one backend. */
const backendAt = (route: Route | undefined) => route && backendOf(route);

function ingress(name: string, spec: object, metadata: object = {}): Ingress {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "Ingress",
    metadata: { name, namespace: "default", ...metadata },
    spec: { ingressClassName: "ours", ...spec },
  };
}

const service = (name: string): object => ({ service: { name, port: { number: 80 } } });
const rule = (host: string | undefined, path: string, backend: object): object => ({
  ...(host !== undefined && { host }),
  http: { paths: [{ path, pathType: "Prefix", backend }] },
});

function compiled(ingresses: readonly Ingress[], hostOwnership: HostOwnership = "shared") {
  return atOnce(compileRoutes(ingresses, hostOwnership));
}

function served(
  ingresses: readonly Ingress[],
  namespaces: Readonly<Record<string, Namespace>> = {},
): string[] {
  const classes = new IngressClasses([classNamed("ours")], options);
  return atOnce(findingServed(ingresses, classes, (name) => namespaces[name])).map(
    ({ metadata }) => metadata.name,
  );
}

describe("whose Ingresses are ours", () => {
  const isDefault = { annotations: { "ingressclass.kubernetes.io/is-default-class": "true" } };
  const annotated = (value: string) => ({ annotations: { "kubernetes.io/ingress.class": value } });

  it.each([
    ["by its class", [classNamed("ours")], ingress("a", {}), true],
    [
      "not by a class of another controller",
      [classNamed("ours", "example.com/other")],
      ingress("a", {}),
      false,
    ],
    ["not by a class that is not there", [], ingress("a", {}), false],
    [
      "by the annotation, which goes before the field",
      [classNamed("ours")],
      ingress("a", { ingressClassName: "other" }, annotated("ours")),
      true,
    ],
    [
      "by the configured legacy name",
      [],
      ingress("a", { ingressClassName: undefined }, annotated("legacy")),
      true,
    ],
    ["not by a foreign annotation", [classNamed("ours")], ingress("a", {}, annotated("nginx")), false],
    [
      "by the default class",
      [classNamed("ours", CONTROLLER, isDefault)],
      ingress("a", { ingressClassName: undefined }),
      true,
    ],
    [
      "not by somebody else's default class",
      [classNamed("ours"), classNamed("theirs", "example.com/x", isDefault)],
      ingress("a", { ingressClassName: undefined }),
      false,
    ],
    ["not without a class", [classNamed("ours")], ingress("a", { ingressClassName: undefined }), false],
  ])("%s", (_what, classes, object, expected) => {
    expect(new IngressClasses(classes, options).owns(object)).toBe(expected);
  });

  it("without a class by option", () => {
    expect(
      new IngressClasses([], { ...options, servesWithoutClass: true }).owns(
        ingress("a", { ingressClassName: undefined }),
      ),
    ).toBe(true);
  });

  it("of two default classes the newest is it, of equals the first by name", () => {
    const created = { z: "2026-01-01T00:00:00Z", b: "2026-02-01T00:00:00Z", a: "2026-02-01T00:00:00Z" };
    const isServed = (ours: string, names: (keyof typeof created)[]) => {
      const classes = names.map((name) =>
        classNamed(name, name === ours ? CONTROLLER : "example.com/x", {
          ...isDefault,
          creationTimestamp: created[name],
        }),
      );
      return new IngressClasses(classes, options).owns(ingress("i", { ingressClassName: undefined }));
    };
    expect(["z", "b", "a"].filter((ours) => isServed(ours, ["z", "b", "a"]))).toEqual(["a"]);
    expect(isServed("z", ["z"])).toBe(true);
    expect(isServed("z", [])).toBe(false);
  });
});

describe("which of them are served, and in what order", () => {
  it("the oldest first, then by namespace and name", () => {
    const at = (name: string, creationTimestamp: string, namespace = "default") =>
      ingress(name, {}, { creationTimestamp, namespace });
    expect(
      served([
        at("b", "2026-02-01T00:00:00Z"),
        at("z", "2026-01-01T00:00:00Z"),
        at("a", "2026-02-01T00:00:00Z"),
        at("x", "2026-02-01T00:00:00Z", "aaa"),
      ]),
    ).toEqual(["z", "x", "a", "b"]);
  });

  it("none that is being deleted, or whose namespace is", () => {
    const namespace = (name: string, status: object, metadata: object = {}): Namespace => ({
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name, ...metadata },
      ...status,
    });
    const namespaces = {
      ending: namespace("ending", { status: { phase: "Terminating" } }),
      deleted: namespace("deleted", {}, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    };
    const gone = ingress("gone", {}, { deletionTimestamp: "2026-01-01T00:00:00Z" });
    const inEnding = ingress("in-ending", {}, { namespace: "ending" });
    const inDeleted = ingress("in-deleted", {}, { namespace: "deleted" });
    expect(served([gone, inEnding, inDeleted, ingress("stays", {})], namespaces)).toEqual(["stays"]);
  });
});

describe("a host that another namespace named first", () => {
  const inNamespace = (namespace: string, name: string, spec: object) => ingress(name, spec, { namespace });
  const tenants = [
    inNamespace("one", "first", { rules: [rule("a.com", "/x", service("one"))] }),
    inNamespace("two", "second", {
      rules: [rule("A.com", "/y", service("two")), rule("b.com", "/", service("b"))],
      defaultBackend: service("default-of-two"),
    }),
  ];

  it("is not served by that Ingress' default backend", () => {
    const { table } = compiled(tenants);
    expect(backendAt(table.match("a.com", "/x"))).toMatchObject({ service: "one" });
    expect(table.match("a.com", "/z")).toBeUndefined();
    expect(backendAt(table.match("b.com", "/z"))).toMatchObject({ service: "b" });
    expect(backendAt(table.match("c.com", "/z"))).toMatchObject({ service: "default-of-two" });
  });

  it("has the default backend of another Ingress of its own namespace", () => {
    const younger = inNamespace("one", "younger", {
      rules: [rule("a.com", "/w", service("w"))],
      defaultBackend: service("own-default"),
    });
    expect(backendAt(compiled([...tenants, younger]).table.match("a.com", "/z"))).toMatchObject({
      service: "own-default",
    });
  });

  it("serves the other namespace's paths where hosts are shared, and reports them", () => {
    const { table, problems } = compiled(tenants);
    expect(backendAt(table.match("a.com", "/y"))).toMatchObject({ namespace: "two", service: "two" });
    expect(problems).toEqual([
      {
        origin: tenants[1],
        reason: "HostOfAnotherNamespace",
        message:
          'host "a.com" was named first by an Ingress of another namespace: its rules here are served beside those',
        owner: "one/first",
      },
    ]);
  });

  it("serves none of them where the first namespace owns it, and reports them", () => {
    const { table, problems } = compiled(tenants, "first");
    expect(table.match("a.com", "/y")).toBeUndefined();
    expect(backendAt(table.match("b.com", "/y"))).toMatchObject({ service: "b" });
    expect(problems).toMatchObject([
      {
        reason: "HostOfAnotherNamespace",
        message:
          'host "a.com" was named first by an Ingress of another namespace: its rules here are not served',
      },
    ]);
  });

  it("is no such host where rules name none", () => {
    const hostless = ["one", "two"].map((namespace) =>
      inNamespace(namespace, namespace, { rules: [rule(undefined, `/${namespace}`, service(namespace))] }),
    );
    const { table, problems } = compiled(hostless, "first");
    expect(backendAt(table.match("any.com", "/two"))).toMatchObject({ service: "two" });
    expect(problems).toEqual([]);
  });
});

describe("what they are compiled to", () => {
  it("the first of two equal routes serves, and the second is told", () => {
    const { table, problems } = compiled([
      ingress("first", { rules: [rule("a.com", "/x", service("one"))] }),
      ingress("second", { rules: [rule("A.com", "/x", service("two"))] }),
    ]);
    expect(backendAt(table.match("a.com", "/x"))).toMatchObject({ service: "one" });
    expect(problems).toMatchObject([{ reason: "DuplicateRoute", origin: { metadata: { name: "second" } } }]);
  });

  it("a resource backend that nobody knows is skipped with its name, and the host does not fall to others", () => {
    const bucket = { resource: { apiGroup: "storage.example.com", kind: "Bucket", name: "b" } };
    const { table, problems } = compiled([
      ingress("buckets", { rules: [rule("a.b.com", "/", bucket)] }),
      ingress("wide", { rules: [rule("*.b.com", "/", service("wide"))] }),
    ]);
    expect(problems).toMatchObject([
      { reason: "SkippedBackend", message: 'resource backend "Bucket.storage.example.com" is not supported' },
    ]);
    expect(table.match("a.b.com", "/")).toBeUndefined();
    expect(backendAt(table.match("x.b.com", "/"))).toMatchObject({ service: "wide" });
  });

  it.each([
    ["/api/v[0-9]+/.*", 1],
    ["/a(/|$)(.*)", 1],
    ["^/a", 1],
    ["/a.b/c+d/~e", 0],
    ["/", 0],
  ])("ImplementationSpecific %s: %i warnings that it is no regular expression", (path, count) => {
    const paths = [{ path, pathType: "ImplementationSpecific", backend: service("one") }];
    const { problems } = compiled([ingress("regex", { rules: [{ host: "a.com", http: { paths } }] })]);
    const message = `path ${JSON.stringify(path)} looks like a regular expression and is not one here: it is matched literally, as a prefix`;
    expect(problems).toMatchObject(Array(count).fill({ reason: "RegularExpression", message }));
  });

  it("a Prefix is a path whatever it looks like", () => {
    expect(compiled([ingress("a", { rules: [rule("a.com", "/a(.*)", service("one"))] })]).problems).toEqual(
      [],
    );
  });

  it("parameters of a class are not read, which its Ingresses are told", () => {
    const parameters = { apiGroup: "example.com", kind: "Settings", name: "s" };
    const theirs = classNamed("ours");
    const classes = new IngressClasses([{ ...theirs, spec: { ...theirs.spec, parameters } }], options);
    expect(classes.ignoredParametersOf(ingress("a", {}))).toBe(
      'IngressClass "ours" has spec.parameters (Settings "s"), which are not read',
    );
    expect(classes.ignoredParametersOf(ingress("a", { ingressClassName: "other" }))).toBeUndefined();
  });

  it("a StreamingGateway backend has its path as the prefix to strip", () => {
    const backend = { resource: { apiGroup: "sluice.dev", kind: "StreamingGateway", name: "a" } };
    const { table } = compiled([ingress("clusters", { rules: [rule(undefined, "/clusters/a/", backend)] })]);
    expect(backendAt(table.match("h", "/clusters/a/api"))).toMatchObject({
      type: "streaming",
      name: "a",
      strippedSegments: 2,
    });
  });

  it("an Ingress of 5,000 rules keeps every one", () => {
    const rules = Array.from({ length: 5_000 }, (_, index) =>
      rule(`h${index}.com`, "/", service(`s${index}`)),
    );
    const { table } = compiled([ingress("large", { rules })]);
    expect(backendAt(table.match("h0.com", "/"))).toMatchObject({ service: "s0" });
    expect(backendAt(table.match("h4999.com", "/a"))).toMatchObject({ service: "s4999" });
  });

  it.each([
    ["sluice.dev/tunnel-idle-timeout-seconds", "60", "from 3600"],
    ["sluice.dev/response-timeout-seconds", "0", "from 1 "],
    ["sluice.dev/response-timeout-seconds", "soon", "number of seconds"],
    ["sluice.dev/backend-server-name", "no name", "a DNS name"],
    ["sluice.dev/tls-redirect", "yes", '"true" or "false"'],
  ])("annotation %s: %s is told and not taken", (name, value, text) => {
    const { options: read, problems } = routeOptionsOf(ingress("a", {}, { annotations: { [name]: value } }));
    expect(problems).toEqual([expect.stringContaining(text)]);
    expect(read).toEqual(routeOptionsOf(ingress("a", {})).options);
    expect(read.tunnelIdleTimeoutMs).toBe(DEFAULT_TUNNEL_IDLE_TIMEOUT_MS);
  });
});

it("routes are compiled in more steps than there are Ingresses", () => {
  const many = Array.from({ length: 1_000 }, (_, index) =>
    ingress(`a${index}`, { rules: [rule(`host-${index}`, "/", service("app"))] }),
  );
  const classes = new IngressClasses([classNamed("ours")], options);
  const counted = [findingServed(many, classes, () => undefined), compileRoutes(many, "first")];
  for (const work of counted) expect([...work].length).toBeGreaterThanOrEqual(2 * many.length);
});
