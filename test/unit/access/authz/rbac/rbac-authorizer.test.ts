import { describe, expect, it } from "vitest";
import type { Attributes } from "../../../../../src/access/authz/authorizer.ts";
import { RbacAuthorizer } from "../../../../../src/access/authz/component.ts";
import { RbacIndex } from "../../../../../src/access/authz/rbac/rbac-index.ts";
import { rulesOfClusterRole } from "../../../../../src/access/authz/rbac/rbac-source.ts";
import type { ClusterRole, LabelSelector, RbacObject } from "../../../../../src/api/rbac-objects.ts";
import {
  asked,
  clusterRole,
  clusterRoleBinding,
  resourceRule,
  role,
  roleBinding,
  urlRule,
  user,
} from "../../../../support/rbac-objects.ts";

function authorizerOf(...objects: RbacObject[]): RbacAuthorizer {
  const index = new RbacIndex(objects, rulesOfClusterRole);
  return new RbacAuthorizer(() => index);
}

/** `user:group1,group2 verb [namespace/]resource[/subresource][:name]` */
function request(text: string): Attributes {
  const [who = "", verb = "", what = ""] = text.split(" ");
  const [name = "", groups = ""] = who.split(":");
  const [place = "", objectName = ""] = what.split(":");
  const [namespace = "", resource = "", subresource = ""] = place.split("/");
  return asked({
    user: user(name.replaceAll("@", ":"), ...(groups === "" ? [] : groups.split(","))),
    verb,
    namespace,
    resource,
    subresource,
    name: objectName,
  });
}

/** After TestAuthorizer and TestRuleMatches of plugin/pkg/auth/authorizer/rbac/rbac_test.go. */
describe("RBAC decides by all bindings", () => {
  const tables: [name: string, objects: RbacObject[], allowed: string[], refused: string[]][] = [
    [
      "a ClusterRole bound in one namespace",
      [
        clusterRole("admin", resourceRule("*|*|*")),
        roleBinding("ns1", "rb", "ClusterRole/admin", "User:admin", "Group:admins"),
      ],
      ["admin get ns1/Pods", "admin watch ns1/Pods", "admin watch ns1/Foobar", "x:admins watch ns1/Foobar"],
      [
        "admin get ns2/pods",
        "admin get /nodes",
        "x:admin get ns1/pods",
        "admins get ns1/pods",
        "x get ns1/pods",
      ],
    ],
    [
      "non-star rules of several roles",
      [
        clusterRole("non-star", resourceRule("get,list||pods")),
        role("ns1", "writer", resourceRule("create,delete||pods")),
        role("ns2", "writer", resourceRule("*||*")),
        roleBinding("ns1", "a", "ClusterRole/non-star", "User:alice"),
        roleBinding("ns1", "b", "Role/writer", "Group:writers"),
      ],
      ["alice get ns1/pods", "alice:writers delete ns1/pods", "bob:writers create ns1/pods"],
      ["alice delete ns1/pods", "bob:writers get ns1/pods", "bob:writers delete ns2/pods"],
    ],
    [
      "cluster scope needs a ClusterRoleBinding, which covers namespaces too",
      [
        clusterRole("reader", resourceRule("get,list||nodes,pods")),
        clusterRoleBinding("readers", "ClusterRole/reader", "Group:readers"),
      ],
      ["u:readers get /nodes", "u:readers list /pods", "u:readers get ns1/pods:web"],
      ["u:readers delete ns1/pods", "u get /nodes"],
    ],
    [
      "service accounts by namespace and name; a RoleBinding's own namespace is the default",
      [
        role("ns1", "r", resourceRule("get||pods")),
        roleBinding("ns1", "local", "Role/r", "ServiceAccount:robot"),
        roleBinding("ns1", "other", "Role/r", "ServiceAccount:ns2/guest"),
        clusterRole("c", resourceRule("get||nodes")),
        clusterRoleBinding("nobody", "ClusterRole/c", "ServiceAccount:robot"),
        clusterRoleBinding("somebody", "ClusterRole/c", "ServiceAccount:ns3/robot"),
      ],
      [
        "system@serviceaccount@ns1@robot get ns1/pods",
        "system@serviceaccount@ns2@guest get ns1/pods",
        "system@serviceaccount@ns3@robot get /nodes",
      ],
      [
        "robot get ns1/pods",
        "system@serviceaccount@ns2@robot get ns1/pods",
        "system@serviceaccount@ns1@robot get /nodes",
        "system@serviceaccount@@robot get /nodes",
      ],
    ],
    [
      "subresources are resources of their own",
      [
        clusterRole("viewer", resourceRule("get||pods,pods/exec")),
        clusterRole("operator", resourceRule("get,create||pods/exec,*/attach")),
        clusterRoleBinding("v", "ClusterRole/viewer", "User:viewer"),
        clusterRoleBinding("o", "ClusterRole/operator", "User:operator"),
      ],
      [
        "viewer get ns/pods/exec:web",
        "operator create ns/pods/exec:web",
        "operator create ns/pods/attach:web",
      ],
      [
        "viewer create ns/pods/exec:web",
        "viewer get ns/pods/attach:web",
        "operator get ns/pods:web",
        "operator create ns/pods/portforward:web",
      ],
    ],
    [
      "a RoleBinding to a Role looks in its own namespace only",
      [role("ns2", "r", resourceRule("*|*|*")), roleBinding("ns1", "b", "Role/r", "User:u")],
      [],
      ["u get ns1/pods", "u get ns2/pods"],
    ],
  ];
  for (const [name, objects, allowed, refused] of tables) {
    it(name, async () => {
      const authorizer = authorizerOf(...objects);
      const allowedOnes: string[] = [];
      for (const text of [...allowed, ...refused]) {
        const { decision } = await authorizer.authorize(request(text));
        expect(decision).not.toBe("deny");
        if (decision === "allow") allowedOnes.push(text);
      }
      expect(allowedOnes).toEqual(allowed);
    });
  }
});

describe("what RBAC says", () => {
  it("names the binding, role and subject that allowed, ClusterRoleBindings first", async () => {
    const authorizer = authorizerOf(
      clusterRole("c", resourceRule("get||pods")),
      roleBinding("ns", "local", "ClusterRole/c", "User:u", "ServiceAccount:robot"),
      clusterRoleBinding("global", "ClusterRole/c", "Group:g", "ServiceAccount:x/y"),
    );
    const reasonOf = async (text: string) => (await authorizer.authorize(request(text))).reason;
    expect(await reasonOf("u:g get ns/pods")).toBe(
      'RBAC: allowed by ClusterRoleBinding "global" of ClusterRole "c" to Group "g"',
    );
    expect(await reasonOf("u get ns/pods")).toBe(
      'RBAC: allowed by RoleBinding "local/ns" of ClusterRole "c" to User "u"',
    );
    expect(await reasonOf("system@serviceaccount@ns@robot get ns/pods")).toBe(
      'RBAC: allowed by RoleBinding "local/ns" of ClusterRole "c" to ServiceAccount "robot/ns"',
    );
    expect(await reasonOf("system@serviceaccount@x@y get ns/pods")).toBe(
      'RBAC: allowed by ClusterRoleBinding "global" of ClusterRole "c" to ServiceAccount "y/x"',
    );
    expect(await reasonOf("stranger get ns/pods")).toBe("");
  });

  it("names missing roles, each once, only to whom they were bound, and still takes what others allow", async () => {
    const authorizer = authorizerOf(
      clusterRoleBinding("a", "ClusterRole/gone", "User:u"),
      roleBinding("ns", "b", "Role/away", "User:u"),
      roleBinding("ns", "c", "ClusterRole/gone", "User:u"),
      clusterRole("c", resourceRule("get||pods")),
      roleBinding("ns", "d", "ClusterRole/c", "User:u"),
    );
    expect(await authorizer.authorize(request("u list ns/pods"))).toEqual({
      decision: "no-opinion",
      reason:
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "away" not found]',
    });
    expect((await authorizer.authorize(request("u list other/pods"))).reason).toBe(
      'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found',
    );
    expect((await authorizer.authorize(request("u get ns/pods"))).decision).toBe("allow");
    expect((await authorizer.authorize(request("v list ns/pods"))).reason).toBe("");
  });

  it("lists what a user may do in a namespace", async () => {
    const authorizer = authorizerOf(
      clusterRole("c", resourceRule("get||pods|web"), urlRule("get", "/version")),
      clusterRoleBinding("a", "ClusterRole/c", "User:u"),
      role("ns", "r", resourceRule("create||pods/exec")),
      roleBinding("ns", "b", "Role/r", "Group:g"),
      roleBinding("ns", "missing", "Role/gone", "User:u"),
    );
    expect(await authorizer.rulesFor(user("u", "g"), "ns")).toEqual({
      resourceRules: [
        { verbs: ["get"], apiGroups: [""], resources: ["pods"], resourceNames: ["web"] },
        { verbs: ["create"], apiGroups: [""], resources: ["pods/exec"] },
      ],
      nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/version"] }],
      incomplete: false,
      evaluationError: 'role.rbac.authorization.k8s.io "gone" not found',
    });
    expect((await authorizer.rulesFor(user("u", "g"), "other")).resourceRules).toHaveLength(1);
  });
});

describe("aggregated ClusterRoles", () => {
  const labelled = (name: string, labels: Record<string, string>, rule: string): ClusterRole => ({
    ...clusterRole(name, resourceRule(rule)),
    metadata: { name, labels },
  });
  const aggregated = (
    name: string,
    labels: Record<string, string>,
    ...selectors: LabelSelector[]
  ): ClusterRole => ({
    ...clusterRole(name, resourceRule("own||never")),
    metadata: { name, labels },
    aggregationRule: { clusterRoleSelectors: selectors },
  });
  const verbsOf = async (...roles: ClusterRole[]) => {
    const authorizer = authorizerOf(...roles, clusterRoleBinding("b", `ClusterRole/all`, "User:u"));
    return (await authorizer.rulesFor(user("u"), "")).resourceRules.flatMap(({ verbs }) => verbs);
  };

  it("takes the rules of every role that some selector chooses, in order of names, and none of its own", async () => {
    const roles = [
      aggregated("all", {}, { matchLabels: { to: "all" } }, { matchLabels: { also: "yes", x: "1" } }),
      labelled("b", { to: "all" }, "b||pods"),
      labelled("a", { to: "all" }, "a||pods"),
      labelled("c", { also: "yes" }, "c||pods"),
      labelled("d", { also: "yes", x: "1" }, "d||pods"),
      labelled("e", { to: "other" }, "e||pods"),
    ];
    expect(await verbsOf(...roles)).toEqual(["a", "b", "d"]);
  });

  it.each([
    [{ key: "to", operator: "In", values: ["x", "all"] }, ["a"]],
    [{ key: "to", operator: "NotIn", values: ["all"] }, ["b", "c"]],
    [{ key: "to", operator: "Exists" }, ["a", "b"]],
    [{ key: "to", operator: "DoesNotExist" }, ["c"]],
  ])("matchExpressions %j", async (expression, verbs) => {
    const roles = [
      aggregated("all", { to: "self" }, { matchExpressions: [expression] }),
      labelled("a", { to: "all" }, "a||pods"),
      labelled("b", { to: "some" }, "b||pods"),
      labelled("c", {}, "c||pods"),
    ];
    expect(await verbsOf(...roles)).toEqual(verbs);
  });

  it("an empty selector chooses everything; circles end; chains go through", async () => {
    expect(await verbsOf(aggregated("all", {}, {}), labelled("a", {}, "a||pods"))).toEqual(["a"]);
    const circle = [
      aggregated("all", { in: "circle" }, { matchLabels: { in: "circle" } }),
      aggregated("middle", { in: "circle" }, { matchLabels: { in: "circle" } }, { matchLabels: { a: "1" } }),
      labelled("a", { a: "1" }, "a||pods"),
    ];
    expect(await verbsOf(...circle)).toEqual(["a"]);
  });
});

describe("the index", () => {
  it("looks only at bindings of the user", () => {
    const others = Array.from({ length: 5_000 }, (_, index) =>
      clusterRoleBinding(`b${index}`, "ClusterRole/c", `User:other-${index}`, `Group:others-${index}`),
    );
    const index = new RbacIndex(
      [
        clusterRole("c", resourceRule("*|*|*")),
        ...others,
        clusterRoleBinding("mine", "ClusterRole/c", "User:me", "Group:g"),
      ],
      rulesOfClusterRole,
    );
    expect([...index.bindingsFor(user("me", "g"), "ns")].map((binding) => binding.describe())).toEqual([
      'ClusterRoleBinding "mine" of ClusterRole "c" to User "me"',
    ]);
  });

  it("names from Object.prototype are names like any other", async () => {
    const authorizer = authorizerOf(clusterRoleBinding("b", "ClusterRole/__proto__", "User:constructor"));
    expect((await authorizer.authorize(request("constructor get ns/toString"))).reason).toBe(
      'RBAC: clusterrole.rbac.authorization.k8s.io "__proto__" not found',
    );
  });
});
