import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it } from "vitest";
import { HttpUpstream } from "../../../../packages/client/src/http/upstream/http-upstream.ts";
import { withSessionsApi } from "../../../../src/legs/api-server/answer-sessions.ts";
import { createApiServer } from "../../../../src/legs/api-server/api-server.ts";
import { forwardToApiServer } from "../../../../src/legs/api-server/forward-to-api-server.ts";
import { SessionsApi } from "../../../../src/session-api/sessions-api.ts";
import type { GatewayContext } from "../../../../src/sessions/context.ts";
import { startGatewayHarness } from "../../../support/gateway-harness.ts";
import { closeServer, listen } from "../../../support/http/loopback.ts";

// The bound under test.
const MAX_DISCOVERY_BYTES = 8 * 1024 * 1024;

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** An API server that answers so, and the gateway in front of it. */
async function start(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  more: Partial<GatewayContext> = {},
) {
  const requests: IncomingMessage[] = [];
  const apiServer = createServer((incoming, response) => {
    requests.push(incoming);
    answer(incoming, response);
  });
  const apiPort = await listen(apiServer);
  closing.push(() => closeServer(apiServer, new Set()));
  const harness = await startGatewayHarness({ kubeletPort: 1 });
  closing.push(harness.close);
  const upstream = new HttpUpstream({ endpoint: { host: "127.0.0.1", port: apiPort } });
  const api = new SessionsApi({
    listEverywhere: async () => ({ sessions: [], partial: [] }),
    end: async () => "unknown",
    facts: async () => undefined,
    type: async () => "unknown",
    output: async () => "unknown",
  });
  const context = { ...harness.context, ...more };
  const others = forwardToApiServer(context, { upstream, impersonates: false });
  const { server } = createApiServer(context, withSessionsApi(others, api, context), {});
  const port = await listen(server);
  closing.push(async () => {
    api.stop();
    upstream.close();
    server.closeAllConnections();
    await closeServer(server, new Set());
  });
  return { port, requests };
}

async function get(port: number, path: string, headers: Record<string, string> = {}) {
  const sent = request({ port, path, host: "127.0.0.1", headers, agent: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const parts: Buffer[] = [];
  for await (const part of response) parts.push(part as Buffer);
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts).toString() };
}

const APPS = { name: "apps", versions: [{ groupVersion: "apps/v1", version: "v1" }] };
const PLAIN = JSON.stringify({ kind: "APIGroupList", apiVersion: "v1", groups: [APPS] });
const FORM = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED = JSON.stringify({
  kind: "APIGroupDiscoveryList",
  apiVersion: "apidiscovery.k8s.io/v2",
  metadata: {},
  items: [{ metadata: { name: "apps" }, versions: [] }],
});

const answering =
  (body: string, headers: Record<string, string> = {}, status = 200) =>
  (_request: IncomingMessage, response: ServerResponse): void => {
    response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(body);
  };

describe("the discovery of an API server behind the gateway", () => {
  it.each([
    ["with a length", { "Content-Length": String(PLAIN.length) }],
    ["in chunks", { "Transfer-Encoding": "chunked" }],
  ])("gets the sessions' group, %s", async (_, headers) => {
    const { port, requests } = await start(answering(PLAIN, { ...headers, ETag: '"a"', "X-Kept": "1" }));
    const asked = { Accept: "application/json", "Accept-Encoding": "gzip", "If-None-Match": '"a"' };
    const answer = await get(port, "/apis", asked);
    const { groups } = JSON.parse(answer.body) as { groups: { name: string }[] };
    expect(groups.map(({ name }) => name)).toEqual(["apps", "sluice.dev"]);
    expect(answer.headers).toMatchObject({ "content-length": String(answer.body.length), "x-kept": "1" });
    expect(answer.headers.etag).toBeUndefined();
    expect(requests[0]?.headers).not.toHaveProperty("if-none-match");
    expect(requests[0]?.headers).not.toHaveProperty("accept-encoding");
  });

  it("gets it in the aggregated form, and protobuf is not asked for", async () => {
    const { port, requests } = await start(answering(AGGREGATED, { "Content-Type": FORM }));
    const accept = `application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,${FORM},application/json`;
    const answer = await get(port, "/apis?timeout=32s", { Accept: accept });
    expect(JSON.parse(answer.body)).toMatchObject({
      items: [
        { metadata: { name: "apps" } },
        {
          metadata: { name: "sluice.dev" },
          versions: [
            {
              version: "v1alpha1",
              resources: [{ resource: "streamingsessions" }, { resource: "recordings" }],
            },
          ],
        },
      ],
    });
    expect(answer.headers["content-type"]).toBe(FORM);
    expect(requests[0]?.headers.accept).toBe(`${FORM},application/json`);
    expect(requests[0]?.url).toBe("/apis?timeout=32s");
  });

  const ours = JSON.stringify({ kind: "APIGroupList", groups: [{ name: "sluice.dev" }] });
  const zipped = { "Content-Encoding": "gzip" };
  it.each<[string, string | Buffer, Record<string, string>, number, string]>([
    ["that has the group already", ours, {}, 200, "application/json"],
    ["that is an error", '{"kind":"Status"}', {}, 403, "application/json"],
    ["that is no JSON", "{", {}, 200, "application/json"],
    ["that is another object", "[null]", {}, 200, "application/json"],
    ["that is packed all the same", gzipSync(PLAIN), zipped, 200, "application/json"],
    ["in protobuf", "k8s\0", { "Content-Type": "application/vnd.kubernetes.protobuf" }, 200, "*/*"],
  ])("is passed on unchanged: one %s", async (_, body, headers, status, accept) => {
    const { port } = await start(answering(body as string, headers, status));
    const answer = await get(port, "/apis", { Accept: accept });
    expect([answer.status, answer.body]).toEqual([status, Buffer.from(body).toString()]);
  });

  it("is passed on unchanged to a client that takes only protobuf, with its own headers", async () => {
    const { port, requests } = await start(answering(PLAIN));
    const headers = { Accept: "application/vnd.kubernetes.protobuf", "If-None-Match": '"a"' };
    expect((await get(port, "/apis", headers)).body).toBe(PLAIN);
    expect(requests[0]?.headers).toMatchObject({ "if-none-match": '"a"' });
  });

  it("is passed on unchanged past its bound", async () => {
    const groups = Array.from({ length: 3 }, () => ({ name: "x".repeat(MAX_DISCOVERY_BYTES / 2) }));
    const body = JSON.stringify({ kind: "APIGroupList", groups });
    const { port } = await start(answering(body));
    const answer = await get(port, "/apis");
    expect(answer.body === body).toBe(true);
  });

  it("is cut for the client if it is cut for the gateway", async () => {
    const { port } = await start((_, response) => {
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": "1000" });
      response.write(PLAIN.slice(0, 10));
      setImmediate(() => response.destroy());
    });
    await expect(get(port, "/apis")).rejects.toThrow();
  });

  it("gets the document of the sessions' group among its OpenAPI documents", async () => {
    const apps = { "apis/apps/v1": { serverRelativeURL: "/openapi/v3/apis/apps/v1?hash=A" } };
    const { port, requests } = await start(answering(JSON.stringify({ paths: apps })));
    const { paths } = JSON.parse((await get(port, "/openapi/v3")).body);
    expect(paths).toMatchObject(apps);
    const { serverRelativeURL: url } = paths["apis/sluice.dev/v1alpha1"];
    expect(url).toMatch(/^\/openapi\/v3\/apis\/sluice\.dev\/v1alpha1\?hash=[0-9a-f]{32}$/);
    expect(JSON.parse((await get(port, url)).body)).toMatchObject({ openapi: "3.0.0" });
    expect(requests.map((each) => each.url)).toEqual(["/openapi/v3"]);
    const own = JSON.stringify({ paths: { "apis/sluice.dev/v1alpha1": {} } });
    const { port: aggregating } = await start(answering(own));
    expect((await get(aggregating, "/openapi/v3")).body).toBe(own);
  });

  it("is all the API server is asked: the group itself is the gateway's, other groups are not", async () => {
    const { port, requests } = await start(answering("{}"));
    expect((await get(port, "/apis/sluice.dev/v1alpha1")).body).toContain("streamingsessions");
    expect((await get(port, "/apis/sluice.dev/v1alpha1/streamingsessions")).body).toContain("List");
    expect(requests).toHaveLength(0);
    for (const path of ["/apis/sluice.device", "/apis/apps", "/api"])
      expect((await get(port, path)).body).toBe("{}");
    expect(requests).toHaveLength(3);
  });
});

describe("an API server that forwards the group to the gateway, and is behind it, too", () => {
  /** The front proxy's certificate came along, or did not. */
  const believing = (isProxy: boolean): Partial<GatewayContext> => ({
    authenticator: {
      authenticate: async ({ headers }) => {
        const name = headers.find(([header]) => header === "X-Remote-User")?.[1] ?? "";
        return { name: isProxy ? name : "ana", uid: "", groups: [], extra: {} };
      },
    },
  });
  const asAggregator = { "X-Remote-User": "system:kube-aggregator", Accept: FORM };
  const asOpenApiReader = { "X-Remote-User": "system:aggregator" };

  it("reads this group alone, in each form, and no OpenAPI in circles", async () => {
    const { port, requests } = await start(answering(AGGREGATED), believing(true));
    const aggregated = await get(port, "/apis", asAggregator);
    expect(aggregated.headers["content-type"]).toBe(FORM);
    const { items } = JSON.parse(aggregated.body) as { items: { metadata: object }[] };
    expect(items.map(({ metadata }) => metadata)).toEqual([{ name: "sluice.dev", creationTimestamp: null }]);
    const plain = await get(port, "/apis", { ...asAggregator, Accept: "application/json" });
    expect(JSON.parse(plain.body)).toMatchObject({ groups: [{ name: "sluice.dev" }] });
    const resources = await get(port, "/apis/sluice.dev/v1alpha1", asAggregator);
    expect(resources.body).toContain("streamingsessions");
    // A controller of namespaces, of an API server that asks for each version by itself.
    const asController = { ...asAggregator, "X-Remote-User": "system:serviceaccount:kube-system:any" };
    const asked = await get(port, "/apis/sluice.dev/v1alpha1", asController);
    for (const { body } of [aggregated, resources, asked]) {
      expect(body).toContain('"list"');
      expect(body).not.toContain('"delete"');
    }
    expect((await get(port, "/apis/sluice.dev/v1alpha1")).body).toContain('"delete"');
    expect((await get(port, "/apis/sluice.dev", asAggregator)).body).toContain("preferredVersion");
    const documents = JSON.parse((await get(port, "/openapi/v3", asOpenApiReader)).body);
    expect(Object.keys(documents.paths)).toEqual(["apis/sluice.dev/v1alpha1"]);
    const { serverRelativeURL: url } = documents.paths["apis/sluice.dev/v1alpha1"];
    expect((await get(port, url, asOpenApiReader)).body).toContain("StreamingSession");
    for (const path of ["/openapi/v2", "/openapi/v3/api/v1"])
      expect((await get(port, path, asOpenApiReader)).status).toBe(404);
    expect(requests).toHaveLength(0);
    expect((await get(port, "/version", asAggregator)).body).toBe(AGGREGATED);
  });

  it("is believed by its certificate alone: others' headers change nothing", async () => {
    const { port, requests } = await start(answering(AGGREGATED), believing(false));
    expect((await get(port, "/apis", asAggregator)).body).toContain("apps");
    expect((await get(port, "/openapi/v2", asOpenApiReader)).body).toBe(AGGREGATED);
    expect(requests).toHaveLength(2);
  });
});
