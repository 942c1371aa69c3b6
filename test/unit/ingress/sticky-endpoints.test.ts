import { describe, expect, it } from "vitest";
import { type Affinity, affinityOf, cookieLine } from "../../../src/ingress/affinity.ts";
import type { EndpointUpstream } from "../../../src/ingress/endpoint-upstream.ts";
import { chooseSticky, type StickyEndpoint, stickyEndpoint } from "../../../src/ingress/sticky-endpoints.ts";

const endpoints = (count: number, withPods = true): StickyEndpoint[] =>
  Array.from({ length: count }, (_, index) => {
    const upstream = { endpoint: { host: `10.0.0.${index}`, port: 8080 } } as EndpointUpstream;
    return stickyEndpoint(upstream, withPods ? `uid-${index}` : undefined);
  });
const affinity = (more: Record<string, string> = {}): Affinity => {
  const problems: string[] = [];
  const prefixed = Object.entries({ affinity: "cookie", ...more }).map(([name, value]) => [
    `nginx.ingress.kubernetes.io/${name}`,
    value,
  ]);
  const read = affinityOf(Object.fromEntries(prefixed) as Record<string, string>, problems);
  if (read === undefined || problems.length > 0) throw new Error(problems.join());
  return read;
};
const hostOf = ({ endpoint }: EndpointUpstream): string => endpoint.host;
const cookie = (value: string, name = "INGRESSCOOKIE") => [["Cookie", `a=b; ${name}=${value}; c=d`] as const];
const valueAt = (number: number): string => number.toString(16).padStart(32, "0");

function choose(among: readonly StickyEndpoint[], options: Affinity, value?: string) {
  const chosen = chooseSticky(among, options, value === undefined ? [] : cookie(value));
  if (chosen === undefined) throw new Error("none was chosen");
  return chosen;
}

describe.each(["balanced", "persistent"])("a %s session", (mode) => {
  const options = affinity({ "affinity-mode": mode });

  it("begins with a cookie that leads back to its endpoint, in every process", () => {
    for (let times = 0; times < 50; times++) {
      const first = choose(endpoints(7), options);
      const value = first.valueFor(first.upstream) ?? "";
      expect(value).toMatch(/^[0-9a-f]{32}$/);
      const again = choose(endpoints(7), options, value);
      expect(hostOf(again.upstream)).toBe(hostOf(first.upstream));
      expect(again.valueFor(again.upstream)).toBeUndefined();
    }
  });

  it("moves only if its endpoint goes", () => {
    const all = endpoints(10);
    for (let times = 0; times < 50; times++) {
      const first = choose(all, options);
      const value = first.valueFor(first.upstream);
      const others = all.filter(({ upstream }) => upstream !== first.upstream);
      expect(choose(others.slice(1).concat(all.slice(0, 0)), options, value).upstream).not.toBe(
        first.upstream,
      );
      const without = all.filter(({ upstream }) => upstream === first.upstream || Math.random() < 0.5);
      expect(choose(without, options, value).upstream).toBe(first.upstream);
    }
  });

  it("that begins where another endpoint stood in stays with that one", () => {
    const all = endpoints(5);
    for (let times = 0; times < 20; times++) {
      const first = choose(all, options);
      const served = all.find(({ upstream }) => upstream !== first.upstream)?.upstream as EndpointUpstream;
      const value = first.valueFor(served);
      expect(choose(all, options, value).upstream).toBe(served);
    }
  });

  it("keeps its cookie where its endpoint fails, unless an annotation changes it", () => {
    const all = endpoints(5);
    const first = choose(all, options);
    const value = first.valueFor(first.upstream);
    const served = all.find(({ upstream }) => upstream !== first.upstream)?.upstream as EndpointUpstream;
    expect(choose(all, options, value).valueFor(served)).toBeUndefined();
    const changing = affinity({ "affinity-mode": mode, "session-cookie-change-on-failure": "true" });
    const changed = choose(all, changing, value).valueFor(served);
    expect(choose(all, changing, changed).upstream).toBe(served);
  });

  it.each([
    "",
    "x".repeat(100_000),
    `${valueAt(1)}0`,
    valueAt(1).toUpperCase().replace("1", "A"),
    "10.0.0.1",
    "../../etc",
    "%00",
  ])("takes %.20s for no cookie", (value) => {
    const chosen = choose(endpoints(3), options, value);
    expect(chosen.valueFor(chosen.upstream)).toMatch(/^[0-9a-f]{32}$/);
  });
});

it("balanced sessions spread evenly, and a new endpoint gets its part of them", () => {
  const options = affinity();
  const [before, after] = [endpoints(4), endpoints(5)];
  const counts = new Map<string, number>();
  let moved = 0;
  for (let number = 0; number < 10_000; number++) {
    const value = valueAt(number);
    const host = hostOf(choose(after, options, value).upstream);
    counts.set(host, (counts.get(host) ?? 0) + 1);
    const earlier = hostOf(choose(before, options, value).upstream);
    if (earlier === host) continue;
    moved += 1;
    // To the new one alone.
    expect(host).toBe("10.0.0.4");
  }
  for (const count of counts.values()) expect(Math.abs(count - 2_000)).toBeLessThan(300);
  expect(moved).toBe(counts.get("10.0.0.4"));
});

it("persistent sessions stay when endpoints come, and are balanced where slices name no pods", () => {
  const options = affinity({ "affinity-mode": "persistent" });
  for (let times = 0; times < 20; times++) {
    const first = choose(endpoints(2), options);
    const value = first.valueFor(first.upstream);
    expect(hostOf(choose(endpoints(50), options, value).upstream)).toBe(hostOf(first.upstream));
  }
  const nameless = choose(endpoints(3, false), options);
  expect(nameless.valueFor(nameless.upstream)).toMatch(/^[0-9a-f]{32}$/);
});

it("of many cookies of the name the first that may be ours counts, in time that grows as they do", () => {
  const all = endpoints(3);
  const many = Array.from({ length: 20_000 }, (_, index) => `INGRESSCOOKIE=${index}`).join(";");
  const headers = [["Cookie", many] as const, ...cookie(valueAt(7)), ...cookie(valueAt(8))];
  expect(chooseSticky(all, affinity(), headers)?.upstream).toBe(choose(all, affinity(), valueAt(7)).upstream);
  expect(chooseSticky([], affinity(), headers)).toBeUndefined();
});

it("finds a value for the endpoint that stood in without judging all endpoints again for each try", () => {
  let judged = 0;
  const all = endpoints(1_000).map(({ hash, ...endpoint }) => ({
    ...endpoint,
    get hash() {
      judged += 1;
      return hash;
    },
  }));
  const [served] = all;
  for (let times = 0; times < 10; times++)
    choose(all, affinity()).valueFor((served as StickyEndpoint).upstream);
  expect(judged).toBeLessThan(1_000 * all.length);
});

describe("Set-Cookie", () => {
  const value = valueAt(1);
  it.each([
    [{}, true, "INGRESSCOOKIE=V; Path=/app; Secure; HttpOnly"],
    [{}, false, "INGRESSCOOKIE=V; Path=/app; HttpOnly"],
    [
      { "session-cookie-name": "route", "session-cookie-path": "/x", "session-cookie-max-age": "3600" },
      false,
      "route=V; Path=/x; Max-Age=3600; HttpOnly",
    ],
    [
      {
        "session-cookie-secure": "true",
        "session-cookie-samesite": "None",
        "session-cookie-domain": ".example.com",
      },
      false,
      "INGRESSCOOKIE=V; Path=/app; Secure; Domain=.example.com; HttpOnly; SameSite=None",
    ],
    [{ "session-cookie-secure": "false" }, true, "INGRESSCOOKIE=V; Path=/app; HttpOnly"],
  ])("by %j", (more, isHttps, expected) => {
    expect(cookieLine(affinity(more as Record<string, string>), value, { cookiePath: "/app", isHttps })).toBe(
      expected.replace("V", value),
    );
  });

  it("expires when an annotation says", () => {
    const line = cookieLine(affinity({ "session-cookie-expires": "60" }), value, {
      cookiePath: "/",
      isHttps: false,
    });
    const [, at = ""] = /Expires=([^;]+)/.exec(line) ?? [];
    expect(Math.abs(Date.parse(at) - Date.now() - 60_000)).toBeLessThan(5_000);
  });

  it.each([
    ["affinity", "ip"],
    ["affinity-mode", "sticky"],
    ["session-cookie-name", "a b"],
    ["session-cookie-name", "a;b"],
    ["session-cookie-path", "x"],
    ["session-cookie-path", "/;Domain=evil"],
    ["session-cookie-domain", "a;b"],
    ["session-cookie-max-age", "1h"],
    ["session-cookie-expires", "soon"],
    ["session-cookie-samesite", "lax"],
    ["session-cookie-secure", "yes"],
    ["session-cookie-change-on-failure", "1"],
  ])("%s: %s is a problem", (name, text) => {
    const problems: string[] = [];
    const prefix = "nginx.ingress.kubernetes.io/";
    affinityOf({ [`${prefix}affinity`]: "cookie", [prefix + name]: text }, problems);
    expect(problems).toEqual([expect.stringContaining(`annotation ${prefix}${name} must be`)]);
  });
});
