import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { HttpUpstream } from "../../../../src/http/upstream/http-upstream.ts";
import { postJson } from "../../../../src/http/upstream/post-json.ts";

let server: Server;
let upstream: HttpUpstream;

async function start(listener: RequestListener): Promise<HttpUpstream> {
  server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  upstream = new HttpUpstream({ endpoint: { host: "127.0.0.1", port } });
  return upstream;
}

afterEach(async () => {
  upstream.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const post = { path: "/review?a=b", body: { question: "é" }, bearerToken: "s3cret-token", timeoutMs: 5_000 };

describe("postJson", () => {
  it("sends JSON with the token and gives status and JSON back", async () => {
    let seen: unknown;
    const peer = await start(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { authorization, "content-type": type, host } = request.headers;
      seen = [request.method, request.url, authorization, type, host, Buffer.concat(chunks).toString()];
      response.writeHead(201).end('{"answer":true}');
    });
    expect(await postJson(peer, post)).toEqual({ status: 201, body: { answer: true } });
    const host = `127.0.0.1:${peer.endpoint.port}`;
    expect(seen).toEqual([
      "POST",
      "/review?a=b",
      "Bearer s3cret-token",
      "application/json",
      host,
      '{"question":"é"}',
    ]);
  });

  it("a body that is no JSON is undefined; a redirect is an answer like any other", async () => {
    const peer = await start((_, response) => response.writeHead(302, { Location: "/x" }).end("<html>"));
    expect(await postJson(peer, post)).toEqual({ status: 302, body: undefined });
  });

  it.each([
    ["silence", (() => {}) as RequestListener, /no answer within 50 ms/],
    ["half an answer", ((_, response) => response.write("{")) as RequestListener, /./],
    ["a reset", ((request) => request.socket.destroy()) as RequestListener, /./],
    [
      "an endless answer",
      ((_, response) => {
        const more = () => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
        };
        response.on("drain", more).on("error", () => {});
        more();
      }) as RequestListener,
      /has more than 1048576 bytes|aborted|no answer/,
    ],
  ])("rejects: %s, and tells no token", async (_, listener, message) => {
    const peer = await start(listener);
    const failure = await postJson(peer, { ...post, timeoutMs: 50 }).catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(String(failure)).toMatch(message);
    expect(JSON.stringify(failure) + String((failure as Error).stack)).not.toContain("s3cret-token");
  });

  it("asks again when an idle connection was closed under it", async () => {
    const sockets = new Set<Socket>();
    const peer = await start((request, response) => {
      // The first connection answers once and is reset by whatever comes next.
      if (sockets.has(request.socket)) request.socket.resetAndDestroy();
      else response.end("{}");
      sockets.add(request.socket);
    });
    await postJson(peer, post);
    expect(await postJson(peer, post)).toEqual({ status: 200, body: {} });
    expect(sockets.size).toBe(2);
  });
});
