import { describe, expect, it } from "vitest";
import { answerApiRequest } from "../../../../src/api/read-only-server/answer-api-request.ts";
import type { ClusterStore } from "../../../../src/cluster/cluster-store.ts";
import { exampleCluster } from "../../../support/api/example-cluster.ts";
import { testApiOptions } from "./http-adapter.ts";

const TABLE =
  "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const store = exampleCluster();

const ask = (target: string, accept = "", method = "GET", source: ClusterStore = store) => {
  const url = new URL(target, "http://api");
  const answer = answerApiRequest(
    { method, path: url.pathname, query: url.searchParams, accept },
    source,
    testApiOptions,
  );
  const text = answer?.body instanceof Uint8Array ? new TextDecoder().decode(answer.body) : "";
  return {
    status: answer?.status,
    type: answer?.headers["Content-Type"],
    text,
    json: text.startsWith("{") ? JSON.parse(text) : undefined,
  };
};
const names = (target: string) =>
  ask(target).json.items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);

describe("discovery", () => {
  it.each(["v2", "v2beta1"])("is aggregated for clients that accept it: %s", (version) => {
    const accept = `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,application/json`;
    const { type, json } = ask("/api", accept);
    expect(type).toBe(`application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`);
    expect(json.apiVersion).toBe(`apidiscovery.k8s.io/${version}`);
    const pods = json.items[0].versions[0].resources.find(
      ({ resource }: { resource: string }) => resource === "pods",
    );
    expect(pods).toMatchObject({
      scope: "Namespaced",
      singularResource: "pod",
      shortNames: ["po"],
      responseKind: { group: "", version: "v1", kind: "Pod" },
    });
    expect(pods.subresources.map(({ subresource }: { subresource: string }) => subresource)).toEqual([
      "attach",
      "exec",
      "portforward",
    ]);
    expect(ask("/apis", accept).json).toMatchObject({
      kind: "APIGroupDiscoveryList",
      items: [
        {
          metadata: { name: "apps" },
          versions: [
            {
              version: "v1",
              resources: [
                {
                  resource: "deployments",
                  scope: "Namespaced",
                  shortNames: ["deploy"],
                  responseKind: { group: "apps", version: "v1", kind: "Deployment" },
                },
              ],
            },
          ],
        },
        {
          metadata: { name: "authentication.k8s.io" },
          versions: [{ version: "v1" }, { version: "v1beta1" }],
        },
        {
          metadata: { name: "authorization.k8s.io" },
          versions: [
            {
              version: "v1",
              resources: [
                { resource: "selfsubjectaccessreviews", scope: "Cluster", verbs: ["create"] },
                { resource: "selfsubjectrulesreviews" },
              ],
            },
          ],
        },
        {
          metadata: { name: "networking.k8s.io" },
          versions: [
            {
              version: "v1",
              resources: [
                {
                  resource: "ingressclasses",
                  scope: "Cluster",
                  responseKind: { group: "networking.k8s.io", version: "v1", kind: "IngressClass" },
                },
                { resource: "ingresses", scope: "Namespaced", shortNames: ["ing"] },
              ],
            },
          ],
        },
      ],
    });
  });

  it("has its older form", () => {
    expect(ask("/api").json).toMatchObject({ kind: "APIVersions", versions: ["v1"] });
    const v1 = { groupVersion: "authorization.k8s.io/v1", version: "v1" };
    const group = { name: "authorization.k8s.io", versions: [v1], preferredVersion: v1 };
    expect(ask("/apis").json).toMatchObject({
      kind: "APIGroupList",
      apiVersion: "v1",
      groups: [{ name: "apps" }, { name: "authentication.k8s.io" }, group, { name: "networking.k8s.io" }],
    });
    expect(ask("/apis/authorization.k8s.io").json).toEqual({ kind: "APIGroup", apiVersion: "v1", ...group });
    expect(ask("/apis/authorization.k8s.io/v1").json).toMatchObject({
      kind: "APIResourceList",
      groupVersion: "authorization.k8s.io/v1",
      resources: [
        { name: "selfsubjectaccessreviews", namespaced: false, verbs: ["create"] },
        { name: "selfsubjectrulesreviews", kind: "SelfSubjectRulesReview" },
      ],
    });
    expect(ask("/api/v1").json.resources.map(({ name }: { name: string }) => name)).toEqual([
      "namespaces",
      "nodes",
      "pods",
      "pods/attach",
      "pods/exec",
      "pods/portforward",
      "services",
    ]);
    expect(ask("/apis/networking.k8s.io/v1").json.resources).toMatchObject([
      { name: "ingressclasses", namespaced: false, verbs: ["get", "list", "watch"] },
      { name: "ingresses", namespaced: true, verbs: ["get", "list", "watch"] },
    ]);
    expect(ask("/").json.paths).toContain("/api/v1");
  });

  it("tells the version", () => {
    expect(ask("/version").json).toMatchObject({
      major: "1",
      minor: "36",
      gitVersion: "v1.36.0+sluice",
      platform: "linux/amd64",
    });
  });
});

describe("health", () => {
  it.each(["/healthz", "/livez", "/readyz"])("%s", (path) => {
    expect(ask(path)).toMatchObject({ status: 200, type: "text/plain; charset=utf-8", text: "ok" });
  });

  it("is not ready while shutting down", () => {
    const request = { method: "GET", path: "/readyz", query: new URLSearchParams(), accept: "" };
    expect(answerApiRequest(request, store, { ...testApiOptions, isReady: () => false })?.status).toBe(500);
  });
});

describe("reading", () => {
  it("gets one, and lists some", () => {
    expect(ask("/api/v1/namespaces/default/pods/web").json).toMatchObject({
      kind: "Pod",
      metadata: { name: "web" },
    });
    expect(ask("/api/v1/nodes/node-ws").json.kind).toBe("Node");
    expect(ask("/api/v1/namespaces/other").json.kind).toBe("Namespace");
    expect(ask("/api/v1/pods").json).toMatchObject({
      kind: "PodList",
      apiVersion: "v1",
      metadata: { resourceVersion: String(store.resourceVersion) },
    });
    expect(names("/api/v1/pods")).toEqual(["web", "web-ws", "waiting"]);
    expect(names("/api/v1/namespaces/nowhere/pods")).toEqual([]);
    expect(names("/api/v1/namespaces/d%65fault/pods")).toEqual(["web", "web-ws"]);
    expect(names("/api/v1/namespaces")).toEqual(["default", "other"]);
  });

  it.each([
    ["labelSelector=app%3Dweb,tier+in+(back,+x)", ["web-ws"]],
    ["labelSelector=!app", ["waiting"]],
    ["fieldSelector=metadata.namespace%3Dother", ["waiting"]],
    ["fieldSelector=spec.nodeName!%3D,metadata.name!%3Dweb", ["web-ws"]],
    ["labelSelector=&fieldSelector=", ["web", "web-ws", "waiting"]],
  ])("selects: %s", (query, expected) => {
    expect(names(`/api/v1/pods?${query}`)).toEqual(expected);
  });

  it("pages, and refuses tokens that it cannot continue", () => {
    const first = ask("/api/v1/pods?limit=2").json;
    expect(first.metadata).toMatchObject({ remainingItemCount: 1 });
    const next = `/api/v1/pods?limit=2&continue=${first.metadata.continue}`;
    expect(names(next)).toEqual(["waiting"]);
    expect(ask(next).json.metadata.continue).toBeUndefined();
    const changed = exampleCluster();
    changed.replaceAll([], new Date());
    expect(ask(next, "", "GET", changed)).toMatchObject({ status: 410, json: { reason: "Expired" } });
    expect(ask("/api/v1/pods?continue=bm9uZQ")).toMatchObject({
      status: 400,
      json: { reason: "BadRequest" },
    });
  });

  it.each(["None", "Metadata", "Object"])("prints Tables, with %s of the object", (includeObject) => {
    const { json } = ask(`/api/v1/namespaces/default/pods?includeObject=${includeObject}`, TABLE);
    expect(json).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1" });
    const [row] = json.rows;
    expect(row.cells.slice(0, 4)).toEqual(["web", "1/1", "Running", "0"]);
    expect(row.cells.length).toBe(json.columnDefinitions.length);
    const object = { None: null, Metadata: "PartialObjectMetadata", Object: "Pod" }[includeObject];
    expect(row.object?.kind ?? null).toBe(object);
  });

  it("prints a Table of one object, and the older version of it", () => {
    const { json } = ask("/api/v1/nodes/node-spdy", "application/json;as=Table;v=v1beta1;g=meta.k8s.io");
    expect(json.apiVersion).toBe("meta.k8s.io/v1beta1");
    expect(json.rows[0].cells.slice(0, 3)).toEqual(["node-spdy", "Ready", "edge"]);
  });
});

describe("what cannot be answered", () => {
  it.each([
    ["GET", "/api/v1/namespaces/default/pods/nope", 404, 'pods "nope" not found'],
    [
      "GET",
      "/api/v1/namespaces/default/pods/web/log",
      404,
      "the server could not find the requested resource",
    ],
    ["GET", "/api/v1/secrets", 404, "the server could not find the requested resource"],
    ["GET", "/api/v1/namespaces/default/nodes", 404, "the server could not find the requested resource"],
    ["GET", "/api/v1/pods/web", 404, "the server could not find the requested resource"],
    ["GET", "/api/v1/nodes/a/b", 404, "the server could not find the requested resource"],
    ["GET", "/api/v1//", 404, "the server could not find the requested resource"],
    ["GET", "/api/v1//pods", 404, "the server could not find the requested resource"],
    ["GET", "/api/v1/nodes/%zz", 404, "the server could not find the requested resource"],
    ["GET", "/toString", 404, "the server could not find the requested resource"],
    ["GET", "/openapi/v2", 404, "the server could not find the requested resource"],
    ["GET", "/openapi/v3/api/v1", 404, "the server could not find the requested resource"],
    ["GET", "/apis/apps/v1/replicasets", 404, "the server could not find the requested resource"],
    [
      "POST",
      "/api/v1/namespaces/default/pods",
      405,
      "the server does not allow this method on the requested resource (post pods)",
    ],
    [
      "DELETE",
      "/api/v1/namespaces/default/pods/web",
      405,
      "the server does not allow this method on the requested resource (delete pods web)",
    ],
    ["POST", "/version", 405, "the server does not allow this method on the requested resource"],
    ["GET", "/api/v1/pods?fieldSelector=foo%3Dbar", 400, "field label not supported: foo"],
    ["GET", "/api/v1/pods?fieldSelector=foo", 400, "invalid selector: 'foo'; can't understand 'foo'"],
    [
      "GET",
      "/api/v1/pods?labelSelector=a+b",
      400,
      "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
    ],
    [
      "GET",
      "/api/v1/pods?limit=x",
      400,
      'invalid value for limit: strconv.ParseInt: parsing "x": invalid syntax',
    ],
    ["GET", "/api/v1/pods?watch=1&resourceVersion=x", 400, 'invalid resource version "x"'],
    [
      "GET",
      "/api/v1/pods?watch=1&resourceVersion=999999",
      410,
      `too old resource version: 999999 (${store.resourceVersion})`,
    ],
  ])("%s %s: %i", (method, target, status, message) => {
    const answer = ask(target, "", method);
    expect(answer).toMatchObject({ status, type: "application/json" });
    expect(answer.json).toMatchObject({ kind: "Status", status: "Failure", code: status, message });
  });

  it("reads a named object whatever `watch` says, since its caller was judged for get", () => {
    const read = ask("/api/v1/namespaces/default/pods/web");
    expect(read.json).toMatchObject({ kind: "Pod" });
    expect(ask("/api/v1/namespaces/default/pods/web?watch=1").json).toEqual(read.json);
    expect(ask("/api/v1/namespaces/default/pods/none?watch").status).toBe(404);
  });

  it.each([
    ["application/vnd.kubernetes.protobuf", 406],
    ["text/html", 406],
    ["application/json;q=0", 406],
    ["application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", 406],
    ["application/vnd.kubernetes.protobuf,application/json", 200],
    ["text/html, */*;q=0.1", 200],
    ["application/*", 200],
    ["", 200],
  ])("Accept %j: %i", (accept, status) => {
    const answer = ask("/api/v1/pods", accept);
    expect(answer.status).toBe(status);
    if (status === 406) {
      expect(answer.json).toMatchObject({
        reason: "NotAcceptable",
        message: "only the following media types are accepted: application/json",
      });
    }
  });

  it.each(["exec", "attach", "portforward"])("leaves pods/%s to the gateway", (subresource) => {
    const request = {
      method: "POST",
      path: `/api/v1/namespaces/default/pods/web/${subresource}`,
      query: new URLSearchParams(),
      accept: "",
    };
    expect(answerApiRequest(request, store, testApiOptions)).toBeUndefined();
  });
});
