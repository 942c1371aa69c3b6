import type { User } from "../doors.ts";
import type { HttpExchange } from "./raw-exchange.ts";

/** One request of one user. `$NAME` is a name that only this way to the cluster uses. */
export interface HttpCase extends HttpExchange {
  readonly user: User;
  /** Distinguishes cases with the same method and path. */
  readonly note?: string;
}

const get = (user: User, ...paths: readonly string[]): HttpCase[] =>
  paths.map((path) => ({ user, method: "GET", path }));

const withHeaders = (path: string, ...all: readonly Record<string, string>[]): HttpCase[] =>
  all.map((headers) => ({
    user: "admin",
    method: "GET",
    path,
    headers,
    note: Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join(", "),
  }));

const send = (method: string, path: string, type: string, body: string, note = ""): HttpCase => ({
  user: "admin",
  method,
  path,
  headers: { "Content-Type": type },
  body,
  note: `${type} ${note}`,
});

const DEFAULT = "/api/v1/namespaces/default";
const PODS = `${DEFAULT}/pods`;
const WEB = `${PODS}/web`;
const FORWARD = `${WEB}/portforward`;
const MAPS = `${DEFAULT}/configmaps`;
const JSON_TYPE = "application/json";
const configMap = JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "$NAME" } });
const review = JSON.stringify({
  apiVersion: "authorization.k8s.io/v1",
  kind: "SelfSubjectAccessReview",
  spec: {
    resourceAttributes: { verb: "create", resource: "pods", subresource: "exec", namespace: "default" },
  },
});
const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

export const httpCases: readonly HttpCase[] = [
  ...get(
    "admin",
    WEB,
    `${PODS}?labelSelector=app`,
    `${PODS}?labelSelector=app&limit=1`,
    `${PODS}?limit=1&continue=nosuch`,
    `${PODS}?limit=x`,
    `${PODS}?labelSelector=%21%21`,
    `${PODS}?fieldSelector=a`,
    `${PODS}?resourceVersion=x`,
    `${PODS}?watch=1&timeoutSeconds=1&labelSelector=app%3Dweb`,
    `${PODS}?watch=maybe&timeoutSeconds=1&labelSelector=app%3Dweb`,
    `${PODS}?pretty=true&labelSelector=app%3Dweb`,
    `${PODS}/nosuch`,
    `${PODS}/No_Name`,
    `${DEFAULT}/nosuch`,
    `${WEB}/nosuch`,
    `${WEB}/status`,
    `${WEB}/ephemeralcontainers`,
    `${WEB}/log?container=main&tailLines=1`,
    `${WEB}/log`,
    `${WEB}/log?container=nosuch`,
    `${WEB}/log?container=main&tailLines=-1`,
    `${WEB}/log?container=main&sinceSeconds=x`,
    `${WEB}/log?container=main&previous=true`,
    `${PODS}/finite/log?tailLines=2`,
    `${PODS}/finite/log?follow=true&limitBytes=5`,
    `${PODS}/crashing/log?previous=true`,
    `${PODS}/nosuch/log`,
    "/api",
    "/api/",
    "/api/v1",
    "/api/v1/",
    "/api/v2",
    "/apis",
    "/apis/apps",
    "/apis/apps/v1",
    "/apis/nosuch.example",
    "/apis/nosuch.example/v1/things",
    "/version",
    "/version/",
    "/healthz",
    "/healthz/ping",
    "/healthz/nosuch",
    "/livez?verbose",
    "/readyz?exclude=ping",
    "/",
    "/nosuch",
    "/openapi/v3",
    "/openapi/v3/version",
    "/.well-known/openid-configuration",
    "/openid/v1/jwks",
    "/logs/",
    "/debug/pprof/cmdline",
    "/ui",
    "/api/v1/pods?labelSelector=app%3Dweb",
    "/api/v1/watch/namespaces/default/pods/web?timeoutSeconds=1",
    "/api/v1/nodes/worker-1/proxy/healthz",
    "/api/v1/nodes/nosuch/proxy/healthz",
    `${DEFAULT}/services/web/proxy/`,
    `${WEB}:8080/proxy/index.html`,
    "//api/v1",
    "/api/v1/../v1",
    "/api/v1/namespaces/default/pods/%77eb",
    "/api/v1/namespaces//pods",
    `${WEB}/`,
    `${WEB}/exec`,
    `${WEB}/exec?command=id`,
    `${WEB}/exec?container=main`,
    `${WEB}/exec?container=main&command=id`,
    `${WEB}/exec?container=main&command=id&stdout=1&tty=1&stderr=1`,
    `${WEB}/exec?container=main&command=id&stdout=maybe`,
    `${WEB}/exec?container=nosuch&command=id&stdout=1`,
    `${PODS}/nosuch/exec?command=id&stdout=1`,
    `${PODS}/finite/exec?command=id&stdout=1`,
    `${WEB}/attach?container=main`,
    `${WEB}/attach?container=main&stdout=1`,
    `${PODS}/nosuch/attach?stdout=1`,
    FORWARD,
    `${FORWARD}?ports=abc`,
    `${FORWARD}?ports=0`,
    `${FORWARD}?ports=70000`,
    `${FORWARD}?ports=80&ports=-1`,
    `${PODS}/nosuch/portforward?ports=80`,
    `${PODS}/finite/portforward?ports=80`,
  ),
  ...get(
    "viewer",
    WEB,
    `${WEB}/exec?command=id`,
    FORWARD,
    "/api/v1/nodes",
    `${DEFAULT}/secrets`,
    "/metrics",
    "/logs/",
  ),
  ...get(
    "none",
    WEB,
    `${WEB}/exec?command=id`,
    `${WEB}/attach`,
    `${PODS}/nosuch/exec?command=id`,
    "/version",
    "/healthz",
  ),
  ...get("nobody", WEB, `${WEB}/exec?command=id`, "/version", "/healthz", "/api", "/openapi/v2"),
  ...get("alice", WEB, `${WEB}/exec?command=id`, "/apis"),
  ...withHeaders(
    `${PODS}?labelSelector=app`,
    { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io" },
    { Accept: "application/json;as=Table;v=v1;g=meta.k8s.io,application/json" },
    { Accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" },
    { Accept: "application/yaml" },
    { Accept: "application/vnd.kubernetes.protobuf" },
    { Accept: "application/cbor" },
    { Accept: "text/html" },
    { Accept: "*/*" },
    { "Accept-Encoding": "gzip" },
    { "If-None-Match": '"x"' },
    { Authorization: "Bearer wrong" },
    { Authorization: "Basic YTpi" },
    { Authorization: "Bearer " },
    { Range: "bytes=0-1" },
    { Origin: "https://elsewhere.example" },
    { "X-Remote-User": "root" },
    { "User-Agent": "" },
    { "Audit-Id": "mine" },
    { Expect: "100-continue" },
  ),
  ...withHeaders(
    "/apis",
    { Accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" },
    { Accept: "application/vnd.kubernetes.protobuf" },
  ),
  ...withHeaders(
    `${WEB}/exec?command=id`,
    { Accept: "application/yaml" },
    { Accept: "application/vnd.kubernetes.protobuf" },
    { Authorization: "Bearer wrong" },
    { Origin: "https://elsewhere.example" },
  ),
  ...withHeaders(
    WEB,
    { "Impersonate-User": "dave" },
    { "Impersonate-User": "dave", "Impersonate-Group": "devs" },
    { "Impersonate-Group": "devs" },
    { "Impersonate-Uid": "1" },
    { "Impersonate-Extra-Key": "1" },
    { "Impersonate-User": "dave", "Impersonate-Extra-Acme.com%2fKey": "1" },
    { "Impersonate-User": "dave", "Impersonate-Nosuch": "1" },
    { "Impersonate-User": "" },
  ),
  ...withHeaders(
    `${WEB}/exec?command=id`,
    { "Impersonate-User": "dave" },
    { "Impersonate-Group": "devs" },
    { "Impersonate-Uid": "1" },
    { "Impersonate-Extra-Key": "1" },
    { "Impersonate-User": "dave", "Impersonate-Nosuch": "1" },
  ),
  ...["HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"].flatMap((method) =>
    [`${PODS}/nosuch/exec?command=id`, `${PODS}/nosuch/log`, `${PODS}/nosuch/portforward`, "/version"].map(
      (path): HttpCase => ({ user: "admin", method, path }),
    ),
  ),
  send("POST", `${MAPS}?dryRun=All`, JSON_TYPE, configMap),
  send("POST", `${MAPS}?dryRun=Nosuch`, JSON_TYPE, configMap),
  send(
    "POST",
    `${MAPS}?dryRun=All&fieldValidation=Strict`,
    JSON_TYPE,
    configMap.replace('"kind"', '"x":1,"kind"'),
  ),
  send(
    "POST",
    `${MAPS}?dryRun=All&fieldValidation=Warn`,
    JSON_TYPE,
    configMap.replace('"kind"', '"x":1,"kind"'),
  ),
  send(
    "POST",
    `${MAPS}?dryRun=All`,
    "application/yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: $NAME}\n",
  ),
  send("POST", `${MAPS}?dryRun=All`, "text/plain", configMap),
  send("POST", `${MAPS}?dryRun=All`, JSON_TYPE, "{", "broken"),
  send("POST", `${MAPS}?dryRun=All`, JSON_TYPE, "", "empty"),
  send("POST", REVIEWS, JSON_TYPE, review),
  { ...send("POST", REVIEWS, JSON_TYPE, review, "viewer"), user: "viewer" },
  { ...send("POST", REVIEWS, JSON_TYPE, review, "dev"), user: "dev" },
  send("PATCH", WEB, "application/strategic-merge-patch+json", '{"metadata":{"labels":{"app":"web"}}}'),
  send("PATCH", WEB, "application/nosuch+json", "{}"),
  send("PATCH", WEB, "application/json-patch+json", '[{"op":"test","path":"/kind","value":"x"}]'),
  send("PUT", `${MAPS}/nosuch`, JSON_TYPE, configMap.replace("$NAME", "nosuch")),
  send("DELETE", `${MAPS}/nosuch`, JSON_TYPE, ""),
  send("POST", `${WEB}/binding`, JSON_TYPE, "{}"),
  send(
    "POST",
    `${WEB}/eviction?dryRun=All`,
    JSON_TYPE,
    '{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"web"}}',
  ),
];
