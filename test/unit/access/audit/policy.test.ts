import { describe, expect, it } from "vitest";
import { AuditLog } from "../../../../src/access/audit/audit-log.ts";
import { requestAttributes } from "../../../../src/access/authz/request-attributes.ts";
import { parseAuditPolicy } from "../../../../src/config/audit-policy.ts";

const HEADER = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";

function decide(rules: string, target: string, method = "GET", user = "ann", groups: string[] = ["dev"]) {
  const policy = parseAuditPolicy(`${HEADER}omitStages: [RequestReceived]\nrules:\n${rules}`, "policy.yaml");
  const { pathname, searchParams } = new URL(target, "http://x");
  const line = { method, path: pathname, query: searchParams };
  const log = new AuditLog({ policy, backends: [], onFailure: "continue" });
  return log.decide(requestAttributes({ name: user, uid: "", groups, extra: {} }, line));
}

const EXEC = "/api/v1/namespaces/prod/pods/web/exec";

describe("an audit policy", () => {
  it.each([
    ["- level: Metadata", EXEC, "Metadata"],
    ["- level: RequestResponse", EXEC, "RequestResponse"],
    ["- {level: None, users: [ann]}\n- level: Request", EXEC, "None"],
    ["- {level: None, users: [bob]}\n- level: Request", EXEC, "Request"],
    ["- {level: Metadata, userGroups: [dev]}", EXEC, "Metadata"],
    ["- {level: Metadata, userGroups: [ops]}", EXEC, "None"],
    ["- {level: Metadata, verbs: [get]}", EXEC, "Metadata"],
    ["- {level: Metadata, verbs: [create]}", EXEC, "None"],
    ["- {level: Metadata, namespaces: [prod]}", EXEC, "Metadata"],
    ["- {level: Metadata, namespaces: [dev]}", EXEC, "None"],
    ['- {level: Metadata, resources: [{group: "", resources: [pods]}]}', EXEC, "None"],
    ['- {level: Metadata, resources: [{group: "", resources: [pods/exec]}]}', EXEC, "Metadata"],
    ['- {level: Metadata, resources: [{group: "", resources: [pods/*]}]}', EXEC, "Metadata"],
    ['- {level: Metadata, resources: [{group: "", resources: ["*/exec"]}]}', EXEC, "Metadata"],
    ['- {level: Metadata, resources: [{group: "", resources: ["*/attach"]}]}', EXEC, "None"],
    ['- {level: Metadata, resources: [{group: "", resources: ["*"]}]}', EXEC, "Metadata"],
    ["- {level: Metadata, resources: [{group: apps}]}", EXEC, "None"],
    ["- {level: Metadata, resources: [{}]}", EXEC, "Metadata"],
    ["- {level: Metadata, resources: [{resources: [pods/exec], resourceNames: [web]}]}", EXEC, "Metadata"],
    ["- {level: Metadata, resources: [{resources: [pods/exec], resourceNames: [db]}]}", EXEC, "None"],
    ["- {level: Metadata, nonResourceURLs: [/healthz*]}", EXEC, "None"],
    ["- {level: Metadata, nonResourceURLs: [/healthz*]}", "/healthz/ping", "Metadata"],
    ["- {level: Metadata, nonResourceURLs: ['*']}", "/version", "Metadata"],
    ["- {level: Metadata, nonResourceURLs: [/version]}", "/versions", "None"],
    ["- {level: Metadata, namespaces: [prod]}", "/version", "None"],
  ])("%s on %s is %s", (rules, target, level) => {
    expect(decide(rules, target).level).toBe(level);
  });

  it("leaves out the stages of the file and of the rule", () => {
    const { omitStages } = decide("- {level: Metadata, omitStages: [ResponseStarted]}", EXEC);
    expect(omitStages).toEqual(["RequestReceived", "ResponseStarted"]);
  });

  it.each([
    ["", "rules: loaded illegal policy with 0 rules"],
    ["rules: [{level: Everything}]", 'rules[0].level: "Everything" is not supported'],
    ["rules: [{users: [a]}]", "rules[0].level: is required"],
    ["rules: [{level: None, user: [a]}]", "rules[0].user: unknown field"],
    ["rules: [{level: None, omitStages: [Now]}]", 'rules[0].omitStages[0]: "Now" is not supported'],
    ["rules: [{level: None, nonResourceURLs: [healthz]}]", "must begin with a"],
    ["rules: [{level: None, nonResourceURLs: ['/a*b']}]", "must be the final character"],
    ["rules: [{level: None, namespaces: [a], nonResourceURLs: [/a]}]", "cannot apply to both"],
    ["rules: [{level: None, resources: [{resourceNames: [a]}]}]", "requires at least one resource"],
    ["rules: none", "rules: must be a list"],
  ])("%j is refused", (text, problem) => {
    expect(() => parseAuditPolicy(HEADER + text, "policy.yaml")).toThrow(problem);
  });

  it("of another kind is refused", () => {
    expect(() => parseAuditPolicy("kind: List\nrules: [{level: None}]", "p.yaml")).toThrow(
      "apiVersion: is required",
    );
  });
});
