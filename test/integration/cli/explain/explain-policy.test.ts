import { describe, expect, it } from "vitest";
import { explainPolicy } from "../../../../src/cli/explain/explain-policy.ts";
import { parseConfiguration } from "../../../../src/config/configuration.ts";

type DescribedSession = Parameters<typeof explainPolicy>[1];

const rules = [
  {
    name: "look",
    match: { command: [{ prefix: ["cat"] }] },
    action: "allow",
    maxDuration: "1h",
    idleTimeout: "5m",
  },
  { name: "why", match: { groups: ["ops"] }, action: "requireReason" },
  { name: "no-tty", match: { tty: true, stdin: true }, action: "deny", message: "use a debug pod" },
  { name: "no-nc", match: { users: ["eve"], command: [{ exact: ["nc"] }] }, action: "deny" },
  { name: "no-ssh", match: { ports: [22] }, action: "deny" },
];

function explain(described: Partial<DescribedSession>) {
  const configuration = {
    apiVersion: "sluice.dev/v1alpha1",
    kind: "GatewayConfiguration",
    policy: { rules },
  };
  const { policy } = parseConfiguration(JSON.stringify(configuration), "f.json");
  const base = {
    user: "u",
    groups: ["system:authenticated"],
    namespace: "ns",
    podLabels: {},
    container: "main",
    subresource: "exec",
  } as const;
  return explainPolicy(policy.rules, { ...base, ...described });
}

describe("explain says which rule decides", () => {
  it.each<[Partial<DescribedSession>, string, boolean]>([
    [
      { command: ["cat", "x"] },
      'allowed: policy rule "look" decides, for at most 1h0m0s, idle for at most 5m0s',
      false,
    ],
    [{ command: ["ls"] }, "allowed: no policy rule matches", false],
    [{ groups: ["ops"], reason: "x" }, 'allowed: policy rule "why" decides', false],
    [{ groups: ["ops"] }, 'refused with 403: policy rule "why" requires a reason, ', true],
    [{ tty: true, stdin: true }, 'refused with 403: policy rule "no-tty" denies it: use a debug pod', true],
    [
      { tty: true, stdin: true, command: ["rm"] },
      'refused with 403: policy rule "no-tty" denies it: use a debug pod\n',
      true,
    ],
    [
      { user: "eve", command: ["nc"] },
      'the same by another spelling is allowed: ["/bin/nc"], ["/usr/bin/nc"], ',
      true,
    ],
    [{ subresource: "portforward" }, 'policy rule "no-ssh" decides by port: give --port', false],
    [
      { subresource: "portforward", port: [22, 80] },
      'port 22: refused with 403: policy rule "no-ssh" denies it\nport 80: allowed: no policy rule matches\n',
      true,
    ],
  ])("%j", (described, text, isRefused) => {
    const explained = explain(described);
    expect(explained.text).toContain(text);
    expect(explained.isRefused).toBe(isRefused);
  });
});
