import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HeaderLine } from "../../../packages/client/src/http/header-list.ts";
import {
  hostForMatching,
  readIngressRequest,
  requestPathOf,
  rulePathOf,
  withoutSegments,
} from "../../../src/ingress/ingress-request.ts";
import { accepts, backendOf, type Route, type RouteBackend } from "../../../src/ingress/route.ts";
import { type PathType, RouteTable } from "../../../src/ingress/route-table.ts";

type Rule = readonly [pathType: PathType, path: string];

function tableOf(rules: readonly Rule[], host?: string): RouteTable<string> {
  const table = new RouteTable<string>();
  for (const [pathType, path] of rules) table.add({ host, path, pathType, route: `${pathType} ${path}` });
  return table;
}

const prefixes = (...paths: string[]): Rule[] => paths.map((path) => ["Prefix", path]);

describe("the path table of KEP-1453", () => {
  it.each<[number, Rule[], string, string | undefined]>([
    [1, prefixes("/"), "/any/path", "Prefix /"],
    [2, [["Exact", "/foo"]], "/foo", "Exact /foo"],
    [3, [["Exact", "/foo"]], "/bar", undefined],
    [4, [["Exact", "/foo"]], "/foo/", undefined],
    [5, [["Exact", "/foo/"]], "/foo", undefined],
    [6, prefixes("/foo"), "/foo", "Prefix /foo"],
    [6, prefixes("/foo"), "/foo/", "Prefix /foo"],
    [7, prefixes("/foo/"), "/foo", "Prefix /foo/"],
    [7, prefixes("/foo/"), "/foo/", "Prefix /foo/"],
    [8, prefixes("/aaa/bb"), "/aaa/bbb", undefined],
    [9, prefixes("/aaa/bbb"), "/aaa/bbb", "Prefix /aaa/bbb"],
    [10, prefixes("/aaa/bbb/"), "/aaa/bbb", "Prefix /aaa/bbb/"],
    [11, prefixes("/aaa/bbb"), "/aaa/bbb/", "Prefix /aaa/bbb"],
    [12, prefixes("/aaa/bbb"), "/aaa/bbb/ccc", "Prefix /aaa/bbb"],
    [13, prefixes("/aaa/bbb"), "/aaa/bbbxyz", undefined],
    [14, prefixes("/", "/aaa"), "/aaa/ccc", "Prefix /aaa"],
    [15, prefixes("/", "/aaa", "/aaa/bbb"), "/aaa/bbb", "Prefix /aaa/bbb"],
    [16, prefixes("/", "/aaa", "/aaa/bbb"), "/ccc", "Prefix /"],
    [17, prefixes("/aaa"), "/ccc", undefined],
    [18, [...prefixes("/foo"), ["Exact", "/foo"]], "/foo", "Exact /foo"],
  ])("row %i: %j and a request for %s give %s", (_row, rules, path, expected) => {
    expect(tableOf(rules).match("any.example.com", path)).toBe(expected);
    expect(tableOf([...rules].reverse()).match("any.example.com", path)).toBe(expected);
  });

  it.each<[string, Rule[], string, string | undefined]>([
    ["the longer of two equal prefixes", prefixes("/foo", "/foo/"), "/foo", "Prefix /foo/"],
    ["Exact / is the root alone", [["Exact", "/"]], "/a", undefined],
    [
      "Exact does not take the prefix's other requests",
      [["Exact", "/foo"], ...prefixes("/foo")],
      "/foo/",
      "Prefix /foo",
    ],
    [
      "ImplementationSpecific is Prefix",
      [["ImplementationSpecific", "/foo"]],
      "/foo/a",
      "ImplementationSpecific /foo",
    ],
    ["and empty it is every path", [["ImplementationSpecific", ""]], "/x", "ImplementationSpecific "],
    ["case counts", prefixes("/foo"), "/FOO", undefined],
    ["an empty element is an element", prefixes("/a/b"), "/a//b", undefined],
  ])("%s", (_what, rules, path, expected) => {
    expect(tableOf(rules).match("h", path)).toBe(expected);
  });

  it("agrees with a walk over all rules", () => {
    const element = fc.constantFrom("a", "b", "ab", "c");
    const path = fc
      .tuple(fc.array(element, { maxLength: 4 }), fc.boolean())
      .map(([elements, slash]) =>
        elements.length === 0 ? "/" : `/${elements.join("/")}${slash ? "/" : ""}`,
      );
    const rule = fc.tuple(fc.constantFrom<PathType>("Exact", "Prefix"), path);
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 12 }), path, (rules, requested) => {
        expect(tableOf(rules).match("h", requested)).toBe(naiveMatch(rules, requested));
      }),
    );
  });
});

/** Straight from the KEP's words: compare with every rule, then choose. */
function naiveMatch(rules: readonly Rule[], requested: string): string | undefined {
  const elements = (path: string): string[] => path.split("/").slice(1);
  const matches = rules.filter(([pathType, path]) => {
    if (pathType === "Exact") return path === requested;
    const wanted = elements(path.endsWith("/") ? path.slice(0, -1) : path);
    const given = elements(requested);
    return wanted.every((element, index) => given[index] === element);
  });
  const exact = matches.find(([pathType]) => pathType === "Exact");
  const [longest] = matches.toSorted((a, b) => b[1].length - a[1].length);
  const best = exact ?? longest;
  return best && `${best[0]} ${best[1]}`;
}

describe("hosts", () => {
  const table = new RouteTable<string>();
  for (const host of ["*.foo.com", "foo.bar.com", undefined]) {
    table.add({ host, path: "/only", pathType: "Prefix", route: host ?? "any" });
  }

  it.each([
    ["bar.foo.com", "*.foo.com"],
    ["baz.bar.foo.com", "any"],
    ["foo.com", "any"],
    ["foo.bar.com", "foo.bar.com"],
    ["192.0.2.1", "any"],
    ["[::1]", "any"],
  ])("%s is served by the rules of %s", (host, expected) => {
    expect(table.match(host, "/only")).toBe(expected);
  });

  it("a path that its host does not have is not looked for under a wider host", () => {
    const wide = new RouteTable<string>();
    wide.add({ host: "a.foo.com", path: "/a", pathType: "Prefix", route: "own" });
    wide.add({ host: "*.foo.com", path: "/", pathType: "Prefix", route: "wildcard" });
    expect(wide.match("a.foo.com", "/b")).toBeUndefined();
    expect(wide.match("b.foo.com", "/b")).toBe("wildcard");
  });

  it("falls back to the default of the host's Ingress, and to the global one for hosts that no rule names", () => {
    const defaults = new RouteTable<string>();
    for (const host of ["a.com", "own.com", "*.wild.com"]) {
      defaults.add({ host, path: "/a", pathType: "Exact", route: "a" });
    }
    defaults.addDefault({ hosts: [], route: "global" });
    expect(defaults.match("own.com", "/b")).toBeUndefined();
    expect(defaults.match("x.wild.com", "/b")).toBeUndefined();
    expect(defaults.match("own.com", undefined)).toBeUndefined();
    defaults.addDefault({ hosts: ["a.com"], route: "of a.com" });
    defaults.addDefault({ hosts: ["a.com"], route: "younger" });
    expect(defaults.match("a.com", "/b")).toBe("of a.com");
    expect(defaults.match("b.com", "/b")).toBe("global");
    expect(defaults.match("b.com", undefined)).toBe("global");
  });

  it.each([
    ["Foo.BAR.com", "foo.bar.com"],
    ["foo.bar.com:8080", "foo.bar.com"],
    ["foo.bar.com.", "foo.bar.com"],
    ["foo.bar.com.:80", "foo.bar.com"],
    ["my_host", "my_host"],
    ["192.0.2.1:80", "192.0.2.1"],
    ["[2001:DB8::1]:443", "[2001:db8::1]"],
    ["", undefined],
    ["a b", undefined],
    ["a..b", undefined],
    ["a/b", undefined],
    ["user@host", undefined],
    ["host:port", undefined],
    ["feature-.preview.test", "feature-.preview.test"],
    ["-a.com", "-a.com"],
    ["x".repeat(64), undefined],
    ["::1", undefined],
  ])("%j is matched as %j", (authority, expected) => {
    expect(hostForMatching(authority)).toBe(expected);
  });
});

describe("what is matched is what is forwarded", () => {
  it.each([
    ["/foo", "/foo", "/foo"],
    ["/foo?a=/../b", "/foo", "/foo?a=/../b"],
    ["", "/", "/"],
    ["?x", "/", "/?x"],
    ["/a/./b", "/a/b", "/a/b"],
    ["/a/../b?q", "/b", "/b?q"],
    ["/a/%2e%2E/b", "/b", "/b"],
    ["/a/b/..", "/a/", "/a/"],
    ["/a/.", "/a/", "/a/"],
    ["/%61dmin", "/admin", "/%61dmin"],
    ["/a%2Fb", "/a%2Fb", "/a%2Fb"],
    ["/caf%c3%a9", "/caf%C3%A9", "/caf%c3%a9"],
    ['/a"b{c}', "/a%22b%7Bc%7D", '/a"b{c}'],
    ["/a\\b", "/a%5Cb", "/a\\b"],
    ["/a%5C..%5Cb", "/a%5C..%5Cb", "/a%5C..%5Cb"],
    ["/a//b", "/a//b", "/a//b"],
    ["/.hidden", "/.hidden", "/.hidden"],
    ["/..a/b", "/..a/b", "/..a/b"],
  ])("%j is the path %j, forwarded as %j", (target, path, forwarded) => {
    expect(requestPathOf(target)).toEqual({ path, target: forwarded });
  });

  it.each([
    "/..",
    "/a/../../b",
    "/%2e%2e/a",
    "/%zz",
    "/%",
    "foo",
    "/a b",
    "/a#b",
    "/\u00e9",
    "?\u0001",
    "?a b",
  ])("%j is refused", (target) => {
    expect(requestPathOf(target)).toBeUndefined();
  });

  it("no path that was cleaned changes when it is read again", () => {
    const piece = fc.constantFrom("a", ".", "..", "%2e", "%2E%2e", "%2f", "%61", "b", "");
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const once = requestPathOf(`/${pieces.join("/")}`);
        if (once === undefined) return;
        expect(once.path).not.toMatch(/\/\.\.?(\/|$)/);
        expect(requestPathOf(once.target)?.path).toBe(once.path);
      }),
    );
  });
});

describe("a rule's path", () => {
  it.each([
    ["/%7Euser", "/~user"],
    ["/caf\u00e9", "/caf%C3%A9"],
    ["/caf%c3%a9", "/caf%C3%A9"],
    ["/a b", "/a%20b"],
    ["/what?", "/what%3F"],
    ["/a#b", "/a%23b"],
    ["/100%", "/100%25"],
    ["/{id}", "/%7Bid%7D"],
    ["/\ud83d\ude00", "/%F0%9F%98%80"],
    ["/\ud800", "/%EF%BF%BD"],
    ["/a%2fb", "/a%2Fb"],
    ["/plain/path", "/plain/path"],
    ["", ""],
  ])("%j is matched as %j", (path, expected) => {
    expect(rulePathOf(path)).toBe(expected);
  });

  it("matches a request for it, however the client escapes it", () => {
    const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 });
    const spelling = fc.constantFrom(
      (spelt: string) => spelt,
      (spelt: string) => spelt.toLowerCase(),
    );
    fc.assert(
      fc.property(text, spelling, (name, spelled) => {
        fc.pre(!/[/\\]/.test(name) && name !== "." && name !== "..");
        const escaped = encodeURIComponent(name).replace(/%../g, spelled);
        const path = requestPathOf(`/${escaped}`)?.path ?? "";
        fc.pre(!/[!'()*:@$&+,;=%[\]]/.test(name));
        expect(rulePathOf(`/${name}`)).toBe(path);
        expect(rulePathOf(path)).toBe(path);
      }),
    );
  });
});

describe("a target without its first segments", () => {
  it.each([
    ["/clusters/a/api/v1?x=/y", 2, "/api/v1?x=/y"],
    ["/clusters/a?x=/y", 2, "/?x=/y"],
    ["/clusters/a", 2, "/"],
    ["/clusters/a/", 2, "/"],
    ["/%63lusters/a/api", 2, "/api"],
    ["/api?q", 0, "/api?q"],
    ["/", 0, "/"],
    ["/a//b/c", 3, "/c"],
  ])("%s without %i is %s", (target, count, rest) => {
    expect(withoutSegments(target, count)).toBe(rest);
  });
});

describe("candidates of one path", () => {
  type Conditional = { readonly name: string; readonly match?: Route["match"] };
  const tableWith = (
    ...rules: readonly (readonly [path: string, name: string, match?: Route["match"]])[]
  ) => {
    const table = new RouteTable<Conditional>();
    const added = rules.map(([path, name, match]) =>
      table.add({
        host: "h",
        path,
        pathType: "Prefix",
        route: { name, ...(match && { match }) },
        isConditional: match !== undefined,
      }),
    );
    const at = (path: string, method: string, headers: HeaderLine[] = []) =>
      table.match("h", path, ({ match }) =>
        accepts({ match, filters: { redirectsToTls: false }, backends: [] }, { method, headers }),
      )?.name;
    return { added, at };
  };

  it("are asked in their order, and the shorter path after them", () => {
    const { added, at } = tableWith(
      ["/", "all"],
      ["/a", "posts", { method: "POST" }],
      ["/a", "canary", { headers: [["X-Canary", "yes"]] }],
      ["/a/b", "both", { method: "GET", headers: [["x-canary", "yes"]] }],
    );
    expect(added).toEqual([true, true, true, true]);
    expect(at("/a", "POST", [["x-canary", "yes"]])).toBe("posts");
    expect(at("/a", "GET", [["x-canary", "yes"]])).toBe("canary");
    expect(at("/a", "GET", [["x-canary", "YES"]])).toBe("all");
    expect(at("/a/b/c", "GET", [["x-canary", "yes"]])).toBe("both");
    expect(at("/a/b/c", "POST")).toBe("posts");
    expect(at("/a/b/c", "PUT")).toBe("all");
  });

  it("are not added behind one that takes every request", () => {
    const { added, at } = tableWith(
      ["/a", "first"],
      ["/a", "never", { method: "POST" }],
      ["/a/", "longer", { method: "POST" }],
      ["/a", "again"],
    );
    expect(added).toEqual([true, false, true, false]);
    expect([at("/a", "POST"), at("/a", "GET")]).toEqual(["longer", "first"]);
  });
});

describe("backends of a candidate", () => {
  const backend = (service: string) => ({ type: "service", service }) as unknown as RouteBackend;
  const routeTo = (...weights: readonly number[]): Route => ({
    filters: { redirectsToTls: false },
    backends: weights.map((weight, index) => ({ weight, backend: backend(`s${index}`) })),
  });

  it.each([
    [0, "s1"],
    [0.249, "s1"],
    [0.25, "s3"],
    [0.999, "s3"],
  ])("share requests by weight: %d goes to %s", (random, service) => {
    expect(backendOf(routeTo(0, 1, 0, 3), () => random)).toMatchObject({ service });
  });

  it("one alone gets every request", () => {
    expect(backendOf(routeTo(1), () => 0.5)).toMatchObject({ service: "s0" });
  });
});

describe("a request's host and target", () => {
  it.each([
    [
      "GET",
      "http://Other.example.com:8080/a?b",
      [["Host", "ignored"]],
      { host: "other.example.com", path: "/a", target: "/a?b" },
    ],
    ["GET", "http://x.com", [], { host: "x.com", path: "/", target: "/" }],
    ["OPTIONS", "*", [["Host", "x.com"]], { host: "x.com", path: undefined, target: "*" }],
    ["GET", "/", [["hOST", "x.com"]], { host: "x.com", authority: "x.com" }],
  ] as const)("%s %s", (method, target, headers, expected) => {
    expect(readIngressRequest(method, target, headers, 200)).toMatchObject(expected);
  });

  it.each([
    ["no Host", "/", []],
    [
      "two Hosts",
      "/",
      [
        ["Host", "a"],
        ["Host", "b"],
      ],
    ],
    ["a Host that is none", "/", [["Host", "a b"]]],
    ["a target that climbs", "/../x", [["Host", "a"]]],
    ["a target without slash", "x", [["Host", "a"]]],
    ["* with GET", "*", [["Host", "a"]]],
  ] as const)("%s is a bad request", (_what, target, headers) => {
    expect(readIngressRequest("GET", target, headers, 200)).toMatchObject({ refusal: { code: 400 } });
  });
});
