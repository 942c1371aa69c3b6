import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { evaluatePolicy, type WantedSession } from "../../../../src/access/policy/evaluate-policy.ts";
import { passingSpellings, walkedRoundRules } from "../../../../src/access/policy/other-spellings.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

const base: WantedSession = {
  user: "jane",
  groups: [],
  namespace: "prod",
  podLabels: {},
  container: "main",
  subresource: "exec",
  command: ["sh"],
  tty: true,
  stdin: true,
  ports: [],
  reason: "",
};

function rulesOf(...rules: object[]) {
  const text = JSON.stringify({
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    policy: { rules },
  });
  return parseConfiguration(text, "f.json").policy.rules;
}
const deny = (...command: object[]) => ({ name: "no-shells", match: { command }, action: "deny" });

describe("another spelling", () => {
  it.each([
    [[{ prefix: ["sh"] }], [["/bin/sh"], ["bash"], ["env", "sh"], ["busybox", "sh"]]],
    [
      [{ programs: ["sh", "bash"] }],
      [
        ["env", "sh"],
        ["busybox", "sh"],
      ],
    ],
    [[{ exact: ["sh"] }], [["sh", "-c", "sh"]]],
  ])("gets past a rule that denies %j", (command, expected) => {
    const rules = rulesOf(deny(...command));
    expect(passingSpellings(rules, base)).toEqual(expect.arrayContaining(expected));
    const [found] = walkedRoundRules(rules);
    expect(found).toMatchObject({ index: 0, command: ["sh"] });
    expect(found?.passing).toEqual(expect.arrayContaining(expected));
  });

  it("gets past no rules that allow named commands and deny the rest", () => {
    const allow = { name: "look", match: { command: [{ prefix: ["ls"] }] }, action: "allow" };
    const rest = { name: "rest", match: { subresources: ["exec"] }, action: "deny" };
    const rules = rulesOf(allow, rest);
    expect(passingSpellings(rules, base)).toEqual([]);
    expect(walkedRoundRules(rules)).toEqual([]);
    const behind = rulesOf(allow, deny({ prefix: ["sh"] }), rest);
    expect(walkedRoundRules(behind)).toEqual([]);
  });

  it("is no matter where the command itself passes, or is none", () => {
    const rules = rulesOf(deny({ prefix: ["sh"] }));
    expect(passingSpellings(rules, { ...base, command: ["date"] })).toEqual([]);
    expect(passingSpellings(rules, { ...base, subresource: "attach", command: [] })).toEqual([]);
  });

  it("is found for rules of some users, groups, namespaces, labels, containers and terminals alone", () => {
    const match = {
      users: ["u"],
      groups: ["g"],
      namespaces: ["n"],
      podLabels: { a: "b" },
      containers: ["c"],
      tty: true,
    };
    const rules = rulesOf({ ...deny(), match: { ...match, command: [{ prefix: ["sh"] }] } });
    expect(walkedRoundRules(rules)[0]?.passing).toContainEqual(["/bin/sh"]);
  });
});

describe("the policy of deploy/examples/gateway.yaml", () => {
  const file = new URL("../../../../deploy/examples/gateway.yaml", import.meta.url);
  const rules = rulesOf(
    ...(parse(readFileSync(file, "utf8")) as { policy: { rules: object[] } }).policy.rules,
  );
  const isRefused = (command: string[], more: Partial<WantedSession> = {}) =>
    evaluatePolicy(rules, { ...base, command, ...more }).type === "refused";

  it.each([
    [["sh"]],
    [["/bin/sh"]],
    [["bash"]],
    [["bash", "-l"]],
    [["env", "sh"]],
    [["busybox", "ash"]],
    [["python3", "-c", "import pty; pty.spawn('sh')"]],
    [["/tmp/ls"]],
    [["df", "-h", "/"]],
  ])("refuses %j in prod", (command) => expect(isRefused(command)).toBe(true));

  it("allows what it names, refuses attach, and has no gap that check-config knows", () => {
    expect(isRefused(["ls", "-l"])).toBe(false);
    expect(isRefused(["df", "-h"])).toBe(false);
    expect(isRefused([], { subresource: "attach" })).toBe(true);
    expect(isRefused(["sh"], { namespace: "dev" })).toBe(false);
    expect(walkedRoundRules(rules).filter(({ rule }) => rule.action === "deny")).toEqual([]);
  });
});
