import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { requireOneSpelling } from "../../../src/listeners/answer-incoming.ts";
import { matchStreamingPath } from "../../../src/sessions/streaming-request.ts";

const refusalOf = (target: string): string | undefined => {
  try {
    requireOneSpelling(target);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
};
const PODS = "/api/v1/namespaces/default/pods";

describe("the path of a request", () => {
  it.each([
    "/",
    "/api",
    "/apis/",
    `${PODS}/web/exec?command=%2e%2e&command=a//b`,
    `${PODS}/web/exec/`,
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Abasic-user",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:basic-user",
    "/openapi/v3/apis/apps/v1?hash=A%2F",
    "/api/v1/namespaces/default/services/https:web:443/proxy/a%2Fb//c%41?x=/../",
    "/api/v1/namespaces/default/services/https%3Aweb%3A443/proxy/caf%E9",
    "/api/v1/namespaces/default/pods/web:8080/proxy/.well-known/x..y/...",
    "/api/v1/nodes/node-1/proxy/exec/default/web/main",
  ])("is one to every reader: %s", (target) => {
    expect(refusalOf(target)).toBeUndefined();
  });

  it.each([
    `${PODS}/web/%65xec`,
    "/%61pi/v1/namespaces/default/pods/web/exec",
    "/api/v1/namespaces/default/%70ods/web/exec",
    `${PODS}/web/e%78ec?command=id`,
    `${PODS}/web%2Fexec`,
    `${PODS}/web%5Cexec`,
    `${PODS}\\web\\exec`,
    `${PODS}/web//exec`,
    `${PODS}/x/../web/exec`,
    `${PODS}/./web/exec`,
    `${PODS}/x/%2E./web/exec`,
    `${PODS}/web/proxy/x/%2e%2e/../healthz`,
    `${PODS}/web/proxy/x/%2e%2e%2f%2e%2e%2fexec`,
    `${PODS}/web/proxy/..`,
    `${PODS}/web/%70roxy/x%2Fy`,
    "/api/v1/nodes/n/proxy/%65xec/default/web/main",
    "/api/v1/nodes/n/proxy/exec%2Fdefault%2Fweb%2Fmain",
    "/api/v1/nodes/n/proxy//exec/default/web/main",
    `${PODS}/web/exec#x`,
    "/version?x#/../api",
    `${PODS}/w%ffb/exec`,
    `${PODS}/web/exec%`,
    `${PODS}/web/%zzexec`,
    `${PODS}/w\xe9b/exec`,
  ])("is refused where readers could differ: %s", (target) => {
    expect(refusalOf(target)).toContain("the request path is ambiguous: ");
  });

  it.each(["//host/api", "http://host/api", "*", "api"])("is a path: %s", (target) => {
    expect(refusalOf(target)).toBe("the request target must be a path");
  });

  it("that is taken reads the same by a URL parser and by kube-apiserver, whatever is in it", () => {
    const part = fc.constantFrom(
      ..."/ // . .. %2e %2E%2e %2f %5c \\ %65 e # %23 ? %3f ; % %25 %252e api v1 namespaces default pods web exec proxy : %3A é".split(
        " ",
      ),
    );
    const targets = fc.oneof(
      fc.array(part, { maxLength: 12 }).map((parts) => `/${parts.join("")}`),
      fc.array(part, { maxLength: 4 }).map((parts) => `${PODS}/web/${parts.join("")}`),
      fc.array(part, { maxLength: 6 }).map((parts) => `${PODS}/web/proxy/${parts.join("")}`),
    );
    let taken = 0;
    fc.assert(
      fc.property(targets, (target) => {
        if (refusalOf(target) !== undefined) return;
        taken += 1;
        const [raw = ""] = target.split("?", 1);
        const { pathname } = new URL(`http://gateway${target}`);
        // Go's url.Parse: decoded once, nothing removed; RequestInfo cuts slashes off both ends.
        const once = raw.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
        const byGo = once.replace(/^\/+|\/+$/g, "").split("/");
        expect(pathname).toBe(raw);
        const isExec =
          byGo.length === 7 &&
          byGo[6] === "exec" &&
          byGo.slice(0, 3).join("/") === "api/v1/namespaces" &&
          byGo[4] === "pods";
        expect(matchStreamingPath(pathname)?.subresource === "exec").toBe(isExec);
      }),
      { numRuns: 20_000 },
    );
    expect(taken).toBeGreaterThan(1_000);
  });
});
