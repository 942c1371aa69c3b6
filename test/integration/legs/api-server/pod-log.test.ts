import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { type Authorizer, alwaysAllow } from "../../../../src/access/authz/authorizer.ts";
import type { Timeouts } from "../../../../src/config/sections/timeouts.ts";
import { answerFromCluster } from "../../../../src/legs/api-server/answer-from-cluster.ts";
import { createApiServer } from "../../../../src/legs/api-server/api-server.ts";
import { matchPodLogPath } from "../../../../src/legs/api-server/pod-log.ts";
import { eventually } from "../../../support/eventually.ts";
import { type HarnessOptions, startGatewayHarness } from "../../../support/gateway-harness.ts";

const closes: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0).reverse()) await close();
});

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closes.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A gateway without an API server behind it, whose one node answers as `answer` says. */
async function start(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  timeouts: Partial<Timeouts> = {},
  options: Pick<HarnessOptions, "authorizer" | "sessions"> = {},
) {
  const asked: IncomingMessage[] = [];
  const kubeletPort = await listen(
    createServer((request, response) => {
      asked.push(request);
      answer(request, response);
    }),
  );
  const harness = await startGatewayHarness({ kubeletPort, timeouts, ...options });
  closes.push(() => harness.close());
  const { context } = harness;
  const port = await listen(createApiServer(context, answerFromCluster(context, "v1.36.0"), {}).server);
  const url = `http://127.0.0.1:${port}/api/v1/namespaces/default/pods/web/log`;
  return { asked, url, context };
}

describe("the log of a pod", () => {
  it("comes from its node; only options go there", async () => {
    const { asked, url } = await start((_request, response) => response.end("one\ntwo\n"));
    const query =
      "?container=main&follow=false&timestamps=1&tailLines=5&sinceTime=2026-01-02T03:04:05Z&pretty=true";
    const answer = await fetch(`${url}${query}`, {
      headers: { Authorization: "Bearer secret", Cookie: "a=b" },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain");
    expect(await answer.text()).toBe("one\ntwo\n");
    expect(asked[0]?.url).toBe(
      "/containerLogs/default/web/main?timestamps=true&tailLines=5&sinceTime=2026-01-02T03%3A04%3A05Z",
    );
    expect(Object.keys(asked[0]?.headers ?? {}).sort()).toEqual(["connection", "host"]);
  });

  it("streams: what is written arrives before the end", async () => {
    let node: ServerResponse | undefined;
    const { url } = await start((_request, response) => {
      node = response;
      response.write("first\n");
    });
    const { body } = await fetch(`${url}?follow=true`);
    const reader = body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first\n");
    node?.write("second\n");
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("second\n");
    await reader?.cancel();
    await eventually("the node is let go", () => node?.destroyed);
  });

  it("ends once its reader may no longer read it", async () => {
    let node: ServerResponse | undefined;
    let mayRead = true;
    const authorizer: Authorizer = {
      ...alwaysAllow,
      authorize: async () => ({ decision: mayRead ? "allow" : "deny", reason: "" }),
    };
    const { url } = await start(
      (_request, response) => {
        node = response;
        response.write("first\n");
      },
      {},
      { authorizer, sessions: { reauthorizeIntervalMs: 50, credentialExpiry: "end" } },
    );
    const { body } = await fetch(`${url}?follow=true`);
    const reader = body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe("first\n");
    const rest = expect(reader?.read()).rejects.toThrow();
    mayRead = false;
    await rest;
    await eventually("the node is let go", () => node?.destroyed);
  });

  it("that breaks off is no whole answer", async () => {
    const { url } = await start((_request, response) => {
      response.write("half");
      setImmediate(() => response.destroy());
    });
    await expect(fetch(url).then((answer) => answer.text())).rejects.toThrow();
  });

  it.each([
    [400, "waiting to start", 400, "waiting to start"],
    [404, 'container "x" not found', 404, 'container "x" not found'],
    [500, "no runtime", 500, "Internal error occurred: no runtime"],
    [403, "Forbidden (user=x)", 403, "Forbidden (user=x)"],
    [302, "", 500, "the node answered with status code 302"],
  ])("refused by the node with %i is a Status", async (code, text, status, message) => {
    const { url } = await start((_request, response) =>
      response.writeHead(code, { Location: "/x" }).end(text),
    );
    const answer = await fetch(url, { redirect: "manual" });
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ kind: "Status", message });
  });

  it.each([
    ["a number that is none", "?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'],
    ["a container that is not there", "?container=other", 400, "container other is not valid for pod web"],
  ])("is refused before the node is asked: %s", async (_name, query, status, message) => {
    const { url, asked } = await start((_request, response) => response.end());
    const answer = await fetch(`${url}${query}`);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ message });
    expect(asked).toEqual([]);
  });

  it.each([
    ["nothing", "the node answered with status code 503"],
    ["a part", "no such cont"],
  ])("that is refused by a node which sends a head, %s, and falls silent, is refused in time", async (sent, message) => {
    let node: ServerResponse | undefined;
    const answer = (_request: IncomingMessage, response: ServerResponse): void => {
      node = response;
      response.writeHead(503, { "Content-Length": "100" }).flushHeaders();
      if (sent === "a part") response.write("no such cont");
    };
    const { url } = await start(answer, { upgradeResponseMs: 300 });
    const refused = await fetch(url);
    expect(refused.status).toBe(503);
    expect(await refused.json()).toMatchObject({ kind: "Status", message });
    await eventually("the node is let go", () => node?.destroyed);
  });

  it("of a pod that is not there, and by another method", async () => {
    const { url } = await start((_request, response) => response.end());
    expect((await fetch(url.replace("/web/", "/none/"))).status).toBe(404);
    expect((await fetch(url, { method: "DELETE" })).status).toBe(405);
  });
});

describe("paths of logs", () => {
  it.each([
    ["/api/v1/namespaces/ns/pods/p/log", { namespace: "ns", pod: "p" }],
    ["/api/v1/namespaces/ns/pods/p/log/", { namespace: "ns", pod: "p" }],
    ["/api/v1/namespaces/ns/pods/p%2F/log", undefined],
    ["/api/v1/namespaces/../pods/p/log", undefined],
    ["/api/v1/namespaces/ns/pods/%zz/log", undefined],
    ["/api/v1/namespaces/ns/pods/p/logs", undefined],
  ])("%s", (path, names) => {
    expect(matchPodLogPath(path)).toEqual(names);
  });
});
