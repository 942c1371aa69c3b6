import { describe, expect, it } from "vitest";
import { USER_AGENT } from "../../../packages/client/src/config/version.ts";
import { type DialRequest, dial } from "../../../packages/client/src/connect.ts";
import { ConnectError } from "../../../packages/client/src/http/upstream/connect-error.ts";
import { Target, type TargetOptions } from "../../../packages/client/src/target.ts";
import { closedAfterEach, failureOf } from "../../support/client/closed-after-each.ts";
import { switchingWebSocket } from "../../support/client/switching.ts";
import { startConnectProxy } from "../../support/connect-proxy.ts";
import { afterHead, answering, listenRaw, until } from "../../support/http/loopback.ts";
import { startRawTls } from "../../support/raw-tls-answer.ts";
import { issueCertificate } from "../../support/test-certificates.ts";

// The bound under test.
const MAX_QUOTED_REFUSAL_CHARACTERS = 1024;

const spdy: DialRequest = { path: "/exec?a=1", transport: "spdy", protocols: ["v4.channel.k8s.io"] };
const webSocket: DialRequest = { path: "/exec", transport: "websocket", protocols: ["v5.channel.k8s.io"] };
const SWITCHED_TO_SPDY =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";

const closing = closedAfterEach();

async function serve(onConnection: Parameters<typeof listenRaw>[0]) {
  const server = await listenRaw(onConnection);
  closing.push(() => server.close());
  return server;
}

function target(port: number, options: Partial<TargetOptions> = {}): Target {
  return new Target({ url: `http://127.0.0.1:${port}`, proxy: "none", ...options });
}

const failure = (attempt: Promise<unknown>) => failureOf(ConnectError, attempt);

describe("dial", () => {
  it("upgrades to SPDY by POST, with a line per version, below the target's path, with its headers", async () => {
    const server = await serve(answering(`${SWITCHED_TO_SPDY}more`));
    const options = { url: `http://127.0.0.1:${server.port}/base/`, headers: () => [["X-A", "b"] as const] };
    const request = { ...spdy, protocols: ["v5.channel.k8s.io", "v4.channel.k8s.io"] };
    const { socket, head, protocol, transport } = await dial(target(server.port, options), request);
    socket.destroy();

    expect({ head: head.toString(), protocol, transport }).toEqual({
      head: "more",
      protocol: "v4.channel.k8s.io",
      transport: "spdy",
    });
    expect(server.received().split("\r\n")).toEqual([
      "POST /base/exec?a=1 HTTP/1.1",
      `Host: 127.0.0.1:${server.port}`,
      "X-A: b",
      "Connection: Upgrade",
      "Upgrade: SPDY/3.1",
      "X-Stream-Protocol-Version: v5.channel.k8s.io",
      "X-Stream-Protocol-Version: v4.channel.k8s.io",
      `User-Agent: ${USER_AGENT}`,
      "Content-Length: 0",
      "",
      "",
    ]);
  });

  it("TestWebSocketRoundTripper_RoundTripperSucceeds: the subprotocol is the server's choice of those offered", async () => {
    const server = await serve(switchingWebSocket("v4.channel.k8s.io"));
    const request = { ...webSocket, protocols: ["v5.channel.k8s.io", "v4.channel.k8s.io"] };
    const { socket, protocol } = await dial(target(server.port), request);
    socket.destroy();
    expect(protocol).toBe("v4.channel.k8s.io");
    expect(server.received()).toContain("GET /exec HTTP/1.1\r\n");
    expect(server.received()).toContain("Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n");
  });

  it.each<[string, string, string]>([
    [
      "a Status",
      'HTTP/1.1 403 Forbidden\r\nContent-Length: 73\r\n\r\n{"kind":"Status","status":"Failure","message":"no","reason":"Forbidden" }',
      "unable to upgrade streaming request: no",
    ],
    [
      "text",
      "HTTP/1.1 400 Bad Request\r\nContent-Length: 4\r\n\r\nwhy\n",
      "unable to upgrade streaming request: websocket: bad handshake (400 Bad Request): why",
    ],
    [
      "nothing",
      "HTTP/1.1 403 Forbidden\r\n\r\n",
      "unable to upgrade streaming request: websocket: bad handshake (403 Forbidden)",
    ],
  ])("TestWebSocketRoundTripper_RoundTripperFails: a refusal with %s is an upgrade failure", async (_what, answer, text) => {
    const server = await serve((socket) =>
      afterHead(socket, () => {
        socket.end(answer, "latin1");
      }),
    );
    const error = await failure(dial(target(server.port), webSocket));
    expect(error).toMatchObject({ leg: "http", message: text, isUpgradeFailure: true });
  });

  it("tells a SPDY refusal in client-go's words, with what the server accepts", async () => {
    const body = "unable to upgrade: unable to negotiate protocol\n";
    const server = await serve(
      answering(
        `HTTP/1.1 403 Forbidden\r\nX-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      ),
    );
    expect(await failure(dial(target(server.port), spdy))).toMatchObject({
      leg: "http",
      httpStatus: 403,
      message: "unable to upgrade connection: unable to upgrade: unable to negotiate protocol",
      acceptedProtocols: ["v4.channel.k8s.io"],
    });
  });

  it("shows only the start of a page of HTML, and none of its terminal controls", async () => {
    const page = `<html>\u001b[2J${"x".repeat(50_000)}</html>`;
    const server = await serve(
      answering(`HTTP/1.1 502 Bad Gateway\r\nContent-Length: ${page.length}\r\n\r\n${page}`),
    );
    const { message } = await failure(dial(target(server.port), spdy));
    expect(message.length).toBeLessThan(MAX_QUOTED_REFUSAL_CHARACTERS + 50);
    expect(message).toMatch(/^unable to upgrade connection: <html>\[2Jxxx/);
  });

  it("gives up on endless headers", async () => {
    const server = await serve((socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\n");
      const flood = (): void => {
        while (!socket.destroyed && socket.write(`X-A: ${"a".repeat(8_000)}\r\n`));
      };
      socket.on("drain", flood);
      flood();
    });
    expect(await failure(dial(target(server.port), spdy))).toMatchObject({
      leg: "response",
      message: "header size limit exceeded",
    });
  });

  it.each<[string, DialRequest, string, string]>([
    [
      "another subprotocol",
      webSocket,
      "v4.channel.k8s.io",
      'unable to upgrade streaming request: invalid protocol, expected one of ["v5.channel.k8s.io"], got "v4.channel.k8s.io"',
    ],
    [
      "no subprotocol",
      webSocket,
      "",
      'unable to upgrade streaming request: invalid protocol, expected one of ["v5.channel.k8s.io"], got ""',
    ],
    [
      "WebSocket for SPDY",
      spdy,
      "v4.channel.k8s.io",
      "unable to upgrade connection: the server switched, but not to SPDY/3.1",
    ],
  ])("a 101 with %s is an upgrade failure", async (_what, request, subprotocol, message) => {
    const server = await serve(switchingWebSocket(subprotocol));
    expect(await failure(dial(target(server.port), request))).toMatchObject({
      leg: "handshake",
      message,
      isUpgradeFailure: true,
    });
  });

  it("a wrong accept value is an upgrade failure; a 302 and a 200 are, too, and are not followed", async () => {
    const wrong = await serve(switchingWebSocket("v5.channel.k8s.io", "wrong"));
    expect(await failure(dial(target(wrong.port), webSocket))).toMatchObject({ leg: "handshake" });
    for (const status of ["302 Found\r\nLocation: http://127.0.0.1:1/", "200 OK"]) {
      const server = await serve(answering(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`));
      expect(await failure(dial(target(server.port), webSocket))).toMatchObject({ leg: "http" });
    }
  });

  it("tells TCP, TLS, a lost answer and an abort apart, and none is an upgrade failure", async () => {
    const plain = await serve((socket) => afterHead(socket, () => socket.destroy()));
    const closed = await listenRaw(() => {});
    await closed.close();
    const silent = await serve(() => {});
    const noTls = await serve((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const aborted = dial(target(silent.port), { ...spdy, signal: AbortSignal.timeout(20) });
    const errors = await Promise.all(
      [
        dial(target(closed.port), spdy),
        dial(target(noTls.port, { url: `https://127.0.0.1:${noTls.port}` }), spdy),
        dial(target(plain.port), spdy),
        dial(target(silent.port), { ...spdy, responseHeaderTimeoutMs: 20 }),
        aborted,
      ].map(failure),
    );
    expect(errors.map(({ leg }) => leg)).toEqual(["tcp", "tls", "response", "response", "aborted"]);
    expect(errors.map((error) => error.isUpgradeFailure)).toEqual([false, false, false, false, false]);
    expect(errors[0]?.message).toBe(`dial tcp 127.0.0.1:${closed.port}: connect: connection refused`);
  });

  it("verifies the server's certificate", async () => {
    const certificate = await issueCertificate({ commonName: "server" }, undefined, {
      addresses: ["127.0.0.1"],
    });
    const server = await startRawTls(certificate, SWITCHED_TO_SPDY);
    closing.push(server.close);
    const url = `https://127.0.0.1:${server.port}`;
    const { message } = await failure(dial(target(0, { url }), spdy));
    expect(message).toBe("tls: failed to verify certificate: x509: certificate signed by unknown authority");
    const trusted = await dial(target(0, { url, tls: { ca: certificate.cert } }), spdy);
    trusted.socket.destroy();
  });

  it("traces the request and the answer", async () => {
    const server = await serve(answering(SWITCHED_TO_SPDY));
    const lines: string[] = [];
    const trace = {
      request: (method: string, url: string) => lines.push(`${method} ${url}`),
      response: (status: number, text: string) => lines.push(`${status} ${text}`),
    };
    (await dial(target(server.port, { trace }), spdy)).socket.destroy();
    expect(lines).toEqual([`POST http://127.0.0.1:${server.port}/exec?a=1`, "101 Switching Protocols"]);
  });

  it("refuses headers that would split the request, without showing their values", async () => {
    const headers = () => [["X-A", "secret\r\nX-B: c"] as const];
    await expect(dial(target(1, { headers }), spdy)).rejects.toThrow('invalid header "X-A"');
  });
});

describe("through a proxy", () => {
  it("_ProxySucceeds: by CONNECT, with credentials, over TLS to the proxy and to the server", async () => {
    const certificate = await issueCertificate({ commonName: "both" }, undefined, {
      addresses: ["127.0.0.1"],
    });
    const server = await startRawTls(certificate, `${SWITCHED_TO_SPDY}hello`);
    closing.push(server.close);
    for (const scheme of ["http", "https"]) {
      const proxy = await startConnectProxy({
        credentials: "user:p@ss",
        ...(scheme === "https" && { certificate }),
      });
      closing.push(proxy.close);
      const upgraded = await dial(
        new Target({
          url: `https://127.0.0.1:${server.port}`,
          tls: { ca: certificate.cert },
          proxy: `${scheme}://user:p%40ss@127.0.0.1:${proxy.port}`,
        }),
        spdy,
      );
      let received = upgraded.head.toString();
      upgraded.socket.on("data", (chunk) => {
        received += chunk;
      });
      upgraded.socket.resume();
      await until(() => received === "hello", "what the server says comes through");
      upgraded.socket.destroy();
      expect(proxy.asked).toEqual([`127.0.0.1:${server.port}`]);
    }
  });

  it("tells a proxy's refusal from a server's, and does not fall back on it", async () => {
    const proxy = await startConnectProxy({ credentials: "user:password" });
    closing.push(proxy.close);
    const options = { url: "http://127.0.0.1:1", proxy: `http://127.0.0.1:${proxy.port}` };
    expect(await failure(dial(new Target(options), spdy))).toMatchObject({
      leg: "proxy",
      httpStatus: 407,
      message: "proxy: 407 Proxy Authentication Required",
      isUpgradeFailure: false,
    });
  });

  it("says so when the proxy is not there, does not answer, or is of an unknown kind", async () => {
    const closed = await listenRaw(() => {});
    await closed.close();
    const silent = await serve(() => {});
    const url = "http://127.0.0.1:1";
    const through = (port: number) => new Target({ url, proxy: `http://127.0.0.1:${port}` });
    expect(await failure(dial(through(closed.port), spdy))).toMatchObject({
      leg: "proxy",
      message: `proxyconnect tcp: dial tcp 127.0.0.1:${closed.port}: connect: connection refused`,
    });
    expect(await failure(dial(through(silent.port), { ...spdy, dialTimeoutMs: 30 }))).toMatchObject({
      leg: "proxy",
    });
    expect(() => new Target({ url, proxy: "socks4://127.0.0.1:1" })).toThrow("invalid proxy address");
  });
});
