import { groupVersionOf, type Resource, resources } from "./resources.ts";

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const REVIEWS = [
  { group: "authentication.k8s.io", plural: "tokenreviews", kind: "TokenReview" },
  { group: "authorization.k8s.io", plural: "subjectaccessreviews", kind: "SubjectAccessReview" },
  { group: "authorization.k8s.io", plural: "selfsubjectaccessreviews", kind: "SelfSubjectAccessReview" },
];

/**
 * The document at a path of discovery, in the form that every kubectl reads; undefined for any
 * other path.
 */
export function discoveryDocument(path: string): object | undefined {
  if (path === "/api") return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
  if (path === "/apis") return { kind: "APIGroupList", apiVersion: "v1", groups: groups().map(groupEntry) };
  if (path === "/version") return version;
  if (path === "/openapi/v3") return openApiIndex();
  const [, root = "", ...rest] = path.split("/");
  if (root === "openapi") return rest[0] === "v3" ? openApiDocument(rest.slice(1)) : undefined;
  if (root === "apis" && rest.length === 1) {
    const group = rest[0] ?? "";
    return groups().includes(group)
      ? { kind: "APIGroup", apiVersion: "v1", ...groupEntry(group) }
      : undefined;
  }
  return resourceList(path);
}

const version = {
  major: "1",
  minor: "36",
  gitVersion: "v1.36.0-test",
  platform: "linux/amd64",
  goVersion: "none",
};

function groups(): string[] {
  return [
    ...new Set([...resources, ...REVIEWS].map(({ group }) => group).filter((group) => group !== "")),
  ].sort();
}

function groupEntry(name: string): object {
  const others = resources.filter(({ group }) => group === name).map(({ version }) => version);
  const versions = [...new Set(["v1", ...others])].map((version) => ({
    groupVersion: `${name}/${version}`,
    version,
  }));
  return { name, versions, preferredVersion: versions[0] };
}

function resourceList(path: string): object | undefined {
  const groupVersion = /^\/(?:api|apis\/[^/]+)\/v1(?:beta1)?$/.test(path)
    ? path.replace(/^\/apis?\//, "")
    : undefined;
  if (groupVersion === undefined) return undefined;
  const own = resources.filter((resource) => groupVersionOf(resource) === groupVersion);
  const reviews = REVIEWS.filter(({ group }) => `${group}/v1` === groupVersion);
  if (own.length + reviews.length === 0) return undefined;
  const entries = [
    ...own.flatMap(resourceEntries),
    ...reviews.map(({ plural, kind }) => ({
      name: plural,
      singularName: "",
      namespaced: false,
      kind,
      verbs: ["create"],
    })),
  ];
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion, resources: entries };
}

function resourceEntries({
  plural,
  kind,
  isNamespaced,
  shortNames = [],
  hasStatus = false,
}: Resource): object[] {
  const base = { singularName: kind.toLowerCase(), namespaced: isNamespaced, kind };
  const status = { ...base, name: `${plural}/status`, singularName: "", verbs: ["get", "patch", "update"] };
  return [{ ...base, name: plural, verbs: VERBS, shortNames }, ...(hasStatus ? [status] : [])];
}

/** Before it applies, kubectl asks whether the server can validate writes (`fieldValidation`). */
function openApiIndex(): object {
  const versions = [...new Set(resources.map(groupVersionOf))];
  const pathOf = (groupVersion: string) => (groupVersion.includes("/") ? "apis" : "api");
  return {
    paths: Object.fromEntries(
      versions.map((groupVersion) => {
        const path = `${pathOf(groupVersion)}/${groupVersion}`;
        return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=0` }];
      }),
    ),
  };
}

function openApiDocument([root, ...rest]: readonly string[]): object {
  const groupVersion = rest.join("/");
  const own = resources.filter((resource) => groupVersionOf(resource) === groupVersion);
  const parameters = [{ name: "fieldValidation", in: "query", schema: { type: "string" } }];
  const paths = own.map(({ group, version, kind, plural, isNamespaced }) => {
    const patch = { parameters, responses: {}, "x-kubernetes-group-version-kind": { group, version, kind } };
    const place = isNamespaced ? `namespaces/{namespace}/${plural}/{name}` : `${plural}/{name}`;
    return [`/${root}/${groupVersion}/${place}`, { patch }];
  });
  return { openapi: "3.0.0", info: { title: "test", version: "v1" }, paths: Object.fromEntries(paths) };
}
