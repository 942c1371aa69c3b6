import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StatusError } from "../../packages/client/src/api/status.ts";
import { parseQuantity } from "../../packages/client/src/config/quantity.ts";
import { Impersonation } from "../../src/access/authn/impersonation.ts";
import { CsvError, parseCsv } from "../../src/access/authn/static-tokens.ts";
import { RbacAuthorizer } from "../../src/access/authz/component.ts";
import { RbacIndex } from "../../src/access/authz/rbac/rbac-index.ts";
import { rulesOfClusterRole } from "../../src/access/authz/rbac/rbac-source.ts";
import { requestAttributes } from "../../src/access/authz/request-attributes.ts";
import type { RbacObject } from "../../src/api/rbac-objects.ts";
import { fieldTerms, parseLabelSelector } from "../../src/api/read-only-server/label-selector.ts";
import { requestUrlOf } from "../../src/http/request-url.ts";
import { type AccessQuestion, askKubernetes, asSubject, policyQuestion } from "../support/access-oracle.ts";
import { isGoPeerBuilt } from "../support/go-peers.ts";
import {
  clusterRole,
  clusterRoleBinding,
  resourceRule,
  role,
  roleBinding,
  urlRule,
  user,
} from "../support/rbac-objects.ts";
import { describeReal } from "../support/real-parts.ts";

const CASES = 20_000;
const SEED = 27;
const samples = <Value>(values: fc.Arbitrary<Value>, count = CASES): Value[] =>
  fc.sample(values, { seed: SEED, numRuns: count });
const oneOf = (...texts: string[]) => fc.constantFrom(...texts);
const joined = (values: fc.Arbitrary<string>, maxLength: number, separator = "") =>
  fc.array(values, { maxLength }).map((parts) => parts.join(separator));

const segment = oneOf(
  ...["api", "apis", "v1", "apps", "namespaces", "ns", "pods", "web", "exec", "status", "finalize", "proxy"],
  ...["watch", "nodes", "secrets", "", "a%20b", "x%3Dy", "version", "services"],
);
const option = oneOf(
  ...[
    "watch",
    "watch=",
    "watch=1",
    "watch=0",
    "watch=FALSE",
    "watch=x",
    "limit=5",
    "limit=x",
    "limit=",
    "continue=c",
  ],
  ...[
    "fieldSelector=metadata.name%3Dweb",
    "fieldSelector=metadata.name==a,metadata.name=b",
    "fieldSelector=",
  ],
  ...[
    "fieldSelector=metadata.name!=web",
    "fieldSelector=spec.x=y,metadata.name=w%5C,eb",
    "fieldSelector=metadata.name",
  ],
  ...[
    "fieldSelector=metadata.name=..",
    "fieldSelector=metadata.name=a/b",
    "fieldSelector=metadata.name=a%25",
  ],
  ...[
    "labelSelector=a=b",
    "labelSelector=(",
    "timeoutSeconds=1e3",
    "timeoutSeconds=99999999999999999999",
    "a;b=c",
  ],
);
const method = oneOf(
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "CONNECT",
  "LIST",
  "constructor",
);
const paths = fc.oneof(
  joined(segment, 8, "/").map((path) => `/${path}`),
  joined(segment, 5, "/").map((path) => `/api/v1/${path}`),
  joined(segment, 5, "/").map((path) => `/apis/apps/v1/${path}`),
);
const targets = fc
  .tuple(paths, joined(option, 3, "&"))
  .map(([path, query]) => (query === "" ? path : `${path}?${query}`));

const POLICY: RbacObject[] = [
  role(
    "ns",
    "reader",
    resourceRule("get,list,watch||pods,pods/log,secrets|"),
    resourceRule("get||secrets|web,s"),
  ),
  role("ns", "runner", resourceRule("create||pods/exec,*/attach|"), resourceRule("*|apps|*|")),
  clusterRole("watcher", resourceRule("list,watch||*|"), urlRule("get", "/version,/api*")),
  clusterRole("names", resourceRule("get,list,watch,deletecollection||pods|web")),
  clusterRole("everything", resourceRule("*|*|*|"), urlRule("*", "*")),
  clusterRole(
    "actor",
    resourceRule("impersonate||users,groups,serviceaccounts|"),
    resourceRule("impersonate|authentication.k8s.io|userextras/acme.io/a,uids|"),
  ),
  clusterRole(
    "narrow-actor",
    resourceRule("impersonate:user-info|authentication.k8s.io|users,groups,uids,userextras/acme.io/a|"),
    resourceRule("impersonate:arbitrary-node|authentication.k8s.io|nodes|"),
    resourceRule("impersonate:serviceaccount|authentication.k8s.io|serviceaccounts|"),
    resourceRule(
      "impersonate-on:user-info:list,impersonate-on:user-info:watch,impersonate-on:serviceaccount:get||*|",
    ),
    resourceRule("impersonate-on:arbitrary-node:get||pods,nodes|"),
  ),
  roleBinding("ns", "r1", "Role/reader", "User:alice", "ServiceAccount:builder"),
  roleBinding("ns", "r2", "Role/runner", "Group:dev", "ServiceAccount:other/builder"),
  roleBinding("ns", "r3", "ClusterRole/names", "User:bob"),
  roleBinding("ns", "lost", "Role/gone", "User:bob"),
  clusterRoleBinding("c1", "ClusterRole/watcher", "Group:ops"),
  clusterRoleBinding("c2", "ClusterRole/everything", "Group:system:masters", "User:root"),
  clusterRoleBinding("c3", "ClusterRole/actor", "User:actor"),
  clusterRoleBinding("c4", "ClusterRole/narrow-actor", "User:narrow", "User:actor-too"),
];
const USERS = [
  ...[
    user("alice"),
    user("bob", "dev"),
    user("carol", "ops"),
    user("root"),
    user("actor"),
    user("narrow", "ops"),
  ],
  ...[
    user("system:serviceaccount:ns:builder"),
    user("system:serviceaccount:other:builder"),
    user("zed", "system:masters"),
  ],
];
const authorizer = new RbacAuthorizer(() => index);
const index = new RbacIndex(POLICY, rulesOfClusterRole);

/** The attributes as the gateway has them of a request. */
function attributesOf(asking: (typeof USERS)[number], verb: string, target: string) {
  const { pathname, searchParams } = requestUrlOf(target);
  return requestAttributes(asking, { method: verb, path: pathname, query: searchParams });
}

const name = "beside k8s.io/apiserver";
const describeBuilt = isGoPeerBuilt("access-oracle", "kube-access")
  ? (tests: () => void) => describeReal("go", name, tests)
  : (tests: () => void) =>
      describe.skip(`${name} (kube-access was not built: node scripts/build-go-peers.mjs)`, tests);

describeBuilt(() => {
  it(`knows what a request asks for as RequestInfo does, ${CASES} times`, { timeout: 120_000 }, async () => {
    // A path that one spelling could not be told of is refused before (request-path.ts); a lone verb is a 500 there.
    const asked = samples(fc.tuple(method, targets)).filter(([, target]) => !target.includes("//"));
    const answers = await askKubernetes(
      asked.map(([Method, Target]) => ({ Kind: "request", Method, Target })),
    );
    expect(answers).toHaveLength(asked.length);
    const wrong = asked.flatMap(([verb, target], at) => {
      const { error, ...expected } = answers[at] ?? { error: "no answer" };
      if (error?.startsWith("unable to determine kind and namespace")) return [];
      const { user: _, ...found } = attributesOf(user("u"), verb, target);
      const wanted = { ...expected, allowed: undefined };
      return JSON.stringify(sorted(found)) === JSON.stringify(sorted(wanted))
        ? []
        : [{ verb, target, found, wanted }];
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  });

  it(`allows what RBAC allows, and for its reasons, ${CASES} times`, { timeout: 120_000 }, async () => {
    const asked = samples(fc.tuple(method, targets, fc.constantFrom(...USERS))).filter(
      ([, target]) => !target.includes("//"),
    );
    const answers = await askKubernetes([
      policyQuestion(POLICY),
      ...asked.map(
        ([Method, Target, asking]): AccessQuestion => ({
          Kind: "authorize",
          Method,
          Target,
          User: asSubject(asking),
        }),
      ),
    ]);
    let allowed = 0;
    for (const [at, [verb, target, asking]] of asked.entries()) {
      const answer = answers[at + 1];
      if (answer?.error?.startsWith("unable to determine kind and namespace")) continue;
      // system:masters are allowed before RBAC is asked, here as there.
      const { decision, reason } = await authorizer.authorize(attributesOf(asking, verb, target));
      expect([verb, target, asking.name, decision === "allow", reason]).toEqual([
        verb,
        target,
        asking.name,
        answer?.allowed,
        // The lister of a test has words of its own for a role that is missing.
        (answer?.message ?? "").replace("role not found", 'role.rbac.authorization.k8s.io "gone" not found'),
      ]);
      if (decision === "allow") allowed += 1;
    }
    expect(allowed).toBeGreaterThan(asked.length / 20);
  });

  it.each([true, false])("impersonates as it does; constrained modes: %s", {
    timeout: 120_000,
  }, async (Constrained) => {
    const header = fc.oneof(
      oneOf(
        "jane",
        "system:node:n1",
        "system:serviceaccount:ns:builder",
        "system:anonymous",
        "system:node:",
      ).map((name): [string, string] => ["Impersonate-User", name]),
      oneOf("dev", "ops", "system:masters", "system:authenticated", "").map((name): [string, string] => [
        "Impersonate-Group",
        name,
      ]),
      oneOf("1", "").map((uid): [string, string] => ["Impersonate-Uid", uid]),
      fc
        .tuple(oneOf("acme.io%2fa", "b", "acme.io%2Fb"), oneOf("x", "y", ""))
        .map(([key, value]): [string, string] => [`Impersonate-Extra-${key}`, value]),
    );
    const headers = fc.array(header, { minLength: 1, maxLength: 6 });
    const asked = samples(fc.tuple(method, targets, fc.constantFrom(...USERS), headers), 5_000).filter(
      ([, target]) => !target.includes("//"),
    );
    const answers = await askKubernetes([
      policyQuestion(POLICY),
      ...asked.map(
        ([Method, Target, asking, Headers]): AccessQuestion => ({
          Kind: "impersonate",
          Method,
          Target,
          User: asSubject(asking),
          Headers,
          Constrained,
        }),
      ),
    ]);
    let impersonated = 0;
    for (const [at, [verb, target, caller, lines]] of asked.entries()) {
      const answer = answers[at + 1];
      if (answer === undefined || answer.error !== undefined) continue;
      // Fresh for each: both remember what allowed a caller last, by keys of their own.
      const decide = new Impersonation(authorizer, Constrained).decide(caller, lines, (of) =>
        attributesOf(of, verb, target),
      );
      const found = await decide.then(
        (as) => ({ status: 200, user: as?.user ?? caller }),
        (error: unknown) => ({ status: error instanceof StatusError ? error.code : 0, user: undefined }),
      );
      const { user: as } = found;
      expect({
        verb,
        target,
        caller: caller.name,
        lines,
        status: found.status,
        user: as?.name,
        groups: as?.groups ?? [],
        extra: as?.extra ?? {},
      }).toEqual({
        ...{ verb, target, caller: caller.name, lines, status: answer.status },
        ...(answer.status === 200
          ? { user: answer.user, groups: answer.groups ?? [], extra: answer.extra ?? {} }
          : { user: undefined, groups: [], extra: {} }),
      });
      if (found.status === 200) impersonated += 1;
    }
    expect(impersonated).toBeGreaterThan(50);
  });

  it("reads selectors as apimachinery does", { timeout: 120_000 }, async () => {
    const labels = { a: "3", b: "", "example.com/x": "y", in: "notin" };
    const piece = oneOf(
      "a",
      "b",
      "c",
      "example.com/x",
      "=",
      "==",
      "!=",
      "!",
      ",",
      "(",
      ")",
      "in",
      "notin",
      "<",
      ">",
      " ",
      "\t",
      "\0",
      "3",
      "-5",
      "\\",
      "/",
      "é",
      "\u00a0",
    );
    const texts = samples(joined(piece, 8));
    const answers = await askKubernetes([
      ...texts.map((Text): AccessQuestion => ({ Kind: "labels", Text, Set: labels })),
      ...texts.map((Text): AccessQuestion => ({ Kind: "fields", Text, Set: labels })),
    ]);
    const outcome = (read: () => boolean) => {
      try {
        return read();
      } catch (error) {
        return error instanceof StatusError ? "refused" : String(error);
      }
    };
    const matchesFields = (text: string) =>
      fieldTerms(text).every(
        ({ field, operator, value }) =>
          (((labels as Record<string, string>)[field] ?? "") === value) === (operator !== "!="),
      );
    const wrong = texts.flatMap((text, at) =>
      [outcome(() => parseLabelSelector(text)(labels)), outcome(() => matchesFields(text))].flatMap(
        (found, which) => {
          const answer = answers[at + which * texts.length];
          const wanted = answer?.error === undefined ? (answer?.matches ?? false) : "refused";
          return found === wanted ? [] : [{ text, which, found, wanted }];
        },
      ),
    );
    expect(wrong.slice(0, 3)).toEqual([]);
  });

  it("reads quantities as apimachinery does", { timeout: 120_000 }, async () => {
    const number = fc
      .tuple(fc.nat(99_999), fc.nat(9_999), oneOf("", ".", "0."))
      .map(([whole, fraction, dot]) => (dot === "" ? `${whole}` : `${whole}${dot}${fraction}`));
    const texts = samples(
      fc
        .tuple(
          number,
          oneOf(
            "",
            "n",
            "u",
            "m",
            "k",
            "M",
            "G",
            "T",
            "P",
            "E",
            "Ki",
            "Mi",
            "Gi",
            "Ti",
            "Pi",
            "Ei",
            "e3",
            "E-2",
            "e+2",
            "K",
            "e",
            "x",
          ),
        )
        .map((parts) => parts.join("")),
    );
    const answers = await askKubernetes(texts.map((Text) => ({ Kind: "quantity", Text })));
    const wrong = texts.flatMap((text, at) => {
      const { error, value = "" } = answers[at] ?? { error: "no answer" };
      const [, whole = ""] = /^(\d+)(?:\.0*)?$/.exec(value) ?? [];
      const wanted =
        error === undefined && whole !== "" && Number.isSafeInteger(Number(whole))
          ? Number(whole)
          : "refused";
      let found: number | string = "refused";
      try {
        found = parseQuantity(text);
      } catch (problem) {
        if (!(problem instanceof RangeError)) throw problem;
      }
      // Past nine decimals Kubernetes rounds up; nothing here is a whole number then.
      return found === wanted ? [] : [{ text, found, wanted, value }];
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  });

  it("reads CSV as Go does", { timeout: 120_000 }, async () => {
    const texts = samples(joined(oneOf("a", "é", '"', '""', ",", "\n", "\r\n", "\r", " "), 10));
    const answers = await askKubernetes(texts.map((Text) => ({ Kind: "csv", Text })));
    const wrong = texts.flatMap((text, at) => {
      const wanted = answers[at]?.error === undefined ? (answers[at]?.records ?? []) : "refused";
      let found: unknown = "refused";
      try {
        found = parseCsv(text).map(({ fields }) => fields);
      } catch (problem) {
        if (!(problem instanceof CsvError)) throw problem;
      }
      return JSON.stringify(found) === JSON.stringify(wanted) ? [] : [{ text, found, wanted }];
    });
    expect(wrong.slice(0, 3)).toEqual([]);
  });
});

function sorted(fields: object): object {
  return Object.fromEntries(Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
