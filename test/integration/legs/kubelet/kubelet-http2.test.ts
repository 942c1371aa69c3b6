import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, constants, type SecureClientSessionOptions } from "node:http2";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { ask, connectHttp2, type Http2Answer, openWebSocket } from "../../../support/http2-client.ts";
import {
  ADMIN_TOKEN,
  READER_TOKEN,
  RuntimeNode,
  type RuntimeNodeOptions,
} from "../../../support/runtime-node.ts";
import { endExec, type KubeletScript, SUCCESS } from "../../../support/scripted-kubelet.ts";
import { issueCertificate, type TestCertificate } from "../../../support/test-certificates.ts";
import { TUNNEL_PROTOCOL, TunnelClient } from "../../../support/tunnel-client.ts";
import { V5Client } from "../../../support/v5-client.ts";

const EXEC = "/exec/default/web/main?command=id&input=1&output=1&error=1";
const EXIT_7 =
  '{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}';

let folder: string;
let authority: TestCertificate;
let node: RuntimeNode;
const clients: ClientHttp2Session[] = [];

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-kubelet-http2-"));
  authority = await issueCertificate({ commonName: "node authority" });
  const serving = await issueCertificate({ commonName: "system:node:node-1" }, authority, {
    addresses: ["127.0.0.1"],
    usage: "server",
  });
  for (const [name, text] of Object.entries({
    "ca.crt": authority.cert,
    "node.crt": serving.cert,
    "node.key": serving.key,
  })) {
    writeFileSync(path.join(folder, name), text);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await node?.stop();
});

async function start(options: RuntimeNodeOptions = {}): Promise<void> {
  const tls = { certFile: path.join(folder, "node.crt"), keyFile: path.join(folder, "node.key") };
  node = await RuntimeNode.start({ ...options, listener: { tls, ...options.listener } });
}

async function connect(options: SecureClientSessionOptions = {}): Promise<ClientHttp2Session> {
  const client = await connectHttp2(`https://${node.authority}`, { ca: authority.cert, ...options });
  clients.push(client);
  return client;
}

const as = (token: string) => ({ authorization: `Bearer ${token}` });

async function opened(client: ClientHttp2Session, target: string, protocol: string, token = ADMIN_TOKEN) {
  const headers = { ...as(token), "sec-websocket-protocol": protocol };
  const answer = await openWebSocket(client, target, headers);
  if ("status" in answer) throw new Error(`refused with ${answer.status}: ${answer.body}`);
  return answer;
}

/** Says what came in on stdin, and ends with exit code 7. */
function echo(): KubeletScript {
  return {
    onData: (name, part, fin, session) => {
      if (name !== "stdin") return;
      if (part.byteLength > 0) session.streams.get("stdout")?.write(Buffer.from(part));
      if (fin) endExec(session, EXIT_7);
    },
  };
}

describe("exec, attach and port-forward on HTTP/2 streams of the kubelet listener", () => {
  it.each([
    ["exec", EXEC, "Exec"],
    ["attach", "/attach/default/web/main?input=1&output=1", "Attach"],
  ] as const)("%s v5: input, output, half-close, exit code", async (_name, target, method) => {
    await start({ streaming: echo() });
    const { head, socket } = await opened(await connect(), target, "v5.channel.k8s.io");
    expect(head["sec-websocket-protocol"]).toBe("v5.channel.k8s.io");
    const client = new V5Client(socket);
    client.send(0, "typed\n");
    client.closeStdin();
    const { stdout, status, closeCode } = await client.done;
    expect(stdout.toString()).toBe("typed\n");
    expect(JSON.parse(status)).toMatchObject({ status: "Failure", reason: "NonZeroExitCode" });
    expect(closeCode).toBe(1000);
    expect(node.runtime.callsOf(method)).toHaveLength(1);
    const [sent] = node.streaming.requests;
    expect(sent).toMatchObject({ method: "POST", httpVersion: "1.1" });
    expect(sent?.headers.authorization).toBeUndefined();
  });

  it("4 MiB arrive whole beside a session that nobody reads, and each ends its own way", async () => {
    const output = Buffer.alloc(4 * 1024 * 1024, "sluice");
    await start({
      streaming: {
        onStream: (name, stream, session) => {
          if (name !== "stdout") return;
          stream.write(output);
          endExec(session, SUCCESS);
        },
      },
    });
    const client = await connect();
    const stalled = new V5Client((await opened(client, EXEC, "v5.channel.k8s.io")).socket);
    stalled.socket.pause();
    const read = new V5Client((await opened(client, EXEC, "v5.channel.k8s.io")).socket);
    const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");
    expect(digest((await read.done).stdout)).toBe(digest(output));
    stalled.socket.resume();
    expect(digest((await stalled.done).stdout)).toBe(digest(output));
  });

  it("port-forward through the tunnel", async () => {
    await start({
      streaming: {
        protocol: "portforward.k8s.io",
        onData: (name, part, _fin, session) => {
          if (name.startsWith("data") && part.byteLength > 0)
            session.streams.get(name)?.write(Buffer.from(part));
        },
      },
    });
    const { stream } = await opened(await connect(), "/portForward/default/web", TUNNEL_PROTOCOL);
    stream.removeAllListeners();
    const client = new TunnelClient(TUNNEL_PROTOCOL, stream, Buffer.alloc(0), true);
    client.openStream("error", 1, 7).stream.finish();
    const data = client.openStream("data", 1, 7);
    data.stream.write(Buffer.from("echo me"));
    await eventually("the echo", () => data.text().toString() === "echo me");
    client.socket.close(1000);
    await client.closed;
  });

  it("a stream that is reset ends its session at the runtime, and no other", async () => {
    await start({ streaming: echo() });
    const client = await connect();
    const lost = await opened(client, EXEC, "v5.channel.k8s.io");
    const kept = new V5Client((await opened(client, EXEC, "v5.channel.k8s.io")).socket);
    await eventually("two sessions", () => node.streaming.openSockets === 2);
    lost.stream.close(constants.NGHTTP2_CANCEL);
    await eventually("one session", () => node.streaming.openSockets === 1);
    kept.send(0, "still here");
    kept.closeStdin();
    expect((await kept.done).stdout.toString()).toBe("still here");
  });
});

describe("refusals on HTTP/2 streams of the kubelet listener", () => {
  const refused = async (target: string, token: string): Promise<Http2Answer> => {
    const headers = { ...as(token), "sec-websocket-protocol": "v5.channel.k8s.io" };
    const answer = await openWebSocket(await connect(), target, headers);
    if (!("status" in answer)) throw new Error("it was opened");
    return answer;
  };

  it("are texts, as over HTTP/1.1", async () => {
    await start({ script: { ListPodSandbox: () => ({ items: [] }) } });
    expect(await refused(EXEC, "wrong")).toMatchObject({ status: 401, rstCode: 0, body: "Unauthorized" });
    expect(await refused(EXEC, ADMIN_TOKEN)).toMatchObject({
      status: 404,
      rstCode: 0,
      headers: { "content-type": "text/plain; charset=utf-8" },
    });
    expect(node.runtime.callsOf("Exec")).toEqual([]);
  });

  it("a CONNECT is a GET that needs create, too", async () => {
    await start();
    expect(await refused(EXEC, READER_TOKEN)).toMatchObject({
      status: 403,
      body: "Forbidden (user=node-reader, verb=create, resource=nodes, subresource(s)=[proxy])\n",
    });
  });
});

describe("who connects over HTTP/2", () => {
  it("is known by the certificate of the connection", async () => {
    await start({
      streaming: echo(),
      listener: { authentication: { clientCAFile: path.join(folder, "ca.crt") } },
    });
    const admin = await issueCertificate({ commonName: "node-admin" }, authority, { usage: "client" });
    const known = await connect({ cert: admin.cert, key: admin.key });
    const client = new V5Client((await opened(known, EXEC, "v5.channel.k8s.io", "")).socket);
    client.closeStdin();
    expect((await client.done).status).toContain('"7"');
    expect(await ask(await connect(), "/pods")).toMatchObject({ status: 401, body: "Unauthorized" });
  });

  it("reads plain answers over it, and is not offered it where the listener says so", async () => {
    await start();
    const client = await connect();
    const pods = await ask(client, "/pods", as(ADMIN_TOKEN));
    expect(pods.status).toBe(200);
    expect(JSON.parse(pods.body)).toMatchObject({ kind: "PodList" });
    expect((await ask(client, "/nowhere", as(ADMIN_TOKEN))).status).toBe(404);
    await node.stop();
    await start({ listener: { http2: false } });
    await expect(connect()).rejects.toThrow();
  });
});
