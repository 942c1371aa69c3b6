import { describe, expect, it } from "vitest";
import type { RequestUser } from "../../../../src/access/authn/impersonation.ts";
import { impersonationHeaders } from "../../../../src/legs/api-server/user-lines.ts";

const BOB: RequestUser = { name: "bob", uid: "u", groups: ["dev"], extra: { "acme.io/scope": ["a", "b"] } };
const ROBOT: RequestUser = {
  name: "system:serviceaccount:ns:robot",
  uid: "u",
  groups: ["system:authenticated", "system:serviceaccounts:ns", "system:serviceaccounts"],
  extra: { "authentication.kubernetes.io/pod-name": ["p"] },
};
const REQUESTED_BY = "Impersonate-Extra-sluice.dev%2Frequested-by";

const textOf = (...args: Parameters<typeof impersonationHeaders>): string[] =>
  impersonationHeaders(...args).map(([name, value]) => `${name}: ${value}`);

describe("a user as impersonation headers", () => {
  it("has every part", () => {
    const whole = [
      "Impersonate-User: bob",
      "Impersonate-Uid: u",
      "Impersonate-Group: dev",
      "Impersonate-Extra-acme.io%2Fscope: a",
      "Impersonate-Extra-acme.io%2Fscope: b",
    ];
    expect(textOf(BOB, {})).toEqual(whole);
    expect(textOf(BOB, { isConstrained: true, namesRequester: true })).toEqual(whole);
    expect(textOf(ROBOT, {})).toContain("Impersonate-Uid: u");
  });

  it("with constrained rights, names service accounts and nodes that have no other groups than their kind", () => {
    const constrained = { isConstrained: true, namesRequester: true };
    const asked = { ...ROBOT, requestedBy: "ann" };
    expect(textOf(asked, constrained)).toEqual(["Impersonate-User: system:serviceaccount:ns:robot"]);
    const node = { ...BOB, name: "system:node:n1", groups: ["system:nodes", "system:authenticated"] };
    expect(textOf(node, constrained)).toEqual(["Impersonate-User: system:node:n1"]);
    const inOther = { ...asked, groups: [...asked.groups, "dev"] };
    expect(textOf(inOther, constrained)).toContain("Impersonate-Group: dev");
    const inFewer = { ...asked, groups: ["system:authenticated"] };
    expect(textOf(inFewer, constrained)).toContain("Impersonate-Group: system:authenticated");
  });

  it("names who impersonates, after those that were named before", () => {
    const asked = { ...BOB, requestedBy: "jörg" };
    const bytes = Buffer.from("jörg").toString("latin1");
    expect(textOf(asked, { namesRequester: true })).toContain(`${REQUESTED_BY}: ${bytes}`);
    expect(textOf(asked, {}).join()).not.toContain("requested-by");
    const twice = { ...asked, extra: { "sluice.dev/requested-by": ["outer"] } };
    const named = textOf(twice, { namesRequester: true }).filter((line) => line.startsWith(REQUESTED_BY));
    expect(named).toEqual([`${REQUESTED_BY}: outer`, `${REQUESTED_BY}: ${bytes}`]);
  });
});
