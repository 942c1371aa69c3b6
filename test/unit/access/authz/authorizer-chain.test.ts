import { describe, expect, it } from "vitest";
import {
  type Authorizer,
  alwaysAllow,
  alwaysDeny,
  type Decision,
  superusers,
} from "../../../../src/access/authz/authorizer.ts";
import { AuthorizerChain } from "../../../../src/access/authz/component.ts";
import { asked, user } from "../../../support/rbac-objects.ts";

const saying = (decision: Decision["decision"], reason = "", error?: string): Authorizer => ({
  authorize: async () => ({ decision, reason, ...(error !== undefined && { error }) }),
});
const throwing: Authorizer = {
  authorize: async () => {
    throw new Error("secret detail");
  },
};
const decide = (...authorizers: Authorizer[]) => new AuthorizerChain(authorizers).authorize(asked({}));

/** After TestAuthorization* of apiserver/pkg/authorization/union/union_test.go. */
describe("a chain of authorizers", () => {
  it.each([
    ["second passes", [saying("no-opinion"), saying("allow", "a")], { decision: "allow", reason: "a" }],
    ["first passes", [saying("allow", "a"), saying("no-opinion", "b")], { decision: "allow", reason: "a" }],
    [
      "an allow stands above a later deny",
      [saying("allow"), saying("deny")],
      { decision: "allow", reason: "" },
    ],
    [
      "a deny stands above a later allow",
      [saying("no-opinion", "x"), saying("deny", "no"), alwaysAllow],
      { decision: "deny", reason: "no" },
    ],
    ["nobody decides", [], { decision: "no-opinion", reason: "" }],
    [
      "reasons and errors are collected",
      [saying("no-opinion", "a", "e"), saying("no-opinion"), saying("no-opinion", "b", "f")],
      { decision: "no-opinion", reason: "a\nb", error: "[e, f]" },
    ],
    ["AlwaysDeny has no opinion", [alwaysDeny, alwaysAllow], { decision: "allow", reason: "" }],
    [
      "AlwaysDeny alone refuses",
      [alwaysDeny],
      { decision: "no-opinion", reason: "Everything is forbidden." },
    ],
    [
      "one that throws allows nothing and gives nothing away",
      [throwing],
      { decision: "no-opinion", reason: "", error: "an authorizer failed" },
    ],
    ["one that throws does not stop the next", [throwing, alwaysAllow], { decision: "allow", reason: "" }],
  ])("%s", async (_, authorizers, decision) => {
    expect(await decide(...authorizers)).toEqual(decision);
  });

  it("system:masters may everything, whatever comes behind", async () => {
    const chain = new AuthorizerChain([superusers, saying("deny")]);
    const ask = async (...groups: string[]) =>
      (await chain.authorize(asked({ user: user("u", ...groups) }))).decision;
    expect(await ask("x", "system:masters")).toBe("allow");
    expect(await ask("system:master")).toBe("deny");
    expect((await chain.rulesFor(user("u", "system:masters"), "ns")).resourceRules).toHaveLength(1);
  });

  it("rules are those of all; one that cannot list makes them incomplete", async () => {
    const mute: Authorizer = {
      ...saying("no-opinion"),
      rulesFor: async () => ({
        resourceRules: [],
        nonResourceRules: [],
        incomplete: true,
        evaluationError: "mute",
      }),
    };
    expect(
      await new AuthorizerChain([saying("allow"), alwaysAllow, alwaysDeny, mute]).rulesFor(user("u"), "ns"),
    ).toEqual({
      resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
      nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
      incomplete: true,
      evaluationError: "mute",
    });
  });
});
