import { describe, expect, it } from "vitest";
import type { StatusError } from "../../../../packages/client/src/api/status.ts";
import { SessionQuotas } from "../../../../src/access/policy/component.ts";
import { reasonOf, refusalText } from "../../../../src/access/policy/evaluate-policy.ts";
import type { PolicyRule } from "../../../../src/config/sections/policy.ts";

describe("a reason", () => {
  it.each([
    [undefined, null, ""],
    ["  incident 7 ", null, "incident 7"],
    [undefined, "ticket", "ticket"],
    ["header", "query", "header"],
  ])("%j, %j -> %j", (header, query, reason) => {
    expect(reasonOf(header, query)).toBe(reason);
  });

  it.each(["x".repeat(501), "two\nlines", "bell\u0007", "\u009b31m"])("%j is refused", (reason) => {
    expect(() => reasonOf(undefined, reason)).toThrow("the reason must be one line");
  });
});

describe("what a refused user reads", () => {
  const rule = { name: "r", message: "ask on-call" } as PolicyRule;
  it.each([
    ["denied", 'policy rule "r" denies it: ask on-call'],
    [
      "reason-missing",
      'policy rule "r" requires a reason, in the header Sluice-Reason or the query parameter sluiceReason: ask on-call',
    ],
    [
      "ports-unseen",
      'policy rule "r" decides by port, which cannot be seen in a WebSocket that passes through to the node: ask on-call',
    ],
  ] as const)("%s", (cause, text) => {
    expect(refusalText(rule, cause)).toBe(text);
  });
});

describe("session quotas", () => {
  const codeOf = (run: () => unknown): unknown => {
    try {
      return run() && "taken";
    } catch (error) {
      const { status } = error as StatusError;
      return [status.code, status.details?.retryAfterSeconds, status.message?.split(" ")[0]];
    }
  };

  it("bound users and namespaces apart, and forget who has left", () => {
    const quotas = new SessionQuotas({ maxSessionsPerUser: 2, maxSessionsPerNamespace: 3 });
    const first = quotas.take("alice", "a");
    quotas.take("alice", "b");
    expect(codeOf(() => quotas.take("alice", "c"))).toEqual([429, 10, "user"]);
    quotas.take("bob", "a");
    const last = quotas.take("carol", "a");
    expect(codeOf(() => quotas.take("dora", "a"))).toEqual([429, 10, "namespace"]);
    first();
    first();
    expect(codeOf(() => quotas.take("dora", "a"))).toBe("taken");
    expect(codeOf(() => quotas.take("erin", "a"))).toEqual([429, 10, "namespace"]);
    expect(codeOf(() => quotas.take("alice", "c"))).toBe("taken");
    last();
    expect(quotas.size).toBe(3 + 3);
  });

  it("a refusal by the namespace takes nothing from the user", () => {
    const quotas = new SessionQuotas({ maxSessionsPerUser: 1, maxSessionsPerNamespace: 1 });
    quotas.take("alice", "a");
    expect(codeOf(() => quotas.take("bob", "a"))).toEqual([429, 10, "namespace"]);
    expect(codeOf(() => quotas.take("bob", "b"))).toBe("taken");
  });

  it("without limits nobody is refused, and nothing is left behind", () => {
    const quotas = new SessionQuotas({ maxSessionsPerUser: undefined, maxSessionsPerNamespace: undefined });
    for (const giveBack of Array.from({ length: 1_000 }, () => quotas.take("alice", "a"))) giveBack();
    expect(quotas.size).toBe(0);
  });
});
