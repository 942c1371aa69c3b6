import { describe, expect, it } from "vitest";
import { evaluatePolicy, type WantedSession } from "../../../../src/access/policy/evaluate-policy.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

/** What a wanted session gets: `allowed`, `allowed by NAME`, `denied by NAME`, ... */
function verdict(rules: readonly object[], wanted: Partial<WantedSession>): string {
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    policy: { rules },
  };
  const { policy } = parseConfiguration(JSON.stringify(configuration), "f.json");
  const session: WantedSession = {
    user: "alice",
    groups: ["dev", "system:authenticated"],
    namespace: "prod",
    podLabels: { app: "web", tier: "front" },
    container: "main",
    subresource: "exec",
    command: ["sh", "-c", "ls"],
    tty: true,
    stdin: true,
    ports: [],
    reason: "",
    ...wanted,
  };
  const found = evaluatePolicy(policy.rules, session);
  if (found.type === "by-port") return `by port for ${found.rule.name}`;
  if (found.type === "refused") return `${found.cause} by ${found.rule.name}`;
  return found.rule === undefined ? "allowed" : `allowed by ${found.rule.name}`;
}

const deny = (match: object, name = "r") => ({ name, match, action: "deny" });
const forward = { subresource: "portforward", command: [], tty: false, stdin: false } as const;

describe("one rule's match", () => {
  const rows: [match: object, wanted: Partial<WantedSession>, matches: boolean][] = [
    [{}, {}, true],
    [{ users: ["alice", "bob"] }, {}, true],
    [{ users: ["bob"] }, {}, false],
    [{ groups: ["ops", "dev"] }, {}, true],
    [{ groups: ["ops"] }, {}, false],
    [{ namespaces: ["prod"] }, {}, true],
    [{ namespaces: ["pro"] }, {}, false],
    [{ podLabels: { app: "web" } }, {}, true],
    [{ podLabels: { app: "web", tier: "back" } }, {}, false],
    [{ podLabels: { toString: "x" } }, {}, false],
    [{ containers: ["main"] }, {}, true],
    [{ containers: ["sidecar"] }, {}, false],
    [{ containers: ["main"] }, { ...forward, container: undefined }, false],
    [{ subresources: ["attach", "exec"] }, {}, true],
    [{ subresources: ["attach"] }, {}, false],
    [{ command: [{ exact: ["sh", "-c", "ls"] }] }, {}, true],
    [{ command: [{ exact: ["sh", "-c"] }] }, {}, false],
    [{ command: [{ exact: ["sh"] }, { exact: ["sh", "-c", "ls"] }] }, {}, true],
    [{ command: [{ prefix: ["sh", "-c"] }] }, {}, true],
    [{ command: [{ prefix: ["sh", "-c", "l"] }] }, {}, false],
    [{ command: [{ prefix: ["sh", "-c", "ls", "-l"] }] }, {}, false],
    [{ command: [{ prefix: ["sh"] }] }, { command: ["sh2"] }, false],
    [{ command: [{ prefix: ["sh"] }] }, { command: ["/bin/sh"] }, false],
    [{ command: [{ programs: ["sh"] }] }, { command: ["/bin/sh", "-c", "x"] }, true],
    [{ command: [{ programs: ["bash", "sh"] }] }, { command: ["./sh"] }, true],
    [{ command: [{ programs: ["sh"] }] }, { command: ["bash"] }, false],
    [{ command: [{ programs: ["sh"] }] }, { command: ["/bin/sh/x"] }, false],
    [{ command: [{ programs: ["sh"] }] }, { subresource: "attach", command: [] }, false],
    [{ command: [{ prefix: ["sh"] }] }, { subresource: "attach", command: [] }, false],
    [{ tty: true }, {}, true],
    [{ tty: false }, {}, false],
    [{ stdin: false }, { stdin: false }, true],
    [{ ports: [22, "8000-8080"] }, { ...forward, ports: [22] }, true],
    [{ ports: [22, "8000-8080"] }, { ...forward, ports: [8080] }, true],
    [{ ports: [22, "8000-8080"] }, { ...forward, ports: [8081] }, false],
    [{ ports: [22] }, { ...forward, ports: [80, 22] }, true],
    [{ ports: [22] }, {}, false],
    [{ users: ["alice"], tty: false }, {}, false],
  ];
  it.each(rows)("%j, %j -> %s", (match, wanted, matches) => {
    expect(verdict([deny(match)], wanted)).toBe(matches ? "denied by r" : "allowed");
  });
});

describe("the first rule that matches decides", () => {
  const readOnly = [
    { name: "look", match: { command: [{ prefix: ["cat"] }, { exact: ["ls"] }] }, action: "allow" },
    { name: "break-glass", match: { groups: ["ops"] }, action: "requireReason" },
    deny({ namespaces: ["prod"] }, "prod-is-closed"),
  ];
  it.each<[Partial<WantedSession>, string]>([
    [{ command: ["cat", "/etc/hosts"] }, "allowed by look"],
    [{ command: ["ls"] }, "allowed by look"],
    [{ command: ["ls", "/"] }, "denied by prod-is-closed"],
    [{ groups: ["ops"] }, "reason-missing by break-glass"],
    [{ groups: ["ops"], reason: "incident 7" }, "allowed by break-glass"],
    [{ namespace: "dev" }, "allowed"],
  ])("%j -> %s", (wanted, expected) => {
    expect(verdict(readOnly, wanted)).toBe(expected);
  });

  it("of several ports all must be allowed by one rule, and one is enough to be denied", () => {
    const rules = [{ name: "http", match: { ports: [80, 443] }, action: "allow" }, deny(forwardOnly, "rest")];
    expect(verdict(rules, { ...forward, ports: [80, 443] })).toBe("allowed by http");
    expect(verdict(rules, { ...forward, ports: [80, 22] })).toBe("denied by rest");
  });

  it("a rule by port wants to know unknown ports, and only where all else matches", () => {
    const rules = [deny({ ports: [22], namespaces: ["prod"] }, "no-ssh")];
    const unknown = { ...forward, ports: undefined };
    expect(verdict(rules, unknown)).toBe("by port for no-ssh");
    expect(verdict(rules, { ...unknown, namespace: "dev" })).toBe("allowed");
    const earlier = [{ name: "ops", match: { groups: ["dev"] }, action: "allow" }, ...rules];
    expect(verdict(earlier, unknown)).toBe("allowed by ops");
  });
});

const forwardOnly = { subresources: ["portforward"] };
