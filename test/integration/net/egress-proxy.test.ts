import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { connectThroughProxy } from "../../../packages/client/src/http/proxies/proxy-connection.ts";
import { requestUpgrade } from "../../../packages/client/src/http/upgrade/upgrade-request.ts";
import { dial } from "../../../packages/client/src/net/dial.ts";
import { UpstreamTls } from "../../../packages/client/src/net/tls.ts";
import { dialThroughProxy, type EgressProxy } from "../../../src/http/proxies/egress-proxy.ts";
import { answering, closeServer, listenRaw, openSocketCount, until } from "../../support/http/loopback.ts";
import { issueCertificate, type TestCertificate } from "../../support/test-certificates.ts";
import { TunnelProxy } from "../../support/tunnel-proxy.ts";

let certificate: TestCertificate;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  certificate = await issueCertificate({ commonName: "node" }, undefined, { addresses: ["127.0.0.1"] });
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  await until(() => openSocketCount() === 0, "all sockets closed");
});

/** A node over TLS that switches to SPDY whoever asks. */
async function startNode(): Promise<number> {
  const server = createHttpsServer(certificate);
  server.on("upgrade", (_, socket) => {
    socket.on("error", () => {});
    socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    socket.on("data", (chunk: Buffer) => socket.write(chunk));
    socket.on("end", () => socket.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket));
  cleanups.push(() => closeServer(server, sockets));
  return (server.address() as AddressInfo).port;
}

async function startProxy(options: Parameters<typeof TunnelProxy.start>[0] = {}): Promise<TunnelProxy> {
  const proxy = await TunnelProxy.start(options);
  cleanups.push(() => proxy.close());
  return proxy;
}

const at = (port: number, tls?: UpstreamTls) => ({ host: "127.0.0.1", port, tls });

async function echo(port: number, tls: UpstreamTls, proxy: EgressProxy): Promise<TLSSocket> {
  const endpoint = at(port, tls);
  const response = await requestUpgrade({
    endpoint,
    method: "POST",
    path: "/exec/default/web/main",
    headers: [
      ["Connection", "Upgrade"],
      ["Upgrade", "SPDY/3.1"],
    ],
    connect: (options) => dialThroughProxy(proxy, endpoint, options),
  });
  if (response.kind !== "switched") throw new Error("refused");
  const { socket } = response;
  const echoed = new Promise((resolve) => socket.once("data", (chunk) => resolve(String(chunk))));
  socket.resume();
  socket.write("hello");
  expect(await echoed).toBe("hello");
  return socket as TLSSocket;
}

describe("an egress proxy", () => {
  it.each([
    "tcp",
    "tls",
    "unix",
  ])("over %s leads to a node, whose certificate is verified through it", async (kind) => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-egress-"));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    const socketPath = path.join(folder, "proxy.sock");
    const client = await issueCertificate({ commonName: "gateway" });
    const proxy = await startProxy({
      ...(kind === "unix" && { socketPath }),
      ...(kind === "tls" && {
        tls: { ...certificate, ca: client.cert, requestCert: true, rejectUnauthorized: true },
      }),
    });
    const proxyTls = new UpstreamTls({ ca: certificate.cert, certificate: client.cert, key: client.key });
    const server = kind === "unix" ? { socketPath } : at(proxy.port, kind === "tls" ? proxyTls : undefined);
    const port = await startNode();
    const socket = await echo(port, new UpstreamTls({ ca: certificate.cert }), {
      server,
      authorization: async () => "Basic c2VjcmV0",
    });
    expect(socket.authorized).toBe(true);
    expect(socket.alpnProtocol).toBe("http/1.1");
    socket.destroy();
    expect(proxy.requests.map(({ url, headers }) => [url, headers["proxy-authorization"]])).toEqual([
      [`127.0.0.1:${port}`, "Basic c2VjcmV0"],
    ]);
    const wrongTrust = new UpstreamTls({ ca: client.cert });
    const failure = await dialThroughProxy({ server }, at(port, wrongTrust), {}).catch(
      (error: Error) => error,
    );
    expect((failure as Error).message).toBe(
      "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    );
  });

  it("half-closes through the tunnel: what comes behind our end still arrives", async () => {
    const proxy = await startProxy();
    const socket = await echo(await startNode(), new UpstreamTls({ ca: certificate.cert }), {
      server: at(proxy.port),
    });
    const rest: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => rest.push(chunk));
    const ended = new Promise((resolve) => socket.once("end", resolve));
    socket.end("last");
    await ended;
    expect(Buffer.concat(rest).toString()).toBe("last");
  });

  it.each(["directly", "through the proxy"])("TLS sessions with the node are resumed %s", async (way) => {
    const proxy = await startProxy();
    const port = await startNode();
    const tls = new UpstreamTls({ ca: certificate.cert });
    const reused: boolean[] = [];
    for (let dials = 0; dials < 3; dials++) {
      const endpoint = at(port, tls);
      const socket = (await (way === "directly"
        ? dial(endpoint)
        : dialThroughProxy({ server: at(proxy.port) }, endpoint, {}))) as TLSSocket;
      reused.push(socket.isSessionReused());
      // Tickets come behind the handshake.
      socket.resume();
      if (!socket.isSessionReused()) await until(() => tls.rememberedSessions > 0, "a ticket");
      socket.destroy();
    }
    expect(reused).toEqual([false, true, true]);
  });

  const target = "10.0.0.7:10250";
  const node = { host: "10.0.0.7", port: 10_250 };
  it.each([
    [
      "407 Proxy Authentication Required",
      "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\n\r\n",
      (proxy: string) =>
        `proxy error from ${proxy} while dialing ${target}, code 407: 407 Proxy Authentication Required`,
    ],
    [
      "503 with HTML",
      "HTTP/1.1 503 No agent available\r\nContent-Type: text/html\r\n\r\n<html>",
      (proxy: string) =>
        `proxy error from ${proxy} while dialing ${target}, code 503: 503 No agent available`,
    ],
    [
      "a redirect",
      "HTTP/1.1 302 Found\r\nLocation: http://evil/\r\n\r\n",
      (proxy: string) => `proxy error from ${proxy} while dialing ${target}, code 302: 302 Found`,
    ],
    [
      "HTML alone",
      "<html>\r\n<body>\r\n\r\n",
      (proxy: string) =>
        `reading HTTP response from CONNECT to ${target} via proxy ${proxy} failed: malformed HTTP response "<html>"`,
    ],
    [
      "bytes of its own behind the answer",
      "HTTP/1.1 200 OK\r\n\r\nhello",
      (proxy: string) => `unexpected 5 bytes of buffered data from CONNECT proxy "${proxy}"`,
    ],
  ])("that answers %s is named, and left", async (_, answer, message) => {
    const proxy = await listenRaw(answering(answer));
    cleanups.push(proxy.close);
    const dialled = dialThroughProxy({ server: at(proxy.port) }, node, {});
    await expect(dialled).rejects.toMatchObject({
      code: "dial-failed",
      message: message(`127.0.0.1:${proxy.port}`),
    });
    await until(() => proxy.sockets.every((socket) => socket.readableEnded || socket.destroyed), "closed");
  });

  it("that ends in the middle of its answer", async () => {
    const proxy = await listenRaw((socket) => socket.end("HTTP/1.1 200 O"));
    cleanups.push(proxy.close);
    await expect(dialThroughProxy({ server: at(proxy.port) }, node, {})).rejects.toMatchObject({
      message: `reading HTTP response from CONNECT to ${target} via proxy 127.0.0.1:${proxy.port} failed: unexpected EOF`,
    });
  });

  it("whose headers do not end is given up at the bound", async () => {
    const proxy = await listenRaw((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n");
      const more = (): void => {
        while (!socket.destroyed && socket.write(`X-A: ${"a".repeat(1_000)}\r\n`));
      };
      socket.on("drain", more);
      more();
    });
    cleanups.push(proxy.close);
    await expect(dialThroughProxy({ server: at(proxy.port) }, node, {})).rejects.toMatchObject({
      message: `reading HTTP response from CONNECT to ${target} via proxy 127.0.0.1:${proxy.port} failed: header size limit exceeded`,
    });
  });

  it("that is silent takes no longer than the dial may, handshake with the node included", async () => {
    const silent = await listenRaw(() => {});
    cleanups.push(silent.close);
    const options = { dialTimeoutMs: 60 };
    await expect(dialThroughProxy({ server: at(silent.port) }, node, options)).rejects.toMatchObject({
      message: `reading HTTP response from CONNECT to ${target} via proxy 127.0.0.1:${silent.port} failed: i/o timeout`,
    });
    const proxy = await startProxy();
    const tls = new UpstreamTls();
    await expect(
      dialThroughProxy({ server: at(proxy.port) }, at(silent.port, tls), options),
    ).rejects.toMatchObject({ message: "net/http: TLS handshake timeout" });
  });

  it("is left when the client leaves", async () => {
    const silent = await listenRaw(() => {});
    cleanups.push(silent.close);
    const abort = new AbortController();
    const dialled = dialThroughProxy({ server: at(silent.port) }, node, { signal: abort.signal });
    await until(() => silent.received() !== "", "the request");
    abort.abort();
    await expect(dialled).rejects.toMatchObject({ code: "aborted" });
  });

  it("that is not there is named as Go names it", async () => {
    const server = { socketPath: "/nonexistent/proxy.sock" };
    await expect(dialThroughProxy({ server }, node, {})).rejects.toMatchObject({
      message: "dial unix /nonexistent/proxy.sock: connect: no such file or directory",
    });
  });

  it("whose credentials can not be read is not asked, and nobody is told where they are", async () => {
    const authorization = async (): Promise<string> => {
      throw new Error("ENOENT /secret/path");
    };
    await expect(dialThroughProxy({ server: at(1), authorization }, node, {})).rejects.toMatchObject({
      code: "dial-failed",
      message: "the credentials for the egress proxy cannot be read",
    });
  });

  it("gets no host that is more than one word, nor do proxies of kubeconfigs", async () => {
    const proxy = await startProxy();
    const smuggled = { host: "x HTTP/1.1\r\n\r\nGET /internal HTTP/1.1\r\nX: y", port: 10_250 };
    const message = /is neither an IP address nor a host name/;
    const server = { host: "127.0.0.1", port: proxy.port };
    await expect(dialThroughProxy({ server }, smuggled, {})).rejects.toThrow(message);
    for (const socks of [undefined, { credentials: undefined }]) {
      const kubeconfigs = { endpoint: server, authorization: undefined, ...(socks && { socks }) };
      await expect(connectThroughProxy(kubeconfigs, smuggled, {})).rejects.toThrow(message);
    }
    expect(proxy.requests).toEqual([]);
  });

  it("gets a node's IPv6 address in brackets and a name as it is", async () => {
    for (const [host, asked] of [
      ["fd00::7", "[fd00::7]:10250"],
      ["node-7", "node-7:10250"],
    ] as const) {
      const proxy = await listenRaw(answering("HTTP/1.1 500 x\r\n\r\n"));
      cleanups.push(proxy.close);
      await expect(
        dialThroughProxy({ server: at(proxy.port) }, { host, port: 10_250 }, {}),
      ).rejects.toThrow();
      expect(proxy.received()).toBe(`CONNECT ${asked} HTTP/1.1\r\nHost: ${asked}\r\n\r\n`);
    }
  });
});
