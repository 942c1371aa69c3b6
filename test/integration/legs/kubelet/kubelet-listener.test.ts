import { status } from "@grpc/grpc-js";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../../support/eventually.ts";
import {
  ADMIN_TOKEN,
  container,
  MAIN_CONTAINER,
  RuntimeNode,
  type RuntimeNodeOptions,
  SPDY_UPGRADE,
  sandbox,
  WEB_SANDBOX,
  webSocketUpgrade,
} from "../../../support/runtime-node.ts";
import { endExec, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { GrpcFailure } from "../../../support/scripted-runtime.ts";

let node: RuntimeNode;
afterEach(() => node?.stop());
const start = async (options: RuntimeNodeOptions = {}) => {
  node = await RuntimeNode.start(options);
  return node;
};

const EXEC = "/exec/default/web/main?command=id&output=1";
const V5 = webSocketUpgrade("v5.channel.k8s.io");
const TUNNEL = webSocketUpgrade("SPDY/3.1+portforward.k8s.io");

describe("sessions", () => {
  it("exec over WebSocket v5 is SPDY v4 to the runtime, and ends with its status", async () => {
    await start({
      streaming: {
        onStream: (name, stream, session) => {
          if (name !== "stdout") return;
          stream.write(Buffer.from("uid=0\n"));
          endExec(session, SUCCESS);
        },
      },
    });
    const socket = new WebSocket(`ws://${node.authority}${EXEC}`, "v5.channel.k8s.io", {
      headers: { Authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    const channels = new Map<number, string>();
    socket.on("message", (data: Buffer) => {
      channels.set(data[0] ?? -1, (channels.get(data[0] ?? -1) ?? "") + data.subarray(1).toString());
    });
    const closeCode = await new Promise((resolve) => socket.once("close", resolve));
    expect(closeCode).toBe(1000);
    expect(channels.get(1)).toBe("uid=0\n");
    expect(channels.get(3)).toContain('"Success"');
    expect(node.runtime.callsOf("Exec")).toEqual([
      { containerId: "c1", cmd: ["id"], stdin: false, stdout: true, stderr: false, tty: false },
    ]);
    const [sent] = node.streaming.requests;
    expect(sent).toMatchObject({ method: "POST", url: "/exec/secret-1" });
    expect(sent?.headers["x-stream-protocol-version"]).toBe(
      "v4.channel.k8s.io, v3.channel.k8s.io, v2.channel.k8s.io",
    );
    expect(sent?.headers.authorization).toBeUndefined();
  });

  it.each([
    [
      "exec with a uid",
      "/exec/default/web/web-uid/main?command=sh&input=1&output=1&error=1",
      "Exec",
      { stdin: true, stdout: true, stderr: true, tty: false, cmd: ["sh"] },
    ],
    [
      "a terminal drops stderr",
      "/exec/default/web/main?command=sh&output=1&error=1&tty=1",
      "Exec",
      { stdout: true, stderr: false, tty: true },
    ],
    [
      "only 1 is true",
      "/exec/default/web/main?output=1&input=true&error=yes",
      "Exec",
      { stdin: false, stdout: true, stderr: false },
    ],
    [
      "attach",
      "/attach/default/web/main?input=1&output=1",
      "Attach",
      { stdin: true, stdout: true, containerId: "c1" },
    ],
    ["attach with a uid", "/attach/default/web/web-uid/main?output=1", "Attach", { containerId: "c1" }],
    ["port-forward", "/portForward/default/web", "PortForward", { podSandboxId: "s1", port: [] }],
    ["port-forward with a uid", "/portForward/default/web/web-uid", "PortForward", { podSandboxId: "s1" }],
  ] as const)("over SPDY pass through: %s", async (_name, path, method, asked) => {
    await start();
    const answer = await node.ask(path, { method: "POST", headers: SPDY_UPGRADE });
    expect(answer.status).toBe(101);
    expect(node.runtime.callsOf(method)).toEqual([expect.objectContaining(asked)]);
    expect(node.streaming.requests[0]?.url).toMatch(/secret-1$/);
  });

  it("the tunnel is unwrapped, without ports", async () => {
    await start({ streaming: { protocol: "portforward.k8s.io" } });
    const answer = await node.ask("/portForward/default/web", { headers: TUNNEL });
    expect(answer).toMatchObject({
      status: 101,
      headers: { "sec-websocket-protocol": "SPDY/3.1+portforward.k8s.io" },
    });
    expect(node.runtime.callsOf("PortForward")).toEqual([{ podSandboxId: "s1", port: [] }]);
  });

  it("a legacy WebSocket's ports go to the runtime beforehand", async () => {
    await start({ streaming: { refuse: () => "HTTP/1.1 403 Forbidden\r\n\r\n" } });
    const headers = webSocketUpgrade("v4.channel.k8s.io");
    const answer = await node.ask("/portForward/default/web?port=80,90&port=7", { headers });
    expect(answer.status).toBe(403);
    expect(node.runtime.callsOf("PortForward")).toEqual([{ podSandboxId: "s1", port: [80, 90, 7] }]);
  });

  it("with its gate off, v5 reaches the runtime as it is, which refuses it", async () => {
    await start({
      more: { featureGates: { ExtendWebSocketsToKubelet: false } },
      streaming: { refuse: () => "HTTP/1.1 403 Forbidden\r\n\r\n" },
    });
    expect((await node.ask(EXEC, { headers: V5 })).status).toBe(403);
    expect(node.streaming.requests[0]?.headers["sec-websocket-protocol"]).toBe("v5.channel.k8s.io");
    const metrics = await node.metrics();
    expect(metrics.get('kubelet_websocket_streaming_requests_total{subresource="exec"}')).toBe(0);
  });
});

describe("refusals before the runtime is asked for a URL", () => {
  it.each([
    [
      "no stream",
      "/exec/default/web/main?command=id",
      400,
      "you must specify at least 1 of stdin, stdout, stderr",
    ],
    [
      "stderr alone beside a terminal",
      "/exec/default/web/main?error=1&tty=1",
      400,
      "you must specify at least 1 of stdin, stdout, stderr",
    ],
    [
      "another pod's uid, exec",
      "/exec/default/web/other-uid/main?output=1",
      500,
      'container not found ("main")',
    ],
    ["another pod's uid, port-forward", "/portForward/default/web/other-uid", 404, "pod not found"],
    ["an unknown container", "/exec/default/web/other?output=1", 500, 'container not found ("other")'],
    ["no container", "/exec/default/web?output=1", 404, "404 page not found\n"],
    ["too many segments", "/exec/default/web/uid/main/more?output=1", 404, "404 page not found\n"],
    [
      "an encoded slash",
      "/exec/default/web%2Fx/main?output=1",
      400,
      "the request path is ambiguous: it has an escaped slash",
    ],
    [
      "a broken encoding",
      "/exec/default/%zz/main?output=1",
      400,
      "the request path is ambiguous: it has a percent sign that escapes nothing",
    ],
    ["an unknown path", "/bindMount", 404, "404 page not found\n"],
  ])("%s", async (_name, path, code, text) => {
    await start();
    const answer = await node.ask(path, { method: "POST", headers: SPDY_UPGRADE });
    expect(answer).toMatchObject({ status: code, body: text });
    expect(answer.headers["content-type"]).toBe("text/plain; charset=utf-8");
    expect(node.runtime.callsOf("Exec")).toEqual([]);
  });

  it.each([
    ["absent", "", 'query parameter "port" is required'],
    ["empty", "?port=", 'query parameter "port" cannot be empty'],
    [
      "no number",
      "?port=http",
      'unable to parse "http" as a port: strconv.ParseUint: parsing "http": invalid syntax',
    ],
    [
      "too large",
      "?port=65536",
      'unable to parse "65536" as a port: strconv.ParseUint: parsing "65536": value out of range',
    ],
    ["zero", "?port=80,0", 'port "0" must be > 0'],
  ])("a legacy port-forward's port: %s", async (_name, query, text) => {
    await start();
    const headers = webSocketUpgrade("v4.channel.k8s.io");
    expect(await node.ask(`/portForward/default/web${query}`, { headers })).toMatchObject({
      status: 400,
      body: text,
    });
  });

  it("a pod that is not there", async () => {
    await start({ script: { ListPodSandbox: () => ({ items: [] }) } });
    expect(await node.ask(EXEC, { headers: V5 })).toMatchObject({ status: 404, body: "pod does not exist" });
    expect(node.runtime.callsOf("ListPodSandbox")[0]).toMatchObject({
      filter: {
        labelSelector: { "io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "default" },
      },
    });
  });

  it("a pod without containers", async () => {
    await start({ script: { ListContainers: () => ({}) } });
    expect(await node.ask(EXEC, { headers: V5 })).toMatchObject({
      status: 500,
      body: 'container not found ("main")',
    });
  });

  it.each([0, 2, 3])("a container in state %i", async (state) => {
    await start({ script: { ListContainers: () => ({ containers: [container("c1", { state })] }) } });
    expect(await node.ask(EXEC, { headers: V5 })).toMatchObject({
      status: 500,
      body: 'container not found ("main")',
    });
  });

  it("no upgrade: the kubelet says 500 where the API server says 400", async () => {
    await start();
    expect(await node.ask(EXEC)).toMatchObject({ status: 500, body: "Upgrade request required" });
    expect(node.runtime.callsOf("Exec")).toEqual([]);
  });

  it.each(["PUT", "DELETE"])("another method: %s", async (method) => {
    await start();
    expect(await node.ask(EXEC, { method })).toMatchObject({ status: 405, body: "405: Method Not Allowed" });
  });

  it("an upgrade to something else", async () => {
    await start();
    const headers = { Connection: "Upgrade", Upgrade: "h2c" };
    expect((await node.ask(EXEC, { headers })).status).toBe(400);
  });

  it("a WebSocket request that can not be answered", async () => {
    await start();
    const answer = await node.ask(EXEC, { headers: { ...V5, "Sec-WebSocket-Version": "8" } });
    expect(answer.status).toBe(400);
    expect(node.runtime.callsOf("Exec")).toEqual([]);
  });
});

describe("several of a name", () => {
  const execIn = async (items: object[], containers: object[]) => {
    await start({
      script: {
        ListPodSandbox: () => ({ items }),
        ListContainers: ({ filter }: { filter: { podSandboxId: string } }) => ({
          containers: containers.filter(
            (each) => (each as typeof MAIN_CONTAINER).podSandboxId === filter.podSandboxId,
          ),
        }),
      },
    });
    await node.ask(EXEC, { method: "POST", headers: SPDY_UPGRADE });
    return node.runtime.callsOf("Exec").map(({ containerId }) => containerId);
  };

  it("a dead sandbox beside the one that is ready", async () => {
    const dead = sandbox("s0", { state: 1, createdAt: WEB_SANDBOX.createdAt + 1e9 });
    expect(
      await execIn([dead, WEB_SANDBOX], [container("c0", { podSandboxId: "s0" }), MAIN_CONTAINER]),
    ).toEqual(["c1"]);
  });

  it("two that are ready: the newer one", async () => {
    const newer = sandbox("s2", { createdAt: WEB_SANDBOX.createdAt + 1e9 });
    const inNewer = container("c2", { podSandboxId: "s2" });
    expect(await execIn([WEB_SANDBOX, newer], [MAIN_CONTAINER, inNewer])).toEqual(["c2"]);
  });

  it("an attempt that has exited beside the one that runs", async () => {
    const exited = container("c0", { state: 2, metadata: { name: "main", attempt: 3 } });
    expect(await execIn([WEB_SANDBOX], [exited, MAIN_CONTAINER])).toEqual(["c1"]);
  });

  it("a sandbox that is half dead still forwards ports where the runtime lets it", async () => {
    await start({
      script: {
        ListPodSandbox: () => ({ items: [sandbox("s0", { state: 1 })] }),
        PortForward: () => {
          throw new GrpcFailure(status.UNKNOWN, 'sandbox container "s0" is not running');
        },
      },
    });
    expect(await node.ask("/portForward/default/web", { headers: TUNNEL })).toMatchObject({
      status: 500,
      body: 'rpc error: code = Unknown desc = sandbox container "s0" is not running',
    });
  });
});

describe("a runtime in trouble", () => {
  it.each([
    [status.NOT_FOUND, 404, "NotFound"],
    [status.RESOURCE_EXHAUSTED, 429, "ResourceExhausted"],
    [status.UNKNOWN, 500, "Unknown"],
    [status.INVALID_ARGUMENT, 500, "InvalidArgument"],
  ])("refuses the stream with gRPC status %i: %i", async (grpcStatus, code, name) => {
    await start({
      script: {
        Exec: () => {
          throw new GrpcFailure(grpcStatus, "no stream for you");
        },
      },
    });
    const answer = await node.ask(EXEC, { headers: V5 });
    expect(answer).toMatchObject({
      status: code,
      body: `rpc error: code = ${name} desc = no stream for you`,
    });
    expect(answer.headers["retry-after"]).toBe(code === 429 ? "60" : undefined);
  });

  it("is gone, and comes back", async () => {
    await start();
    node.runtime.stop();
    const answer = await node.ask(EXEC, { headers: V5 });
    expect(answer.status).toBe(500);
    expect(answer.body).toMatch(
      /^rpc error: code = Unavailable desc = the container runtime at unix:\/\/\S+ cannot be reached/,
    );
    expect((await node.ask("/healthz")).status).toBe(500);
    await node.runtime.start();
    await eventually("it is well again", async () => (await node.ask("/healthz")).status === 200);
  });

  it("refuses the token: the client hears it, and no second URL is asked for", async () => {
    await start({
      streaming: { refuse: () => "HTTP/1.1 404 Not Found\r\nContent-Length: 18\r\n\r\n404 page not found" },
    });
    for (const headers of [V5, SPDY_UPGRADE]) {
      expect(await node.ask(EXEC, { headers })).toMatchObject({ status: 404, body: "404 page not found" });
    }
    expect(node.runtime.callsOf("Exec")).toHaveLength(2);
    expect(node.streaming.requests.map(({ url }) => url)).toEqual(["/exec/secret-1", "/exec/secret-2"]);
  });

  it("redirects: never followed", async () => {
    await start({
      streaming: {
        refuse: () => "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
      },
    });
    const answer = await node.ask(EXEC, { headers: V5 });
    expect(answer).toMatchObject({ status: 500, body: "invalid upgrade response: status code 302" });
  });

  it.each([
    [
      "a streaming server that is gone",
      "http://127.0.0.1:1/exec/secret-0",
      /^error dialing backend: dial tcp 127\.0\.0\.1:1: connect: connection refused$/,
    ],
    ["no URL", "garbage", /^the container runtime gave a streaming URL that cannot be used$/],
    [
      "another scheme",
      "file:///etc/passwd",
      /^the container runtime gave a streaming URL that cannot be used$/,
    ],
    ["an empty URL", "", /without a streaming URL$/],
  ])("gives %s", async (_name, url, text) => {
    await start({ script: { Exec: () => ({ url }) } });
    const answer = await node.ask(EXEC, { headers: V5 });
    expect(answer.status).toBe(500);
    expect(answer.body).toMatch(text);
    expect(answer.body).not.toContain("secret");
  });

  it("gives a URL without a scheme: that is http", async () => {
    await start();
    const port = new URL(String((await mintedUrl()).url)).port;
    node.runtime.script = {
      ...node.runtime.script,
      Exec: () => ({ url: `//127.0.0.1:${port}/cri/exec/secret-9` }),
    };
    const answer = await node.ask(EXEC, { method: "POST", headers: SPDY_UPGRADE });
    expect(answer.status).toBe(101);
    expect(node.streaming.requests.at(-1)?.url).toBe("/cri/exec/secret-9");
  });

  it("never shows its URLs: in no answer, log line or metric", async () => {
    await start({ streaming: { isSilent: true }, more: { timeouts: { upgradeResponse: "100ms" } } });
    const answer = await node.ask(EXEC, { headers: V5 });
    expect(answer).toMatchObject({ status: 500, body: "net/http: timeout awaiting response headers" });
    const metrics = await (await fetch(new URL("/metrics", node.adminUrl))).text();
    expect(node.logLines.join("") + metrics + answer.body).not.toContain("secret");
  });

  async function mintedUrl(): Promise<{ url: string }> {
    const mint = node.runtime.script.Exec as unknown as () => { url: string };
    return mint();
  }
});

describe("what is counted", () => {
  it("WebSocket requests by the kubelet's names, when the URL was obtained and when it was answered", async () => {
    await start({ streaming: { protocol: "portforward.k8s.io" } });
    await node.ask("/portForward/default/web", { headers: TUNNEL });
    await node.ask("/portForward/default/web", { method: "POST", headers: SPDY_UPGRADE });
    node.runtime.script = {
      ...node.runtime.script,
      Exec: () => {
        throw new GrpcFailure(status.UNKNOWN, "no");
      },
    };
    await node.ask(EXEC, { headers: V5 });
    const metrics = await node.metrics();
    const value = (name: string) => metrics.get(name);
    expect(value('kubelet_websocket_streaming_requests_total{subresource="portforward"}')).toBe(1);
    expect(value('kubelet_websocket_streaming_requests_total{subresource="exec"}')).toBe(0);
    expect(
      value('kubelet_streaming_websocket_requests_total{subresource="portforward",result="success"}'),
    ).toBe(1);
    expect(value('kubelet_streaming_websocket_requests_total{subresource="exec",result="failure"}')).toBe(1);
    expect(
      value('sluice_kubelet_streaming_requests_total{subresource="portforward",plan="tunnel",code="101"}'),
    ).toBe(1);
    expect(
      value(
        'sluice_kubelet_streaming_requests_total{subresource="portforward",plan="pass-through",code="101"}',
      ),
    ).toBe(1);
    expect([...metrics.keys()].filter((name) => name.startsWith("sluice_streaming_requests_total"))).toEqual(
      [],
    );
  });
});
