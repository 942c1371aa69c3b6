import { once } from "node:events";
import { request } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { SpdySession, type SpdyStream } from "../../../../protocols/spdy/index.ts";
import { gatewayOverKubelet } from "../../../support/gateway-over-kubelet.ts";
import { CAT, endExec, SUCCESS } from "../../../support/scripted-kubelet.ts";

const gateway = gatewayOverKubelet();
const { start } = gateway;

/** kubectl 1.20 to 1.29 in small: SPDY exec with error, stdin, stdout; collects what comes until the connection ends. */
async function spdyExec(authority: string, protocol = "v4.channel.k8s.io") {
  const [host, port] = authority.split(":");
  const upgrade = request({
    host,
    port,
    method: "POST",
    path: "/api/v1/namespaces/default/pods/web/exec?stdin=true&stdout=true&command=x",
    headers: {
      Connection: "Upgrade",
      Upgrade: "SPDY/3.1",
      "X-Stream-Protocol-Version": protocol,
      Authorization: "Bearer secret",
      Cookie: "a=b",
      "Impersonate-User": "root",
      "User-Agent": "kubectl/v1.29",
    },
  });
  upgrade.end();
  const [response, socket] = (await once(upgrade, "upgrade")) as [{ rawHeaders: string[] }, Socket];
  const received: Record<string, string> = { error: "", stdin: "", stdout: "" };
  const fins: string[] = [];
  const streams: Record<string, SpdyStream> = {};
  const spdy = new SpdySession("client", {
    send: (bytes) => void (socket.writable && socket.write(bytes)),
    onStream: () => 3,
  });
  for (const name of ["error", "stdin", "stdout"]) {
    streams[name] = spdy.openStream([["streamtype", name]], {
      onData: (part, fin) => {
        received[name] += Buffer.from(part).toString("latin1");
        if (fin) fins.push(name);
      },
      onEnd: () => {},
    });
  }
  socket.on("data", (chunk: Buffer) => spdy.receive(chunk));
  socket.on("error", () => {});
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  socket.on("end", () => socket.end());
  return { response, socket, streams, received, fins, ended };
}

describe("pass-through", () => {
  it("relays SPDY, the node's 101 head, stdin and the end, and counts no translation", async () => {
    const authority = await start(CAT);
    const { response, streams, received, ended } = await spdyExec(authority);
    expect(response.rawHeaders).toContain("X-Stream-Protocol-Version");
    streams.stdin?.write(Buffer.from("hello"));
    streams.stdin?.finish();
    await ended;
    expect(received).toEqual({ error: SUCCESS, stdin: "", stdout: "hello" });
    expect(await gateway.harness?.metric("apiserver_stream_translator_requests_total")).toEqual([
      'apiserver_stream_translator_requests_total{code="200"} 0',
    ]);
    expect(gateway.harness?.context.sessions.size).toBe(0);
  });

  it("takes the client's identity off the request and keeps the rest", async () => {
    const authority = await start({
      onStream: (name, _stream, session) => name === "stdout" && endExec(session, SUCCESS),
    });
    await (await spdyExec(authority)).ended;
    const headers = gateway.kubelet?.requests[0]?.headers ?? {};
    expect(headers["user-agent"]).toBe("kubectl/v1.29");
    expect(headers["x-forwarded-for"]).toBe("127.0.0.1");
    for (const name of ["authorization", "cookie", "impersonate-user"]) expect(headers[name]).toBeUndefined();
  });

  for (const [protocol, word] of [
    ["v4.channel.k8s.io", '"status":"Failure"'],
    ["v3.channel.k8s.io", "the node ended the session without a status"],
  ] as const) {
    it(`${protocol}: a node that dies in the middle of a frame does not look like exit code 0`, async () => {
      const authority = await start({
        protocol,
        onStream: (name, _stream, session) => {
          if (name !== "stdout") return;
          // A DATA header for 1,000 bytes on stdout, 10 of them, and the end.
          const header = Buffer.alloc(8);
          header.writeUInt32BE(session.streams.get("stdout")?.id ?? 0, 0);
          header.writeUInt32BE(1_000, 4);
          session.socket.end(Buffer.concat([header, Buffer.from("0123456789")]));
        },
      });
      const { received, ended } = await spdyExec(authority, protocol);
      await ended;
      expect(received.stdout).toBe("0123456789");
      expect(received.error).toContain(word);
    });
  }

  it("v3.channel.k8s.io: success is an error stream that ends empty, and stays so", async () => {
    const authority = await start({
      protocol: "v3.channel.k8s.io",
      onStream: (name, _stream, session) => name === "stdout" && endExec(session, ""),
    });
    const { received, ended } = await spdyExec(authority, "v3.channel.k8s.io");
    await ended;
    expect(received.error).toBe("");
  });

  it("at shutdown a running exec is told that it failed", async () => {
    const authority = await start({});
    const { received, ended } = await spdyExec(authority);
    await expect.poll(() => gateway.harness?.context.sessions.list().length).toBe(1);
    // Replies travel first; a last word on a stream without a reply would be dropped by the client.
    await expect.poll(() => gateway.kubelet?.sessions[0]?.streams.size).toBe(3);
    await new Promise((resolve) => setImmediate(resolve));
    void gateway.harness?.context.sessions.endAll("the gateway is shutting down");
    await ended;
    expect(received.error).toContain("the gateway is shutting down");
  });

  it("a node that resets after its status takes nothing back", async () => {
    const authority = await start({
      onStream: (name, _stream, session) => {
        if (name !== "stdout") return;
        session.streams.get("stdout")?.write(Buffer.alloc(100_000, "x"));
        endExec(session, SUCCESS);
        session.socket.once("finish", () => (session.socket as Socket).resetAndDestroy());
      },
    });
    const { received, ended } = await spdyExec(authority);
    await ended;
    expect(received.stdout?.length).toBe(100_000);
    expect(received.error).toBe(SUCCESS);
  });
});
