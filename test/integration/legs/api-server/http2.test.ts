import { createHash } from "node:crypto";
import { once } from "node:events";
import { type ClientHttp2Session, constants } from "node:http2";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../../support/eventually.ts";
import { ask, connectHttp2, type Http2WebSocket, openWebSocket } from "../../../support/http2-client.ts";
import { startTestGateway, type TestGateway } from "../../../support/test-gateway.ts";
import { TUNNEL_PROTOCOL, TunnelClient } from "../../../support/tunnel-client.ts";
import { TWO_NODES } from "../../../support/two-nodes.ts";
import { V5Client } from "../../../support/v5-client.ts";

const MAX_STREAMS = 40;

let gateway: TestGateway;
let session: ClientHttp2Session;
let authorization: { authorization: string };

beforeAll(async () => {
  gateway = await startTestGateway({
    ...TWO_NODES,
    configuration: { limits: { maxHttp2Streams: MAX_STREAMS } },
  });
  authorization = { authorization: `Bearer ${gateway.token}` };
  session = await connectHttp2(gateway.apiServerUrl);
});
afterAll(async () => {
  session?.destroy();
  await gateway?.stop();
});

const another = async (): Promise<ClientHttp2Session> => {
  const opened = await connectHttp2(gateway.apiServerUrl);
  onTestFinished(() => opened.destroy());
  return opened;
};

const podPath = (pod: string, subresource: string, query = ""): string =>
  `/api/v1/namespaces/default/pods/${pod}/${subresource}${query}`;

const execPath = (pod: string, script: string, flags = "stdin=true&stdout=true&stderr=true"): string =>
  podPath(
    pod,
    "exec",
    `?${flags}&${new URLSearchParams([
      ["command", "sh"],
      ["command", "-c"],
      ["command", script],
    ])}`,
  );

async function opened(
  path: string,
  protocol: string,
  client = session,
  headers: Record<string, string> = authorization,
): Promise<Http2WebSocket> {
  const answer = await openWebSocket(client, path, { ...headers, "sec-websocket-protocol": protocol });
  if ("status" in answer) throw new Error(`refused with ${answer.status}: ${answer.body}`);
  return answer;
}

async function v5(pod: string, script: string, client = session): Promise<V5Client> {
  const { head, socket } = await opened(execPath(pod, script), "v5.channel.k8s.io", client);
  expect(head["sec-websocket-protocol"]).toBe("v5.channel.k8s.io");
  expect(head).not.toHaveProperty("sec-websocket-accept");
  return new V5Client(socket);
}

const sessions = async (): Promise<number> =>
  ((await (await fetch(new URL("/debug/sessions", gateway.adminUrl))).json()) as unknown[]).length;

describe("plain requests over HTTP/2", () => {
  it("are answered, many at a time on one connection", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => ask(session, "/api/v1/namespaces/default/pods/web", authorization)),
    );
    for (const { status, headers, body } of answers) {
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject({ kind: "Pod", metadata: { name: "web" } });
      expect(headers["content-length"]).toBe(String(Buffer.byteLength(body)));
      expect(headers.date).toBeDefined();
    }
  });

  it("HEAD has no body, and a HEAD of what is not there neither", async () => {
    const head = { ...authorization, ":method": "HEAD" };
    expect(await ask(session, "/version", head)).toMatchObject({ status: 200, body: "" });
    expect(await ask(session, "/nowhere", head)).toMatchObject({ status: 404, body: "" });
  });

  it("bodies arrive, and are bounded", async () => {
    const review = {
      kind: "SelfSubjectAccessReview",
      apiVersion: "authorization.k8s.io/v1",
      spec: { resourceAttributes: { verb: "get", resource: "pods" } },
    };
    const path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    const posted = { ...authorization, ":method": "POST", "content-type": "application/json" };
    const { status, body } = await ask(session, path, posted, JSON.stringify(review));
    expect(status).toBe(201);
    expect(JSON.parse(body)).toMatchObject({ status: { allowed: true } });
    const huge = await ask(session, path, posted, Buffer.alloc(1024 * 1024, " "));
    expect(huge.status).toBe(413);
    expect(JSON.parse(huge.body)).toMatchObject({ kind: "Status", reason: "RequestEntityTooLarge" });
  });

  it("a body that waits for 100-continue is asked for", async () => {
    const stream = session.request({
      ...authorization,
      ":method": "POST",
      ":path": "/apis/authorization.k8s.io/v1/selfsubjectreviews".replace("authorization", "authentication"),
      "content-type": "application/json",
      expect: "100-continue",
    });
    await once(stream, "continue");
    stream.end(JSON.stringify({ kind: "SelfSubjectReview", apiVersion: "authentication.k8s.io/v1" }));
    const [head] = await once(stream, "response");
    expect(head[":status"]).toBe(201);
    stream.resume();
  });

  it("a watch sends each event at once, and ends when its client resets the stream", async () => {
    const stream = session.request({ ...authorization, ":path": "/api/v1/pods?watch=true" });
    stream.setEncoding("utf8");
    const [head] = await once(stream, "response");
    expect(head[":status"]).toBe(200);
    let text = "";
    stream.on("data", (part: string) => {
      text += part;
    });
    await eventually("both pods", () => text.split("\n").length > 2);
    stream.close(constants.NGHTTP2_CANCEL);
    await once(stream, "close");
    expect((await ask(session, "/version")).status).toBe(200);
  });

  it("no one who is not known goes on asking on the same connection", async () => {
    const client = await another();
    const { status, body, headers } = await ask(client, "/api/v1/pods", { authorization: "Bearer wrong" });
    expect(status).toBe(401);
    expect(headers["www-authenticate"]).toBeUndefined();
    expect(JSON.parse(body)).toMatchObject({ kind: "Status", code: 401 });
    await eventually("GOAWAY", () => client.closed || client.destroyed);
  });

  it("targets that are no paths are refused", async () => {
    expect((await ask(session, "//evil/api", authorization)).status).toBe(400);
    // nghttp2's own answer is a reset.
    for (const path of ["*", "http://x/api"]) {
      expect(await ask(session, path, authorization)).toMatchObject({
        status: 0,
        rstCode: constants.NGHTTP2_PROTOCOL_ERROR,
      });
    }
  });
});

describe("exec, attach and port-forward on HTTP/2 streams", () => {
  it.each(["web", "web-ws"])("exec v5 in %s: input, both outputs, half-close, exit code", async (pod) => {
    const client = await v5(pod, "cat; echo mistake >&2; exit 7");
    client.send(0, "hello\n");
    client.closeStdin();
    const { stdout, stderr, status, closeCode } = await client.done;
    expect(stdout.toString()).toBe("hello\n");
    expect(stderr.toString()).toBe("mistake\n");
    expect(JSON.parse(status)).toMatchObject({
      status: "Failure",
      details: { causes: [{ reason: "ExitCode", message: "7" }] },
    });
    expect(closeCode).toBe(1000);
  });

  it.each([
    "web",
    "web-ws",
  ])("16 MiB from %s arrive whole while others on the connection stand still", async (pod) => {
    const stalled = await v5(pod, "cat /dev/zero");
    stalled.socket.pause();
    const client = await v5(pod, "head -c 16777216 /dev/zero | tr '\\0' x");
    const { stdout, status } = await client.done;
    expect(createHash("sha256").update(stdout).digest("hex")).toBe(
      createHash("sha256")
        .update(Buffer.alloc(16 * 1024 * 1024, "x"))
        .digest("hex"),
    );
    expect(JSON.parse(status)).toMatchObject({ status: "Success" });
    stalled.socket.terminate();
  });

  it("4 MiB of input arrive whole", async () => {
    const client = await v5("web", "sha256sum");
    const input = Buffer.alloc(4 * 1024 * 1024, "sluice");
    for (let at = 0; at < input.byteLength; at += 32 * 1024)
      client.send(0, input.subarray(at, at + 32 * 1024));
    client.closeStdin();
    const { stdout } = await client.done;
    expect(stdout.toString().split(" ")[0]).toBe(createHash("sha256").update(input).digest("hex"));
  });

  it.each(["v4.channel.k8s.io", "channel.k8s.io"])("exec %s", async (protocol) => {
    const { head, socket } = await opened(execPath("web", "echo old", "stdout=true&stderr=true"), protocol);
    expect(head["sec-websocket-protocol"]).toBe(protocol);
    const messages: Buffer[] = [];
    socket.on("message", (data: Buffer) => messages.push(data));
    await once(socket, "close");
    const stdout = messages.filter((data) => data[0] === 1).map((data) => data.subarray(1));
    expect(Buffer.concat(stdout).toString()).toBe("old\n");
  });

  it("exec base64.channel.k8s.io", async () => {
    const path = execPath("web", "echo old", "stdout=true&stderr=true");
    const { socket } = await opened(path, "base64.channel.k8s.io");
    const texts: string[] = [];
    socket.on("message", (data: Buffer) => texts.push(data.toString()));
    await once(socket, "close");
    const stdout = texts
      .filter((text) => text.startsWith("1"))
      .map((text) => Buffer.from(text.slice(1), "base64"));
    expect(Buffer.concat(stdout).toString()).toBe("old\n");
  });

  it("attach v5 talks to the container's own process", async () => {
    const path = podPath("web", "attach", "?stdin=true&stdout=true&stderr=true");
    const { socket } = await opened(path, "v5.channel.k8s.io");
    const client = new V5Client(socket);
    client.send(0, "line\n");
    await eventually("its echo", () => client.messages.some((data) => data.toString().includes("line")));
    socket.close(1000);
    await client.done;
  });

  it.each(["web", "web-ws"])("port-forward through the tunnel to %s", async (pod) => {
    const { head, stream } = await opened(podPath(pod, "portforward"), TUNNEL_PROTOCOL);
    expect(head["sec-websocket-protocol"]).toBe(TUNNEL_PROTOCOL);
    stream.removeAllListeners();
    const client = new TunnelClient(TUNNEL_PROTOCOL, stream, Buffer.alloc(0), true);
    const error = client.openStream("error", 1, 7);
    error.stream.finish();
    const data = client.openStream("data", 1, 7);
    data.stream.write(Buffer.from("echo me"));
    await eventually("the echo", () => data.text().toString() === "echo me");
    client.socket.close(1000);
    await client.closed;
  });

  it("legacy port-forward", async () => {
    const { socket } = await opened(podPath("web", "portforward", "?ports=7"), "v4.channel.k8s.io");
    const messages: Buffer[] = [];
    socket.on("message", (data: Buffer) => messages.push(data));
    socket.send(Buffer.concat([Buffer.of(0), Buffer.from("old way")]));
    const echoed = (): string =>
      Buffer.concat(messages.filter((data) => data[0] === 0).map((data) => data.subarray(1))).toString(
        "latin1",
      );
    // The port's number comes first, in two bytes.
    await eventually("the echo", () => echoed() === "\x07\x00old way");
    socket.close(1000);
  });

  it("many sessions on one connection, each its own", async () => {
    const results = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const client = await v5(index % 2 === 0 ? "web" : "web-ws", `echo number ${index}`);
        return (await client.done).stdout.toString();
      }),
    );
    expect(results).toEqual(Array.from({ length: 20 }, (_, index) => `number ${index}\n`));
  });
});

describe("refusals on HTTP/2 streams", () => {
  it.each([
    ["401", "web", "v5.channel.k8s.io", { authorization: "Bearer wrong" }, 401],
    ["a pod that is not there", "nothing", "v5.channel.k8s.io", undefined, 404],
    ["a page of another origin", "web", "v5.channel.k8s.io", { origin: "https://evil", cookie: "a=b" }, 403],
  ] as const)("%s", async (_what, pod, protocol, headers, code) => {
    const client = await another();
    const path = execPath(pod, "id", "stdout=true");
    const offered = { ...authorization, ...headers, "sec-websocket-protocol": protocol };
    const answer = await openWebSocket(client, path, offered);
    expect(answer).toMatchObject({ status: code, rstCode: 0 });
    if (!("status" in answer)) return;
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(Buffer.byteLength(answer.body)).toBeLessThan(1_024);
    expect(JSON.parse(answer.body)).toMatchObject({ kind: "Status", status: "Failure", code });
  });

  it("a WebSocket that Go's server would refuse is refused in its words", async () => {
    const answer = await openWebSocket(session, execPath("web", "id", "stdout=true"), {
      ...authorization,
      "sec-websocket-version": "8",
      "sec-websocket-protocol": "v5.channel.k8s.io",
    });
    expect(answer).toMatchObject({ status: 400 });
  });

  it.each([
    ["plain CONNECT", { ":method": "CONNECT", ":authority": "a.com:443" }],
    ["another protocol", { ":method": "CONNECT", ":protocol": "connect-udp", ":path": "/x" }],
  ])("%s is refused, and the connection goes on", async (_what, headers) => {
    const stream = session.request(headers, { endStream: false });
    const [head] = await once(stream, "response");
    expect(head[":status"]).toBe(501);
    stream.close();
    expect((await ask(session, "/version")).status).toBe(200);
  });

  it("an exec that is no WebSocket is told to be one", async () => {
    const answer = await ask(session, execPath("web", "id", "stdout=true"), {
      ...authorization,
      ":method": "POST",
    });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ kind: "Status", message: "Upgrade request required" });
  });
});

describe("bad clients on HTTP/2 streams", () => {
  it("a stream that is reset ends its session, and no other", async () => {
    const other = await v5("web", "cat");
    const { stream } = await opened(execPath("web", "cat"), "v5.channel.k8s.io");
    await eventually("two sessions", async () => (await sessions()) === 2);
    stream.close(constants.NGHTTP2_CANCEL);
    await eventually("one session", async () => (await sessions()) === 1);
    other.send(0, "still here\n");
    other.closeStdin();
    expect((await other.done).stdout.toString()).toBe("still here\n");
  });

  it("a connection that breaks ends all its sessions", async () => {
    const client = await another();
    await Promise.all([v5("web", "cat", client), v5("web-ws", "cat", client)]);
    await eventually("two sessions", async () => (await sessions()) === 2);
    client.destroy();
    await eventually("none", async () => (await sessions()) === 0);
  });

  it("a stream that is reset before its answer leaves nothing behind", async () => {
    const client = await another();
    for (let index = 0; index < 200 && !client.destroyed; index++) {
      const stream = client.request(
        {
          ...authorization,
          ":method": "CONNECT",
          ":protocol": "websocket",
          ":path": execPath("web", "sleep 60"),
          "sec-websocket-version": "13",
          "sec-websocket-protocol": "v5.channel.k8s.io",
        },
        { endStream: false },
      );
      stream.on("error", () => {});
      stream.close(constants.NGHTTP2_CANCEL);
    }
    await eventually("none", async () => (await sessions()) === 0);
    expect((await ask(await another(), "/version")).status).toBe(200);
  });

  it("garbage instead of frames ends the session with a protocol error", async () => {
    const { stream } = await opened(execPath("web", "cat"), "v5.channel.k8s.io");
    const parts: Buffer[] = [];
    stream.removeAllListeners();
    stream.on("data", (part: Buffer) => parts.push(part));
    stream.write(Buffer.alloc(64, 0xff));
    // Close with 1002.
    await eventually("Close", () => Buffer.concat(parts).includes(Buffer.from([0x03, 0xea])));
    stream.close();
    await eventually("none", async () => (await sessions()) === 0);
  });

  it("no more streams at a time than the bound", async () => {
    const client = await another();
    expect(client.remoteSettings.maxConcurrentStreams).toBe(MAX_STREAMS);
    expect(client.remoteSettings.enableConnectProtocol).toBe(true);
  });
});

describe("a StreamingGateway behind the front door, over HTTP/2", () => {
  const prefix = "/clusters/own";
  const throughDoor = async (): Promise<ClientHttp2Session> => {
    const client = await connectHttp2(gateway.ingressUrl ?? "");
    onTestFinished(() => client.destroy());
    return client;
  };

  it("answers plain requests", async () => {
    const answer = await ask(
      await throughDoor(),
      `${prefix}/api/v1/namespaces/default/pods/web`,
      authorization,
    );
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toMatchObject({ kind: "Pod", metadata: { name: "web" } });
  });

  it.each(["web", "web-ws"])("carries an exec in %s", async (pod) => {
    const path = prefix + execPath(pod, "cat; exit 5");
    const { socket } = await opened(path, "v5.channel.k8s.io", await throughDoor());
    const client = new V5Client(socket);
    client.send(0, "through the door");
    client.closeStdin();
    const { stdout, status } = await client.done;
    expect(stdout.toString()).toBe("through the door");
    expect(status).toContain('"5"');
  });

  it("refuses as the API leg does", async () => {
    const path = prefix + execPath("nothing", "id");
    const answer = await openWebSocket(await throughDoor(), path, {
      ...authorization,
      "sec-websocket-protocol": "v5.channel.k8s.io",
    });
    expect(answer).toMatchObject({ status: 404, rstCode: 0 });
  });
});

describe("a shutdown", () => {
  it("says GOAWAY to HTTP/2 clients, lets their sessions finish, and refuses new ones", async () => {
    const own = await startTestGateway({ ...TWO_NODES, timeouts: { shutdownGracePeriod: "20s" } });
    let hasStopped = false;
    try {
      const client = await connectHttp2(own.apiServerUrl);
      const idle = await connectHttp2(own.apiServerUrl);
      const idleClosed = once(idle, "close");
      const goaway = once(client, "goaway");
      const headers = { authorization: `Bearer ${own.token}` };
      const { socket } = await opened(execPath("web", "cat"), "v5.channel.k8s.io", client, headers);
      const running = new V5Client(socket);
      const stopped = own.stop().then(() => {
        hasStopped = true;
      });
      expect((await goaway)[0]).toBe(constants.NGHTTP2_NO_ERROR);
      await idleClosed;
      const late = await connectHttp2(own.apiServerUrl);
      const refused = await openWebSocket(late, execPath("web", "id"), {
        ...headers,
        "sec-websocket-protocol": "v5.channel.k8s.io",
      });
      expect(refused).toMatchObject({ status: 503 });
      expect(hasStopped).toBe(false);
      running.send(0, "to the end");
      running.closeStdin();
      const { stdout, status } = await running.done;
      expect(stdout.toString()).toBe("to the end");
      expect(status).toContain("Success");
      await stopped;
    } finally {
      if (!hasStopped) await own.stop();
    }
  });
});

describe("HTTP/1.1 beside it", () => {
  it("is what clients get that do not ask, or ask for it first alone", async () => {
    const { hostname, port } = new URL(gateway.apiServerUrl);
    for (const [ALPNProtocols, chosen] of [
      [["h2", "http/1.1"], "h2"],
      [["http/1.1"], "http/1.1"],
      [undefined, false],
    ] as const) {
      const socket = connectTls({
        host: hostname,
        port: Number(port),
        rejectUnauthorized: false,
        ...(ALPNProtocols && { ALPNProtocols: [...ALPNProtocols] }),
      });
      await once(socket, "secureConnect");
      expect(socket.alpnProtocol).toBe(chosen);
      socket.destroy();
    }
  });

  it("still upgrades", async () => {
    const url = `${gateway.apiServerUrl.replace("https", "wss")}${execPath("web", "cat; exit 3")}`;
    const socket = new WebSocket(url, "v5.channel.k8s.io", {
      rejectUnauthorized: false,
      headers: authorization,
    });
    const client = new V5Client(socket);
    await client.opened;
    client.send(0, "as ever");
    client.closeStdin();
    const { stdout, status } = await client.done;
    expect(stdout.toString()).toBe("as ever");
    expect(status).toContain('"3"');
  });
});
