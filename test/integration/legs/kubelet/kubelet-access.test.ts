import { afterEach, describe, expect, it } from "vitest";
import { kubeletAttributes } from "../../../../src/legs/kubelet/admit-caller.ts";
import {
  READER_TOKEN,
  RuntimeNode,
  type RuntimeNodeOptions,
  SPDY_UPGRADE,
  webSocketUpgrade,
} from "../../../support/runtime-node.ts";

let node: RuntimeNode;
afterEach(() => node?.stop());
const start = async (options: RuntimeNodeOptions = {}) => {
  node = await RuntimeNode.start(options);
  return node;
};

const EXEC = "/exec/default/web/main?command=id&output=1";
const V5 = webSocketUpgrade("v5.channel.k8s.io");
const NOBODY = { name: "u", uid: "", groups: [], extra: {} };

describe("what is asked about a path", () => {
  it.each([
    ["POST", "/exec/ns/pod/main", "create", ["proxy"]],
    ["GET", "/exec/ns/pod/main", "get", ["proxy"]],
    ["GET", "/containerLogs/ns/pod/main", "get", ["proxy"]],
    ["GET", "/stats/summary", "get", ["stats"]],
    ["GET", "/statsx", "get", ["proxy"]],
    ["GET", "/metrics", "get", ["metrics"]],
    ["GET", "/metrics/cadvisor", "get", ["metrics"]],
    ["GET", "/logs/kern.log", "get", ["log"]],
    ["GET", "/pods", "get", ["pods", "proxy"]],
    ["GET", "/runningpods/", "get", ["pods", "proxy"]],
    ["GET", "/allocatedPods", "get", ["proxy"]],
    ["GET", "/healthz", "get", ["healthz", "proxy"]],
    ["GET", "/configz", "get", ["configz", "proxy"]],
    ["GET", "/flagz", "get", ["configz"]],
    ["GET", "/statusz", "get", ["statusz"]],
    ["PUT", "/exec", "update", ["proxy"]],
    ["PATCH", "/exec", "patch", ["proxy"]],
    ["DELETE", "/exec", "delete", ["proxy"]],
  ])("%s %s", (method, path, verb, subresources) => {
    const asked = kubeletAttributes(NOBODY, "node-1", method, path);
    expect(asked.map(({ subresource }) => subresource)).toEqual(subresources);
    for (const attributes of asked) {
      expect(attributes).toMatchObject({
        verb,
        resource: "nodes",
        name: "node-1",
        namespace: "",
        apiGroup: "",
        path,
      });
    }
  });
});

describe("who may", () => {
  it.each([
    ["nobody", ""],
    ["somebody unknown", "wrong"],
  ])("%s: 401, on every path and before it is looked at", async (_name, token) => {
    await start();
    for (const path of ["/healthz", "/nothing", "/pods", EXEC]) {
      expect(await node.ask(path, { token })).toMatchObject({ status: 401, body: "Unauthorized" });
    }
    expect(await node.ask(EXEC, { token, headers: V5 })).toMatchObject({ status: 401, body: "Unauthorized" });
    expect(node.runtime.calls).toEqual([]);
  });

  it("a permission that is missing is named", async () => {
    await start();
    expect(
      await node.ask("/run/default/web/main?cmd=id", { token: READER_TOKEN, method: "POST" }),
    ).toMatchObject({
      status: 403,
      body: "Forbidden (user=node-reader, verb=create, resource=nodes, subresource(s)=[proxy])\n",
    });
    expect(await node.ask("/stats/summary", { token: READER_TOKEN })).toMatchObject({
      status: 403,
      body: "Forbidden (user=node-reader, verb=get, resource=nodes, subresource(s)=[stats])\n",
    });
    // Whoever may proxy may read what is granted finer, too.
    expect((await node.ask("/healthz", { token: READER_TOKEN })).status).toBe(200);
  });
});

describe("the page in front of an API server", () => {
  it("has been judged there: its Origin and cookies are no matter of the node", async () => {
    await start();
    const page = { ...SPDY_UPGRADE, Origin: "https://evil.example.com", Cookie: "a=b" };
    expect((await node.ask(EXEC, { headers: page })).status).toBe(101);
  });
});

describe("the synthetic create check", () => {
  it.each([
    ["exec over WebSocket", EXEC, V5],
    ["exec over a GET with SPDY", EXEC, SPDY_UPGRADE],
    ["exec over older WebSocket", EXEC, webSocketUpgrade("v4.channel.k8s.io")],
    ["attach", "/attach/default/web/main?output=1", V5],
    ["port-forward", "/portForward/default/web", webSocketUpgrade("SPDY/3.1+portforward.k8s.io")],
    ["no upgrade at all", EXEC, {}],
  ])("get alone opens nothing: %s", async (_name, path, headers) => {
    await start();
    expect(await node.ask(path, { token: READER_TOKEN, headers })).toMatchObject({
      status: 403,
      body: "Forbidden (user=node-reader, verb=create, resource=nodes, subresource(s)=[proxy])\n",
    });
    expect(node.runtime.calls).toEqual([]);
  });

  it("is what the listener's switch turns off: then it is as with a kubelet", async () => {
    await start({ listener: { requireCreateForUpgrades: false } });
    const answer = await node.ask(EXEC, { token: READER_TOKEN, headers: SPDY_UPGRADE });
    expect(answer.status).toBe(101);
  });

  it("leaves reading alone", async () => {
    await start();
    expect((await node.ask("/pods", { token: READER_TOKEN })).status).toBe(200);
  });
});
