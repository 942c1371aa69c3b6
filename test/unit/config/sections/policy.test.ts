import { describe, expect, it } from "vitest";
import type { ConfigurationError } from "../../../../packages/client/src/config/configuration-error.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

const read = (policy: unknown) =>
  parseConfiguration(
    JSON.stringify({ apiVersion: "sluice.dev/v1alpha1", kind: "GatewayConfiguration", policy }),
    "f.json",
  ).policy;
const problemsOf = (rule: unknown): string[] => {
  try {
    read({ rules: [rule] });
    return [];
  } catch (error) {
    return (error as ConfigurationError).problems.map(({ path, message }) => `${path}: ${message}`);
  }
};
const rule = (more: object) => ({ name: "r", action: "allow", ...more });

describe("the policy section", () => {
  it("is empty unless it says something", () => {
    const limits = { maxSessionsPerUser: undefined, maxSessionsPerNamespace: undefined };
    expect(read({})).toEqual({ rules: [], limits });
  });

  it("reads everything that a rule can say", () => {
    const match = {
      users: ["a"],
      groups: ["b"],
      namespaces: ["c"],
      podLabels: { d: "e" },
      containers: ["f"],
      subresources: ["portforward"],
      tty: true,
      stdin: false,
      ports: [80, "8000-8080"],
    };
    const policy = read({
      rules: [
        rule({ match }),
        rule({ name: "t", maxDuration: "1h", idleTimeout: "10m" }),
        { name: "s", action: "requireReason", message: "why?", match: { command: [{ prefix: ["sh"] }] } },
      ],
      limits: { maxSessionsPerUser: 3, maxSessionsPerNamespace: "1k" },
    });
    expect(policy.rules[0]).toEqual({
      name: "r",
      action: "allow",
      message: undefined,
      maxDurationMs: undefined,
      idleTimeoutMs: undefined,
      match: {
        ...match,
        command: [],
        ports: [
          { from: 80, to: 80 },
          { from: 8_000, to: 8_080 },
        ],
      },
    });
    expect(policy.rules[1]).toMatchObject({ maxDurationMs: 3_600_000, idleTimeoutMs: 600_000 });
    expect(policy.rules[2]?.match.command).toEqual([{ match: "prefix", argv: ["sh"] }]);
    expect(policy.limits).toEqual({ maxSessionsPerUser: 3, maxSessionsPerNamespace: 1_000 });
  });

  const at = "policy.rules[0]";
  it.each<[unknown, string[]]>([
    [
      7,
      [
        `${at}: must be a map, got the number 7`,
        `${at}.name: is required: refusals and logs name the rule`,
        `${at}.action: is required: allow, deny, requireReason`,
      ],
    ],
    [rule({ action: "drop" }), [`${at}.action: "drop" is not supported; valid: allow, deny, requireReason`]],
    [rule({ name: "a b" }), [`${at}.name: must be 1 to 63 letters, digits, dots, dashes or underscores`]],
    [
      rule({ message: "no" }),
      [`${at}.message: is shown to refused users, and the action allow refuses none`],
    ],
    [
      rule({ action: "deny", maxDuration: "1h" }),
      [`${at}.action: deny leaves no session that maxDuration or idleTimeout could end`],
    ],
    [
      rule({ maxDuration: "1ms" }),
      [`${at}.maxDuration: must be between 1s and 576h0m0s, got the string "1ms"`],
    ],
    [rule({ match: { user: ["a"] } }), [`${at}.match.user: unknown field; did you mean "users"?`]],
    [
      rule({ match: { subresources: ["attach"], command: [{ exact: ["sh"] }] } }),
      [`${at}.match.command: only exec has a command`],
    ],
    [
      rule({ match: { subresources: ["exec"], ports: [80] } }),
      [`${at}.match.ports: only portforward has ports`],
    ],
    [
      rule({ match: { command: [{ exact: ["sh"] }], ports: [80] } }),
      [`${at}.match.ports: no session has both a command and ports`],
    ],
    [
      rule({ match: { command: [{ exact: ["a"], prefix: ["a"] }] } }),
      [`${at}.match.command[0].exact: give one of exact, prefix and programs`],
    ],
    [
      rule({ match: { command: [{ programs: ["/bin/sh"] }] } }),
      [`${at}.match.command[0].programs[0]: must be a name without a path, got "/bin/sh"`],
    ],
    [
      rule({ match: { command: [{ exact: [] }] } }),
      [`${at}.match.command[0].exact: must name at least the program`],
    ],
    [
      rule({ match: { ports: [0, "9-8", "x", 65_536] } }),
      [0, 1, 2, 3].map(
        (index) =>
          `${at}.match.ports: item ${index} must be a port such as 8080 or a range such as "9000-9100", from 1 to 65535`,
      ),
    ],
  ])("%j is refused", (given, problems) => {
    expect(problemsOf(given)).toEqual(problems);
  });

  it("two rules of one name are refused", () => {
    expect(() => read({ rules: [rule({}), rule({})] })).toThrow('duplicate name "r"');
  });
});
