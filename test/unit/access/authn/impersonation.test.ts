import { describe, expect, it } from "vitest";
import { StatusError } from "../../../../packages/client/src/api/status.ts";
import { Impersonation } from "../../../../src/access/authn/impersonation.ts";
import type { Attributes, Authorizer } from "../../../../src/access/authz/authorizer.ts";
import type { UserInfo } from "../../../../src/access/user-info.ts";

const ANN: UserInfo = { name: "ann", uid: "7", groups: ["admins"], extra: {} };

type Lines = [string, string][];

/** `get pods/exec` of a pod, as the user's own request. */
const requestOf = (user: UserInfo): Attributes => ({
  ...{ user, verb: "get", isResourceRequest: true, apiGroup: "", apiVersion: "v1", path: "/" },
  ...{ namespace: "default", resource: "pods", subresource: "exec", name: "web" },
});

/** By legacy impersonation alone. */
async function impersonate(caller: UserInfo, lines: Lines, authorizer: Authorizer): Promise<UserInfo> {
  const impersonated = await new Impersonation(authorizer, false).decide(caller, lines, requestOf);
  return impersonated?.user ?? caller;
}

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

/** Allows `verb resource[/subresource][:name]`. */
function granting(...granted: string[]) {
  const asked: string[] = [];
  const authorizer: Authorizer = {
    authorize: async ({ verb, resource, subresource, name, apiGroup }) => {
      const what = `${verb} ${[resource, subresource].filter((part) => part !== "").join("/")}`;
      asked.push(`${what}:${name}${apiGroup === "" ? "" : ` ${apiGroup}`}`);
      const isGranted = granted.includes(what) || granted.includes(`${what}:${name}`);
      return { decision: isGranted ? "allow" : "no-opinion", reason: "" };
    },
  };
  return { authorizer, asked };
}

const BOUND_TOKEN: UserInfo = {
  name: "system:serviceaccount:kube-system:agent",
  uid: "1",
  groups: ["system:serviceaccounts"],
  extra: { "authentication.kubernetes.io/node-name": ["n1"], "authentication.kubernetes.io/pod-name": ["p"] },
};

describe("constrained impersonation", () => {
  const NODE: Lines = [["Impersonate-User", "system:node:n1"]];

  it.each<[string, UserInfo, Lines, string[], string | undefined, string[]]>([
    [
      "a user, with every part",
      ANN,
      [
        ["Impersonate-User", "bob"],
        ["Impersonate-Group", "dev"],
        ["Impersonate-Uid", "u1"],
        ["Impersonate-Extra-Acme.io%2Fscope", "view"],
      ],
      [
        "impersonate-on:user-info:get pods/exec:web",
        "impersonate:user-info users:bob",
        "impersonate:user-info uids:u1",
        "impersonate:user-info groups:dev",
        "impersonate:user-info userextras/acme.io/scope:view",
      ],
      "impersonate:user-info",
      ["dev", "system:authenticated"],
    ],
    [
      "a service account by name",
      ANN,
      [["Impersonate-User", "system:serviceaccount:ns:robot"]],
      ["impersonate-on:serviceaccount:get pods/exec:web", "impersonate:serviceaccount serviceaccounts:robot"],
      "impersonate:serviceaccount",
      ["system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"],
    ],
    [
      "a node by name",
      ANN,
      NODE,
      ["impersonate-on:arbitrary-node:get pods/exec:web", "impersonate:arbitrary-node nodes:n1"],
      "impersonate:arbitrary-node",
      ["system:nodes", "system:authenticated"],
    ],
    [
      "the node that a token is bound to",
      BOUND_TOKEN,
      NODE,
      ["impersonate-on:associated-node:get pods/exec:web", "impersonate:associated-node nodes:*"],
      "impersonate:associated-node",
      ["system:nodes", "system:authenticated"],
    ],
    [
      "a node as any user, by the legacy verb",
      ANN,
      NODE,
      ["impersonate users:system:node:n1"],
      undefined,
      ["system:authenticated"],
    ],
  ])("allows %s", async (_, caller, lines, rights, constraint, groups) => {
    const decide = (...granted: string[]) =>
      new Impersonation(granting(...granted).authorizer, true).decide(caller, lines, requestOf);
    expect(await decide(...rights)).toMatchObject({ constraint, user: { groups } });
    for (const missing of rights) {
      const rest = rights.filter((right) => right !== missing);
      await expect(decide(...rest)).rejects.toMatchObject({ code: 403 });
    }
    if (constraint === undefined) return;
    const { authorizer } = granting(...rights);
    await expect(new Impersonation(authorizer, false).decide(caller, lines, requestOf)).rejects.toMatchObject(
      {
        code: 403,
      },
    );
  });

  const EVERY_RIGHT = ["users", "uids", "groups"].map((what) => `impersonate:user-info ${what}`);
  it.each<[string, Lines, string]>([
    [
      "superusers",
      [["Impersonate-Group", "system:masters"]],
      'groups.authentication.k8s.io "system:masters" is forbidden: User "ann" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters group is not allowed',
    ],
    [
      "a group without a name",
      [["Impersonate-Group", ""]],
      'groups.authentication.k8s.io is forbidden: User "ann" cannot impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the empty string group is not allowed',
    ],
    [
      "an extra without a domain",
      [["Impersonate-Extra-Scope", "view"]],
      'userextras.authentication.k8s.io is forbidden: User "ann" cannot impersonate:user-info resource "userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating an invalid key in extra is not allowed: extra.key: Invalid value: "scope": must be a domain-prefixed path (such as "acme.io/foo")',
    ],
    [
      "an empty extra",
      [["Impersonate-Extra-A%2Fb", ""]],
      'userextras.authentication.k8s.io is forbidden: User "ann" cannot impersonate:user-info resource "userextras" in API group "authentication.k8s.io" at the cluster scope: impersonating the empty string value in extra is not allowed',
    ],
  ])("never allows %s", async (_, lines, message) => {
    const { authorizer } = granting("impersonate-on:user-info:get pods/exec", ...EVERY_RIGHT);
    const impersonation = new Impersonation(authorizer, true);
    await expect(
      impersonation.decide(ANN, [["Impersonate-User", "bob"], ...lines], requestOf),
    ).rejects.toMatchObject({ code: 403, message });
  });

  it("is refused by the mode that is for the user", async () => {
    const { authorizer } = granting();
    await expect(
      new Impersonation(authorizer, true).decide(ANN, [["Impersonate-User", "bob"]], requestOf),
    ).rejects.toMatchObject({
      message:
        'pods "web" is forbidden: User "ann" cannot impersonate-on:user-info:get resource "pods/exec" in API group "" in the namespace "default"',
    });
  });

  it("asks about many groups at once, then about each", async () => {
    const lines: Lines = ["a", "b", "c", "d"].map((group) => ["Impersonate-Group", group]);
    const { authorizer, asked } = granting(
      "impersonate-on:user-info:get pods/exec",
      "impersonate:user-info users",
      "impersonate:user-info groups:*",
    );
    await new Impersonation(authorizer, true).decide(ANN, [["Impersonate-User", "bob"], ...lines], requestOf);
    expect(asked).toEqual([
      "impersonate-on:user-info:get pods/exec:web",
      "impersonate:user-info users:bob authentication.k8s.io",
      "impersonate:user-info groups:* authentication.k8s.io",
    ]);
  });

  it("forgets the modes of the first callers", async () => {
    const { authorizer, asked } = granting("impersonate users");
    const impersonation = new Impersonation(authorizer, true);
    const isAsked = (name: string) =>
      impersonation.decide({ ...ANN, name }, [["Impersonate-User", "bob"]], requestOf);
    for (let caller = 0; caller <= 10_000; caller++) await isAsked(`c${caller}`);
    asked.length = 0;
    await isAsked("c10000");
    expect(asked).toHaveLength(1);
    await isAsked("c0");
    expect(asked).toHaveLength(3);
  });

  it("tries what allowed a caller's last impersonation first", async () => {
    const { authorizer, asked } = granting("impersonate users");
    const impersonation = new Impersonation(authorizer, true);
    const lines: Lines = [["Impersonate-User", "bob"]];
    await impersonation.decide(ANN, lines, requestOf);
    asked.length = 0;
    await impersonation.decide(ANN, lines, requestOf);
    expect(asked).toEqual(["impersonate users:bob"]);
    const withGroup: Lines = [...lines, ["Impersonate-Group", "dev"]];
    await expect(impersonation.decide(ANN, withGroup, requestOf)).rejects.toMatchObject({
      message:
        'groups "dev" is forbidden: User "ann" cannot impersonate resource "groups" in API group "" at the cluster scope',
    });
  });
});
