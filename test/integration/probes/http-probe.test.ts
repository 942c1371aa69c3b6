import { createServer as createHttp, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createH2c, createSecureServer } from "node:http2";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, createServer as createTcp, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { HTTPGetAction } from "../../../src/api/probe-objects.ts";
import { probeUrl } from "../../../src/probes/http/http-hop.ts";
import { issueCertificate } from "../../support/test-certificates.ts";
import { probe } from "./probe.ts";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

const open: { close(): void }[] = [];

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(server);
  return (server.address() as AddressInfo).port;
}

const serve = (handler: Handler): Promise<number> => listen(createHttp(handler));
const get = (port: number, more: Partial<HTTPGetAction> = {}, timeoutMs = 5_000) =>
  probe({ httpGet: { port, ...more } }, { timeoutMs });

afterEach(() => {
  delete process.env.http_proxy;
  for (const server of open.splice(0)) server.close();
});

describe("TestHTTPProbeProxy", () => {
  it("http_proxy is not used", async () => {
    let proxied = 0;
    const proxy = await serve((_, response) => {
      proxied++;
      response.end("proxy");
    });
    process.env.http_proxy = `http://127.0.0.1:${proxy}`;
    const port = await serve((_, response) => response.end("server"));
    expect(await get(port)).toMatchObject({ result: "Success", message: "server" });
    expect(proxied).toBe(0);
  });
});

describe("TestHTTPProbeChecker", () => {
  async function sentWith(httpHeaders: HTTPGetAction["httpHeaders"] = []): Promise<IncomingMessage> {
    let seen: IncomingMessage | undefined;
    const port = await serve((request, response) => {
      seen = request;
      response.end("ok");
    });
    expect(await get(port, { path: "/p?x=1", httpHeaders })).toMatchObject({
      result: "Success",
      message: "ok",
    });
    if (seen === undefined) throw new Error("nothing was asked");
    return seen;
  }
  const namesOf = ({ rawHeaders }: IncomingMessage) =>
    rawHeaders.filter((_, index) => index % 2 === 0).sort();

  it("three headers and Host, nothing else; path and query as given", async () => {
    const request = await sentWith();
    expect(namesOf(request)).toEqual(["Accept", "Connection", "Host", "User-Agent"]);
    expect(request.headers).toMatchObject({
      "user-agent": "kube-probe/1.36",
      accept: "*/*",
      connection: "close",
    });
    expect(request.url).toBe("/p?x=1");
  });

  it("a User-Agent of one's own, and none", async () => {
    expect((await sentWith([{ name: "User-Agent", value: "foo/1.0" }])).headers["user-agent"]).toBe(
      "foo/1.0",
    );
    const none = await sentWith([{ name: "user-agent", value: "" }]);
    expect(namesOf(none)).toEqual(["Accept", "Connection", "Host"]);
  });

  it("an Accept of one's own, and none", async () => {
    expect((await sentWith([{ name: "Accept", value: "application/json" }])).headers.accept).toBe(
      "application/json",
    );
    expect(namesOf(await sentWith([{ name: "Accept", value: "" }]))).toEqual([
      "Connection",
      "Host",
      "User-Agent",
    ]);
  });

  it("a Host of one's own, the connection unaffected", async () => {
    expect((await sentWith([{ name: "Host", value: "example.com" }])).headers.host).toBe("example.com");
  });

  it.each([
    [200, "Success"],
    [399, "Warning"],
    [400, "Failure"],
    [500, "Failure"],
  ])("status %i is a %s", async (status, result) => {
    const port = await serve((_, response) => response.writeHead(status).end("body"));
    expect((await get(port)).result).toBe(result);
  });

  it("a slow server fails at its time-out", async () => {
    const port = await serve(() => {});
    const startMs = performance.now();
    expect(await get(port, {}, 100)).toMatchObject({ result: "Failure" });
    expect(performance.now() - startMs).toBeLessThan(1_000);
  });

  it("a handler that breaks the connection fails", async () => {
    const port = await serve((request) => request.socket.destroy());
    expect((await get(port)).result).toBe("Failure");
  });

  it.each([301, 302, 303, 307, 308])("a %i to the same host is followed", async (status) => {
    const port = await serve((request, response) => {
      if (request.url === "/new") response.end("new");
      else response.writeHead(status, { Location: "/new" }).end();
    });
    expect(await get(port)).toMatchObject({ result: "Success", message: "new" });
  });
});

describe("TestHTTPProbeChecker_NonLocalRedirects", () => {
  it("another port and scheme of the same host are followed, another host is not", async () => {
    const { cert, key } = await issueCertificate({ commonName: "other" });
    const other = await listen(
      createHttps({ cert, key }, (_, response) => response.writeHead(200).end("tls")),
    );
    const local = await serve((_, response) =>
      response.writeHead(302, { Location: `https://127.0.0.1:${other}/` }).end(),
    );
    expect(await get(local)).toMatchObject({ result: "Success", message: "tls" });
    const foreign = await serve((_, response) =>
      response.writeHead(307, { Location: "http://example.com/" }).end("see there"),
    );
    expect(await get(foreign)).toMatchObject({
      result: "Warning",
      message: "Probe terminated redirects, Response body: see there",
    });
  });
});

describe("TestHTTPProbeChecker_HostHeaderPreservedAfterRedirect", () => {
  it("a Host of one's own survives a relative redirect", async () => {
    const hosts: (string | undefined)[] = [];
    const port = await serve((request, response) => {
      hosts.push(request.headers.host);
      if (request.url === "/") response.writeHead(302, { Location: "/new" }).end();
      else response.end(request.headers.referer);
    });
    const { message } = await get(port, { httpHeaders: [{ name: "Host", value: "example.com" }] });
    expect(hosts).toEqual(["example.com", "example.com"]);
    expect(message).toBe(`http://127.0.0.1:${port}/`);
  });
});

describe("TestHTTPProbeChecker_PayloadTruncated", () => {
  it.each([
    ["TestHTTPProbeChecker_PayloadTruncated: longer than the limit", 10_241, 10_240],
    ["TestHTTPProbeChecker_PayloadNormal: of exactly the limit", 10_240, 10_240],
  ])("%s", async (_, sent, kept) => {
    const port = await serve((_, response) => response.end("x".repeat(sent)));
    const { result, message } = await get(port);
    expect({ result, length: message.length }).toEqual({ result: "Success", length: kept });
  });
});

describe("TestFormatURL", () => {
  it.each([
    ["http", "localhost", 93, "", "http://localhost:93", "/"],
    ["https", "localhost", 93, "/path", "https://localhost:93/path", "/path"],
    ["http", "localhost", 93, "?foo", "http://localhost:93?foo", "/?foo"],
    ["https", "localhost", 93, "/path?bar", "https://localhost:93/path?bar", "/path?bar"],
    ["http", "::1", 80, "/p", "http://[::1]:80/p", "/p"],
  ])("%s %s %i %s", (scheme, host, port, path, text, requestTarget) => {
    expect(probeUrl(scheme, host, port, path)).toMatchObject({ text, requestTarget });
  });
});

describe("Test_v1HeaderToHTTPHeader", () => {
  it("names are canonical, repeated ones in their order", async () => {
    let raw: string[] = [];
    const port = await serve((request, response) => {
      raw = request.rawHeaders;
      response.end();
    });
    const httpHeaders = [
      { name: "x-muffins-or-cupcakes", value: "muffins" },
      { name: "X-MUFFINS-OR-CUPCAKES", value: "cupcakes" },
    ];
    await get(port, { httpHeaders });
    expect(raw.join()).toContain("X-Muffins-Or-Cupcakes,muffins,X-Muffins-Or-Cupcakes,cupcakes");
  });
});

describe("HTTPS", () => {
  it("verifies no certificate, offers h2 by ALPN, and tells whose certificate it was", async () => {
    const { cert, key } = await issueCertificate({ commonName: "pod" }, undefined, {
      notBefore: new Date(0),
      notAfter: new Date(86_400_000),
    });
    const old = await listen(createHttps({ cert, key }, (_, response) => response.end("1")));
    expect(await get(old, { scheme: "HTTPS" })).toMatchObject({
      result: "Success",
      wire: { protocol: "http/1.1", certificate: expect.stringContaining("CN=pod") },
    });
    const both = createSecureServer({ cert, key, allowHTTP1: true }, (_, response) => response.end("2"));
    expect(await get(await listen(both), { scheme: "HTTPS" })).toMatchObject({
      result: "Success",
      message: "2",
      wire: { protocol: "h2" },
    });
  });
});

describe("h2c (KEP-5999)", () => {
  it("200 is success, 500 failure, and the server sees an ordinary GET", async () => {
    const seen: unknown[] = [];
    const server = createH2c((request, response) => {
      seen.push(request.headers);
      response.writeHead(request.url === "/500" ? 500 : 200).end(request.httpVersion);
    });
    const port = await listen(server);
    const httpHeaders = [
      { name: "Custom-Header", value: "my-value" },
      { name: "Host", value: "example.com" },
    ];
    expect(await get(port, { protocol: "HTTP2", path: "/readyz", httpHeaders })).toMatchObject({
      result: "Success",
      message: "2.0",
      wire: { protocol: "h2c", status: 200 },
    });
    expect(seen).toMatchObject([
      {
        ":method": "GET",
        ":path": "/readyz",
        ":scheme": "http",
        ":authority": "example.com",
        "user-agent": "kube-probe/1.36",
        accept: "*/*",
        "custom-header": "my-value",
      },
    ]);
    expect(Object.keys(seen[0] as object)).not.toContain("connection");
    expect(await get(port, { protocol: "HTTP2", path: "/500" })).toMatchObject({
      result: "Failure",
      message: "HTTP probe failed with statuscode: 500",
    });
  });

  it("the preface is the first thing on the wire, and HTTP/1.1 is never tried", async () => {
    const conversations: Buffer[] = [];
    const port = await listen(
      createTcp((socket) => {
        socket.once("data", (chunk) => {
          conversations.push(chunk);
          socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        });
        socket.on("error", () => {});
      }),
    );
    const { result, message } = await get(port, { protocol: "HTTP2" });
    expect(result).toBe("Failure");
    expect(message).toContain("note that the frame header looked like an HTTP/1.1 header");
    expect(conversations).toHaveLength(1);
    expect(conversations[0]?.toString("latin1")).toMatch(/^PRI \* HTTP\/2\.0\r\n\r\nSM\r\n\r\n/);
    expect(conversations[0]?.toString("latin1")).not.toMatch(/HTTP\/1\.1|Upgrade/i);
  });

  it.each([
    ["absent", {}, true],
    ["HTTP1", { protocol: "HTTP1" }, true],
    ["HTTP2 with the gate off", { protocol: "HTTP2" }, false],
  ])("protocol %s is HTTP/1.1", async (_, more, H2CContainerProbe) => {
    const port = await serve((request, response) => response.end(request.httpVersion));
    const gates = { H2CContainerProbe, GRPCContainerProbeTLS: true };
    expect(await probe({ httpGet: { port, ...more } }, { gates })).toMatchObject({ message: "1.1" });
  });

  it("the gate is asked at every run", async () => {
    const port = await listen(createH2c((_, response) => response.end("2")));
    const run = (H2CContainerProbe: boolean) =>
      probe(
        { httpGet: { port, protocol: "HTTP2" } },
        { gates: { H2CContainerProbe, GRPCContainerProbeTLS: true } },
      );
    expect((await run(true)).result).toBe("Success");
    expect((await run(false)).result).toBe("Failure");
    expect((await run(true)).result).toBe("Success");
  });
});
