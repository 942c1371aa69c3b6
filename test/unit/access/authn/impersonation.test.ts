import { describe, expect, it } from "vitest";
import type { UserInfo } from "../../../../src/access/authn/authenticator.ts";
import { impersonate } from "../../../../src/access/authn/impersonation.ts";
import type { Attributes, Authorizer } from "../../../../src/access/authz/authorizer.ts";
import { StatusError } from "../../../../src/api/status.ts";

const ANN: UserInfo = { name: "ann", uid: "7", groups: ["admins"], extra: {} };

type Lines = [string, string][];

/** Allows what is listed as `resource[/subresource]:name`, and remembers what it was asked. */
function allowing(...allowed: string[]) {
  const asked: Attributes[] = [];
  const authorizer: Authorizer = {
    authorize: async (attributes) => {
      asked.push(attributes);
      const { resource, subresource, name } = attributes;
      const what = `${resource}${subresource === "" ? "" : `/${subresource}`}:${name}`;
      return { decision: allowed.includes(what) ? "allow" : "no-opinion", reason: "" };
    },
  };
  return { authorizer, asked };
}

async function refusalOf(lines: Lines, ...allowed: string[]): Promise<{ code: number; message: string }> {
  const error = await impersonate(ANN, lines, allowing(...allowed).authorizer).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(StatusError);
  const { code, message } = error as StatusError;
  return { code, message };
}

describe("impersonation", () => {
  it("is not asked about when nobody wants it", async () => {
    const { authorizer, asked } = allowing();
    expect(await impersonate(ANN, [["Authorization", "x"]], authorizer)).toBe(ANN);
    expect(asked).toEqual([]);
  });

  it.each<[string, Lines, string[], Partial<UserInfo>]>([
    [
      "a user",
      [["Impersonate-User", "bob"]],
      ["users:bob"],
      { name: "bob", groups: ["system:authenticated"] },
    ],
    [
      "a user with groups, in whatever case",
      [
        ["IMPERSONATE-GROUP", "dev"],
        ["impersonate-user", "bob"],
        ["Impersonate-Group", "ops"],
      ],
      ["users:bob", "groups:dev", "groups:ops"],
      { name: "bob", groups: ["dev", "ops", "system:authenticated"] },
    ],
    [
      "a service account, with its groups",
      [["Impersonate-User", "system:serviceaccount:ns:robot"]],
      ["serviceaccounts:robot"],
      {
        name: "system:serviceaccount:ns:robot",
        groups: ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
      },
    ],
    [
      "what only looks like a service account, as a user",
      [["Impersonate-User", "system:serviceaccount:ns"]],
      ["users:system:serviceaccount:ns"],
      { groups: ["system:authenticated"] },
    ],
    [
      "nobody",
      [["Impersonate-User", "system:anonymous"]],
      ["users:system:anonymous"],
      { name: "system:anonymous", groups: ["system:unauthenticated"] },
    ],
    [
      "a named system group, once",
      [
        ["Impersonate-User", "bob"],
        ["Impersonate-Group", "system:authenticated"],
      ],
      ["users:bob", "groups:system:authenticated"],
      { groups: ["system:authenticated"] },
    ],
    [
      "uid and extra",
      [
        ["Impersonate-User", "bob"],
        ["Impersonate-Uid", "u-1"],
        ["Impersonate-Extra-Acme.com%2fScopes", "view"],
        ["impersonate-extra-acme.com%2Fscopes", "edit"],
      ],
      ["users:bob", "uids:u-1", "userextras/acme.com/scopes:view", "userextras/acme.com/scopes:edit"],
      { uid: "u-1", extra: { "acme.com/scopes": ["view", "edit"] } },
    ],
  ])("is %s, when every part is allowed", async (_, lines, allowed, expected) => {
    const { authorizer, asked } = allowing(...allowed);
    expect(await impersonate(ANN, lines, authorizer)).toMatchObject(expected);
    expect(asked).toHaveLength(allowed.length);
    expect(asked.every(({ user, verb }) => user === ANN && verb === "impersonate")).toBe(true);
    for (const missing of allowed) {
      const rest = allowed.filter((one) => one !== missing);
      expect((await refusalOf(lines, ...rest)).code).toBe(403);
    }
  });

  it("reads names as UTF-8", async () => {
    const asSent = Buffer.from("jörg").toString("latin1");
    const { authorizer } = allowing("users:jörg");
    expect((await impersonate(ANN, [["Impersonate-User", asSent]], authorizer)).name).toBe("jörg");
  });

  it("asks with kube-apiserver's attributes", async () => {
    const { authorizer, asked } = allowing("serviceaccounts:robot", "userextras/a:b", "uids:1", "groups:g");
    const lines: Lines = [
      ["Impersonate-User", "system:serviceaccount:ns:robot"],
      ["Impersonate-Group", "g"],
      ["Impersonate-Extra-A", "b"],
      ["Impersonate-Uid", "1"],
    ];
    await impersonate(ANN, lines, authorizer);
    const of = (what: string) => asked.find(({ resource }) => resource === what);
    expect(of("serviceaccounts")).toMatchObject({ apiGroup: "", namespace: "ns", name: "robot" });
    expect(of("groups")).toMatchObject({ apiGroup: "", namespace: "", name: "g" });
    expect(of("userextras")).toMatchObject({
      apiGroup: "authentication.k8s.io",
      subresource: "a",
      name: "b",
    });
    expect(of("uids")).toMatchObject({
      apiGroup: "authentication.k8s.io",
      name: "1",
      isResourceRequest: true,
    });
  });

  it("is refused in kube-apiserver's words", async () => {
    expect(await refusalOf([["Impersonate-User", "bob"]])).toEqual({
      code: 403,
      message:
        'users "bob" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope',
    });
    expect(await refusalOf([["Impersonate-User", "system:serviceaccount:ns:robot"]])).toEqual({
      code: 403,
      message:
        'serviceaccounts "robot" is forbidden: User "ann" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns"',
    });
  });

  it.each<[Lines, string]>([
    [
      [["Impersonate-Group", "system:masters"]],
      'UID:"", Groups:[]string{"system:masters"}, Extra:map[string][]string(nil)',
    ],
    [[["Impersonate-Uid", "1"]], 'UID:"1", Groups:[]string(nil), Extra:map[string][]string(nil)'],
    [
      [
        ["Impersonate-Extra-B", "1"],
        ["Impersonate-Extra-A", '2"x'],
      ],
      'UID:"", Groups:[]string(nil), Extra:map[string][]string{"a":[]string{"2\\"x"}, "b":[]string{"1"}}',
    ],
    [
      [
        ["Impersonate-User", ""],
        ["Impersonate-Group", "a,b"],
      ],
      'UID:"", Groups:[]string{"a,b"}, Extra:map[string][]string(nil)',
    ],
  ])("of parts without a user is refused in the API server's words: %j", async (lines, printed) => {
    const answer = await refusalOf(lines, "groups:system:masters", "uids:1", "userextras/scopes:all");
    expect(answer.code).toBe(400);
    expect(answer.message).toBe(
      `requested &user.DefaultInfo{Name:"", ${printed}} without impersonating a user name`,
    );
  });

  it("takes no more keys than anybody sends", async () => {
    const lines: Lines = Array.from({ length: 101 }, (_, key) => [`Impersonate-Extra-k${key}`, "v"]);
    const everything: Authorizer = { authorize: () => Promise.resolve({ decision: "allow", reason: "" }) };
    const user = await impersonate(ANN, [["Impersonate-User", "bob"], ...lines], everything);
    expect(Object.keys(user.extra ?? {})).toHaveLength(100);
  });

  it("is refused when the authorizer fails, or the headers are too many", async () => {
    const failing: Authorizer = { authorize: () => Promise.reject(new Error("down at 10.0.0.7")) };
    const error = await impersonate(ANN, [["Impersonate-User", "bob"]], failing).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ code: 403 });
    expect((error as Error).message).not.toContain("10.0.0.7");
    const many: Lines = Array.from({ length: 501 }, () => ["Impersonate-Group", "g"]);
    expect((await refusalOf([["Impersonate-User", "bob"], ...many], "users:bob", "groups:g")).code).toBe(431);
  });
});
