import { describe, expect, it } from "vitest";
import { ruleAllows } from "../../../../../src/access/authz/component.ts";
import { asked, resourceRule, urlRule } from "../../../../support/rbac-objects.ts";

/** After the tables of pkg/apis/rbac/v1/evaluation_helpers_test.go and plugin/pkg/auth/authorizer/rbac/rbac_test.go. */
describe("one rule and one request", () => {
  const rows: [
    rule: string,
    verb: string,
    group: string,
    resource: string,
    name: string,
    allowed: boolean,
  ][] = [
    ["get||pods", "get", "", "pods", "", true],
    ["get||pods", "list", "", "pods", "", false],
    ["*||pods", "anything", "", "pods", "", true],
    ["get,list||pods", "list", "", "pods", "", true],
    ["get||pods", "get", "apps", "pods", "", false],
    ["get|*|pods", "get", "apps", "pods", "", true],
    ["get|apps|deployments", "get", "apps", "deployments", "", true],
    ["get|apps,extensions|deployments", "get", "extensions", "deployments", "", true],
    ["get|apps|deployments", "get", "", "deployments", "", false],
    // ResourceMatches: all matches 01, checks all rules, matches all rules, checks subresource with wildcard ...
    ["get||*", "get", "", "pods", "", true],
    ["get||*", "get", "", "pods/exec", "", true],
    ["get||pods", "get", "", "pods/exec", "", false],
    ["get||pods/exec", "get", "", "pods/exec", "", true],
    ["get||pods/exec", "get", "", "pods", "", false],
    ["get||pods/attach", "get", "", "pods/exec", "", false],
    ["get||*/exec", "get", "", "pods/exec", "", true],
    ["get||*/exec", "get", "", "anything/exec", "", true],
    ["get||*/exec", "get", "", "pods", "", false],
    ["get||*/exec", "get", "", "exec", "", false],
    ["get||*/scale", "get", "", "foo/bar", "", false],
    ["get||*/exec", "get", "", "pods/xexec", "", false],
    ["get||pods/*", "get", "", "pods/exec", "", false],
    ["get||*/*", "get", "", "pods/exec", "", false],
    ["get||nodes,*/exec", "get", "", "pods/exec", "", true],
    // ResourceNameMatches
    ["get||pods|web", "get", "", "pods", "web", true],
    ["get||pods|web", "get", "", "pods", "other", false],
    ["get||pods|web", "list", "", "pods", "", false],
    ["list||pods|web", "list", "", "pods", "", false],
    ["list||pods|web", "list", "", "pods", "web", true],
    ["create||pods/exec|web,web-ws", "create", "", "pods/exec", "web-ws", true],
    ["get||pods|*", "get", "", "pods", "web", false],
    // Case counts everywhere.
    ["GET||pods", "get", "", "pods", "", false],
    ["get||Pods", "get", "", "pods", "", false],
  ];
  it.each(rows)("%s: %s %j %s %j -> %s", (rule, verb, apiGroup, whole, name, allowed) => {
    const [resource = "", subresource = ""] = whole.split("/");
    const attributes = asked({ verb, apiGroup, resource, subresource, name });
    expect(ruleAllows(attributes, resourceRule(rule))).toBe(allowed);
  });

  const urls: [verbs: string, urls: string, verb: string, path: string, allowed: boolean][] = [
    ["get", "/healthz", "get", "/healthz", true],
    ["get", "/healthz", "post", "/healthz", false],
    ["get", "/healthz", "get", "/healthz/", false],
    ["get", "/healthz", "get", "/healthz/etcd", false],
    ["get", "/healthz/*", "get", "/healthz/etcd", true],
    ["get", "/healthz/*", "get", "/healthz", false],
    ["get", "/healthz*", "get", "/healthzz", true],
    ["*", "*", "delete", "/anything", true],
    ["get", "/*", "get", "/apis/foo", true],
    ["get", "/api/*,/version", "get", "/version", true],
    ["get", "/a**", "get", "/abc", true],
    ["get", "/*/b", "get", "/a/b", false],
  ];
  it.each(urls)("%s %s: %s %s -> %s", (verbs, patterns, verb, path, allowed) => {
    const attributes = asked({ isResourceRequest: false, verb, path, resource: "" });
    expect(ruleAllows(attributes, urlRule(verbs, patterns))).toBe(allowed);
  });

  it("a rule about resources says nothing about paths, and the other way round", () => {
    const everything = resourceRule("*|*|*");
    expect(ruleAllows(asked({ isResourceRequest: false, path: "/x" }), everything)).toBe(false);
    expect(ruleAllows(asked({}), urlRule("*", "*"))).toBe(false);
  });
});
