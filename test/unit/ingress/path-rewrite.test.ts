import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rewritingOf, rewrittenTarget, rulePathWith } from "../../../src/ingress/path-rewrite.ts";

const NGINX = "nginx.ingress.kubernetes.io/rewrite-target";

interface Served {
  readonly path: string;
  readonly problems: readonly string[];
  /** The backend's target for a request's. */
  target(asked: string): string | undefined;
}

function served(
  annotations: Record<string, string>,
  rulePath: string,
  pathType = "ImplementationSpecific",
): Served {
  const problems: string[] = [];
  const { path, rewrite, problem } = rulePathWith(rewritingOf(annotations, problems), rulePath, pathType);
  if (problem !== undefined) problems.push(problem);
  return {
    path,
    problems,
    target: (asked) => (rewrite === undefined ? asked : rewrittenTarget(rewrite, asked)),
  };
}

describe("sluice.dev/rewrite-prefix", () => {
  // Gateway API's table for ReplacePrefixMatch.
  it.each([
    ["/foo/bar", "/foo", "/xyz", "/xyz/bar"],
    ["/foo/bar", "/foo", "/xyz/", "/xyz/bar"],
    ["/foo/bar", "/foo/", "/xyz", "/xyz/bar"],
    ["/foo/bar", "/foo/", "/xyz/", "/xyz/bar"],
    ["/foo", "/foo", "/xyz", "/xyz"],
    ["/foo/", "/foo", "/xyz", "/xyz/"],
    ["/foo/bar", "/foo", "/", "/bar"],
    ["/foo/", "/foo", "/", "/"],
    ["/foo", "/foo", "/", "/"],
    ["/foo?a=/b", "/foo", "/", "/?a=/b"],
    ["/foo?a", "/foo", "/xyz", "/xyz?a"],
    ["/foo//bar", "/foo", "/", "//bar"],
    ["/x", "/", "/xyz", "/xyz/x"],
    ["/", "/", "/xyz", "/xyz/"],
    ["/f%6fo/b%2Fr?%zz=%", "/foo", "/x%20y", "/x%20y/b%2Fr?%zz=%"],
  ])("%s of a rule for %s with %s is %s", (asked, rulePath, replacement, expected) => {
    const { target, path, problems } = served(
      { "sluice.dev/rewrite-prefix": replacement },
      rulePath,
      "Prefix",
    );
    expect([target(asked), path, problems]).toEqual([expected, rulePath, []]);
  });

  it.each([
    "",
    "xyz",
    "https://x/",
    "/a?b",
    "/a#b",
    "/a b",
    "/../x",
    "/a/./b",
    "/a/%2E%2e/b",
    "/%zz",
    "/\u00fc",
  ])("%j is refused, and nothing is rewritten", (replacement) => {
    const { target, problems } = served({ "sluice.dev/rewrite-prefix": replacement }, "/foo", "Prefix");
    expect(problems).toEqual([expect.stringContaining("sluice.dev/rewrite-prefix must be an absolute path")]);
    expect(target("/foo/x")).toBe("/foo/x");
  });
});

describe("sluice.dev/strip-prefix", () => {
  it.each([
    ["/foo/bar?x", "/foo", "/bar?x"],
    ["/foo", "/foo", "/"],
    ["/a/b/c", "/a/b", "/c"],
    ["/x", "/", "/x"],
  ])("%s of a rule for %s is %s", (asked, rulePath, expected) => {
    const { target, problems } = served({ "sluice.dev/strip-prefix": "true" }, rulePath, "Prefix");
    expect([target(asked), problems]).toEqual([expected, []]);
  });

  it("says what it may be, and yields to another replacement", () => {
    expect(served({ "sluice.dev/strip-prefix": "yes" }, "/a").problems).toEqual([
      'annotation sluice.dev/strip-prefix must be "true" or "false"',
    ]);
    const both = served({ "sluice.dev/strip-prefix": "true", "sluice.dev/rewrite-prefix": "/b" }, "/a");
    expect(both.target("/a/x")).toBe("/b/x");
    expect(both.problems).toHaveLength(1);
  });
});

describe("ingress-nginx' rewrite-target", () => {
  it.each([
    // A pattern that is a prefix.
    ["/foo(/|$)(.*)", "/$2", "/foo", "/foo/bar?a=b", "/bar?a=b"],
    ["/foo(/|$)(.*)", "/$2", "/foo", "/foo", "/"],
    ["/foo(/|$)(.*)", "/$2", "/foo", "/foo/", "/"],
    ["/foo(/|$)(.*)", "/$2", "/foo", "/foo?a", "/?a"],
    ["/foo(/|$)(.*)", "/api/$2", "/foo", "/foo/bar", "/api/bar"],
    ["/foo(/|$)(.*)", "/api$2", "/foo", "/foo/bar", "/apibar"],
    ["/a/v1.0(/|$)(.*)", "/$2", "/a/v1.0", "/a/v1.0/x/y", "/x/y"],
    ["/foo/(.*)", "/$1", "/foo", "/foo/bar", "/bar"],
    ["/foo/(.*)", "/$1", "/foo", "/foo/", "/"],
    ["/foo/(.*)", "/$1", "/foo", "/foo", undefined],
    ["/(.*)", "/$1", "/", "/x?y", "/x?y"],
    // Without a group all of the path is replaced.
    ["/foo", "/", "/foo", "/foo/bar?a", "/?a"],
    ["/foo", "/bar", "/foo", "/foo", "/bar"],
    ["/foo(/|$)(.*)", "/bar", "/foo", "/foo/x", "/bar"],
    // The same as the path: nothing is rewritten.
    ["/", "/", "/", "/x/y?z", "/x/y?z"],
  ])("%s to %s is a rule for %s, where %s becomes %s", (rulePath, target, path, asked, expected) => {
    const read = served({ [NGINX]: target }, rulePath);
    expect([read.path, read.target(asked), read.problems]).toEqual([path, expected, []]);
  });

  it.each([
    ["/foo(/|$)(.*)", "/$1$2", "is served as a path, or a path with one group at its end"],
    ["/foo(/|$)(.*)", "https://b.example.com/$2", "is served as a path"],
    ["/foo(/|$)(.*)", "/$2?x=y", "is served as a path"],
    ["/foo(/|$)(.*)", "$2", "is served as a path"],
    ["/foo(/|$)(.*)", "/$1", "is not what is behind"],
    ["/foo/(.*)", "/$2", "is not what is behind"],
  ])("%s to %s is a problem, and requests keep their paths", (rulePath, target, problem) => {
    const read = served({ [NGINX]: target }, rulePath);
    expect(read.problems).toEqual([expect.stringContaining(problem)]);
    expect(read.target("/foo/x")).toBe("/foo/x");
  });

  it("with a group that the path does not have replaces every path, as there, and says so", () => {
    const read = served({ [NGINX]: "/$1" }, "/foo");
    expect(read.problems).toEqual([expect.stringContaining("has no group for $1 of")]);
    expect(read.target("/foo/x")).toBe("/");
  });

  it("of other patterns is not served", () => {
    for (const path of ["/foo/[0-9]+", "/(foo|bar)(/|$)(.*)", "/foo/?(.*)", "/foo(.*)"]) {
      const read = served({ [NGINX]: "/$1" }, path);
      expect([read.path, read.target("/foo/x")]).toEqual([path, "/foo/x"]);
    }
  });

  it("yields to this gateway's own", () => {
    const read = served({ [NGINX]: "/", "sluice.dev/strip-prefix": "true" }, "/foo");
    expect(read.target("/foo/x")).toBe("/x");
  });
});

it("use-regex alone makes prefixes of such patterns", () => {
  expect(served({ "nginx.ingress.kubernetes.io/use-regex": "true" }, "/foo(/|$)(.*)").path).toBe("/foo");
  expect(served({ "nginx.ingress.kubernetes.io/use-regex": "true" }, "/foo[a]").path).toBe("/foo[a]");
});

it("whatever comes, the query stays and the target is in origin-form", () => {
  const segment = fc.stringMatching(/^[a-z%2F.~]{0,6}$/);
  fc.assert(
    fc.property(
      fc.array(segment, { maxLength: 4 }),
      fc.option(fc.stringMatching(/^[a-z/?&=%]{0,8}$/)),
      fc.constantFrom("/", "/x", "/x/y/"),
      (segments, query, replacement) => {
        const asked = `/foo/${segments.join("/")}${query === null ? "" : `?${query}`}`;
        const target =
          served({ "sluice.dev/rewrite-prefix": replacement }, "/foo", "Prefix").target(asked) ?? "";
        expect(target.startsWith("/")).toBe(true);
        expect(target.endsWith(`/${segments.join("/")}${query === null ? "" : `?${query}`}`)).toBe(true);
      },
    ),
  );
});
