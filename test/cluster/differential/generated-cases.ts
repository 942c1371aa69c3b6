import fc from "fast-check";
import { clusterBinding } from "../kubernetes/objects.ts";
import type { HttpCase } from "./http-cases.ts";

/** The same cases in every run; another seed finds others: SLUICE_SEED=2 npm run test:cluster. */
const seed = Number(process.env.SLUICE_SEED ?? 1);
const ROLES = 30;

const sampled = <T>(arbitrary: fc.Arbitrary<T>, numRuns: number): T[] =>
  fc.sample(arbitrary, { seed, numRuns });
const some = <T>(...values: readonly T[]): fc.Arbitrary<T[]> => fc.subarray([...values], { minLength: 1 });
const one = <T>(...values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);

const rule = fc.record({
  apiGroups: fc.oneof(one<string[]>([""], ["*"]), some("", "apps", "*")),
  resources: some(
    "pods",
    "pods/exec",
    "pods/attach",
    "pods/portforward",
    "pods/log",
    "pods/*",
    "*/exec",
    "*",
    "*/*",
  ),
  verbs: some("get", "create", "list", "*"),
  resourceNames: one<string[]>([], [], ["web"], ["echoer", ""]),
});

/** Roles with generated rules; the group `generated-N` has the Nth, in the whole cluster or in `default`. */
export function generatedRoles(): object[] {
  const rbac = { apiVersion: "rbac.authorization.k8s.io/v1" };
  const roles = sampled(
    fc.record({ rules: fc.array(rule, { minLength: 1, maxLength: 3 }), isWide: fc.boolean() }),
    ROLES,
  );
  return roles.flatMap(({ rules, isWide }, index) => {
    const name = `generated-${index}`;
    const binding = clusterBinding(name, name, { kind: "Group", name });
    const bound = isWide
      ? binding
      : { ...binding, kind: "RoleBinding", metadata: { name, namespace: "default" } };
    return [{ ...rbac, kind: "ClusterRole", metadata: { name }, rules }, bound];
  });
}

const pod = one("web", "echoer", "nosuch");
const subresource = one("exec", "attach", "portforward", "log", "");

/** Streaming requests of users who have one of the generated roles. */
export function generatedRbacCases(): HttpCase[] {
  const request = fc.record({
    group: fc.nat({ max: ROLES - 1 }),
    namespace: one("default", "default", "kube-system"),
    pod,
    subresource,
    method: one("GET", "GET", "POST"),
  });
  return sampled(request, 120).map((row) => ({
    user: "admin",
    method: row.subresource === "" || row.subresource === "log" ? "GET" : row.method,
    path: `/api/v1/namespaces/${row.namespace}/pods/${row.pod}/${row.subresource}`.replace(/\/$/, ""),
    headers: { "Impersonate-User": "generated", "Impersonate-Group": `generated-${row.group}` },
    note: `generated-${row.group}`,
  }));
}

/** Streaming requests with generated queries. */
export function generatedOptionCases(): HttpCase[] {
  const value = one(
    "",
    "0",
    "1",
    "true",
    "false",
    "TRUE",
    "main",
    "side",
    "nosuch",
    "8080",
    "80,x",
    "a%20b",
    "%zz",
    "é",
  );
  const name = one(
    "command",
    "container",
    "stdin",
    "stdout",
    "stderr",
    "tty",
    "ports",
    "port",
    "dryRun",
    "Stdout",
    "x",
  );
  const query = fc.array(fc.tuple(name, value), { maxLength: 5 });
  const request = fc.record({ pod, subresource: one("exec", "attach", "portforward"), query });
  return sampled(request, 120).map((row) => {
    const text = row.query.map(([key, given]) => `${key}=${given}`).join("&");
    return {
      user: "admin",
      method: "GET",
      path: encodeURI(`/api/v1/namespaces/default/pods/${row.pod}/${row.subresource}?${text}`).replaceAll(
        "%25",
        "%",
      ),
    };
  });
}

/** Requests of paths made of segments that mean something at another place. */
export function generatedPathCases(): HttpCase[] {
  const segment = one(
    ...[
      "api",
      "v1",
      "apis",
      "apps",
      "namespaces",
      "default",
      "pods",
      "web",
      "exec",
      "attach",
      "log",
      "proxy",
    ],
    ...["nodes", "worker-1", "watch", "nosuch", "a:80", "Web", "status", "portforward"],
  );
  const tail = fc.array(segment, { maxLength: 4 }).map((segments) => segments.join("/"));
  const base = one(
    "/api/v1",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/pods/nosuch",
    "/apis",
    "",
  );
  const request = fc.record({ base, tail, method: one("GET", "GET", "POST"), end: one("", "", "/") });
  return sampled(request, 120).flatMap((row) => {
    const path = `${row.base}/${row.tail}${row.tail === "" ? "" : row.end}`;
    // A watch has no end of its own.
    return path.includes("watch") ? [] : [{ user: "viewer", method: row.method, path }];
  });
}
