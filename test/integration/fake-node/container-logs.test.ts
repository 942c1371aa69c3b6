import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { FakeNode, FakeNodeOptions } from "../../../packages/lab/src/fake-node/fake-node.ts";
import { answerFromCluster } from "../../../src/legs/api-server/answer-from-cluster.ts";
import { createApiServer } from "../../../src/legs/api-server/api-server.ts";
import { eventually } from "../../support/eventually.ts";
import { startGatewayHarness } from "../../support/gateway-harness.ts";
import { POD, startNode } from "./upgrade.ts";

const closes: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closes.splice(0).reverse()) await close();
});

async function start(script: string, options: Partial<FakeNodeOptions> = {}) {
  const containers = [{ name: "main", command: ["/bin/sh", "-c", script] }];
  const node = await startNode({ pods: [{ ...POD, containers }], ...options });
  closes.push(() => node.close());
  return node;
}

const ask = (node: FakeNode, path: string, init: RequestInit = {}) =>
  fetch(`http://${node.address}:${node.port}/containerLogs/default/${path}`, init);
const logOf = async (node: FakeNode, query = "") => (await ask(node, `web/main${query}`)).text();

describe("/containerLogs of a fake node", () => {
  it.each([
    ["", "one\ntwo\nthree\n"],
    ["?tailLines=2", "two\nthree\n"],
    ["?tailLines=0", ""],
    ["?limitBytes=6", "one\ntw"],
    ["?stream=Stderr", "two\n"],
    ["?sinceTime=2999-01-01T00:00:00Z", ""],
  ])("what the main process wrote: %s", async (query, text) => {
    // Two pipes have no order of their own: each line waits for the one before.
    const node = await start("echo one; sleep 0.05; echo two >&2; sleep 0.05; printf three");
    expect(await logOf(node, "?follow=true")).toBe("one\ntwo\nthree\n");
    expect(await logOf(node, query)).toBe(text);
  });

  it("has a time before each line when asked", async () => {
    const node = await start("printf 'one\\ntwo\\n'");
    const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (one|two)$/;
    const lines = (await logOf(node, "?follow=true&timestamps=true")).trimEnd().split("\n");
    expect(lines).toEqual([expect.stringMatching(time), expect.stringMatching(time)]);
  });

  it.each([
    ["web/main?previous=true", 400, 'previous terminated container "main" in pod "web" not found'],
    ["web/main?tailLines=x", 400, '{"message": "Unable to decode query."}'],
    ["web/main?tailLines=-1", 422, '{"message": "Invalid request."}'],
    ["web/other", 404, 'container "other" not found in pod "web"\n'],
    ["none/main", 404, 'pod "none" not found\n'],
    ["web", 404, "404 page not found\n"],
  ])("refuses %s with %i", async (path, status, text) => {
    const answer = await ask(await start("exec cat"), path);
    expect([answer.status, await answer.text()]).toEqual([status, text]);
  });

  it("takes GET alone", async () => {
    const answer = await ask(await start("exec cat"), "web/main", { method: "POST" });
    expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET"]);
  });

  it("keeps maxLogBytes, the newest", async () => {
    const script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done";
    const maxLogBytes = 2_000;
    const node = await start(script, { limits: { maxLogBytes } });
    await eventually("the last line", async () => (await logOf(node)).endsWith("line 1999\n"));
    const lines = (await logOf(node)).trimEnd().split("\n");
    // 64 bytes for each line beside its own ten.
    expect(lines.length).toBe(Math.floor(maxLogBytes / (64 + 10)));
  });

  it("of a line without end keeps no more than that", async () => {
    const node = await start("head -c 1000000 /dev/zero | tr '\\0' a", { limits: { maxLogBytes: 100_000 } });
    await logOf(node, "?follow=true");
    const { length } = await logOf(node);
    expect(length).toBeGreaterThan(80_000);
    expect(length).toBeLessThan(100_000);
  });

  it("is followed through the gateway while the process runs", async () => {
    const node = await start("echo ready; sleep 0.1; echo later; exec cat");
    const harness = await startGatewayHarness({ kubeletPort: node.port });
    closes.push(() => harness.close());
    const { context } = harness;
    const { server } = createApiServer(context, answerFromCluster(context, "v1.36.0"), {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closes.push(() => {
      server.closeAllConnections();
      server.close();
    });
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/api/v1/namespaces/default/pods/web/log`;
    const { status, body } = await fetch(`${url}?follow=true`);
    const reader = body?.getReader();
    expect(status).toBe(200);
    let text = "";
    while (!text.endsWith("later\n")) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(text).toBe("ready\nlater\n");
    expect(await (await fetch(`${url}?tailLines=1`)).text()).toBe("later\n");
    await reader?.cancel();
  });
});
