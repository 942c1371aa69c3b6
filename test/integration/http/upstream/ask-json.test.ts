import { EventEmitter, once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { askJson, askJsonOnce } from "../../../../packages/client/src/http/upstream/ask-json.ts";
import { HttpUpstream } from "../../../../packages/client/src/http/upstream/http-upstream.ts";
import { dial } from "../../../../packages/client/src/net/dial.ts";

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

function connectionsOf(of: Server): Promise<number> {
  return new Promise((resolve, reject) =>
    of.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );
}

const post: Parameters<typeof askJson>[1] = {
  method: "POST",
  path: "/review?a=b",
  headers: [["Authorization", "Bearer s3cret-token"]],
  body: { contentType: "application/json", bytes: Buffer.from('{"question":"é"}') },
  isRepeatable: true,
  timeoutMs: 5_000,
};

describe("askJson", () => {
  it("sends JSON with the token and gives status and JSON back", async () => {
    let seen: unknown;
    const peer = await start(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const { authorization, "content-type": type, host } = request.headers;
      seen = [request.method, request.url, authorization, type, host, Buffer.concat(chunks).toString()];
      response.writeHead(201).end('{"answer":true}');
    });
    expect(await askJson(peer, post)).toEqual({ status: 201, body: { answer: true } });
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
    expect(await askJson(peer, post)).toEqual({ status: 302, body: undefined });
  });

  it.each([
    ["silence", (() => {}) as RequestListener, /no answer from 127\.0\.0\.1:\d+ within 50 ms$/],
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
    const failure = await askJson(peer, { ...post, timeoutMs: 50 }).catch((error: Error) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(String(failure)).toMatch(message);
    expect(JSON.stringify(failure) + String((failure as Error).stack)).not.toContain("s3cret-token");
  });

  it.each([
    ["of the caller", () => AbortSignal.abort(), "context canceled"],
    ["of a time", () => AbortSignal.timeout(20), "context deadline exceeded"],
  ])("ends at the signal %s, with the address", async (_, signalOf, text) => {
    const peer = await start(() => {});
    const asked = askJson(peer, { ...post, signal: signalOf() });
    await expect(asked).rejects.toMatchObject({
      code: "aborted",
      message: `127.0.0.1:${peer.endpoint.port}: ${text}`,
    });
  });

  it.each([
    ["before the answer", ((request) => request.socket.destroy()) as RequestListener, "EOF"],
    [
      "within the answer",
      ((request, response) => response.write("{", () => request.socket.destroy())) as RequestListener,
      "unexpected EOF",
    ],
  ])("names the address of a server that breaks off %s", async (_, listener, text) => {
    const peer = await start(listener);
    await expect(askJson(peer, post)).rejects.toThrow(`127.0.0.1:${peer.endpoint.port}: ${text}`);
  });

  it.each([
    [
      "a switch of protocols",
      "101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade",
      "invalid-status",
    ],
    ["JSON whose end never comes", "200 OK\r\n\r\n{}", "response-timeout"],
  ])("rejects %s in time", async (_, answer, code) => {
    const peer = await start(({ socket }) => void socket.write(`HTTP/1.1 ${answer}\r\n\r\n`));
    const within = AbortSignal.timeout(5_000);
    const asked = askJson(peer, { ...post, timeoutMs: 200 });
    await expect(Promise.race([asked, once(within, "abort")])).rejects.toMatchObject({ code });
    await vi.waitFor(async () => expect(await connectionsOf(server)).toBe(0));
  });

  it.each([
    ["its time is over", 50, undefined, "response-timeout"],
    ["the caller aborts", 60_000, () => AbortSignal.timeout(50), "aborted"],
  ])("ends during the dial when %s, and closes what is dialled later", async (_, timeoutMs, signalOf, code) => {
    const { endpoint } = await start((_request, response) => response.end("{}"));
    const dialling = new EventEmitter();
    upstream = new HttpUpstream({
      endpoint,
      connect: async (to, options) => {
        await once(dialling, "goes on");
        return dial(to, options);
      },
    });
    const asked = askJson(upstream, { ...post, timeoutMs, signal: signalOf?.() });
    const within = once(AbortSignal.timeout(5_000), "abort");
    await expect(Promise.race([asked, within])).rejects.toMatchObject({ code });
    upstream.close();
    const accepted = once(server, "connection");
    dialling.emit("goes on");
    await accepted;
    await vi.waitFor(async () => expect(await connectionsOf(server)).toBe(0));
  });

  it("names the address of a port that is closed", async () => {
    const { endpoint } = await start(() => {});
    await new Promise((resolve) => server.close(resolve));
    const address = `127.0.0.1:${endpoint.port}`;
    await expect(askJsonOnce(endpoint, post)).rejects.toThrow(
      `dial tcp ${address}: connect: connection refused`,
    );
  });

  it("lets the caller refuse an answer by its head", async () => {
    const peer = await start((_, response) => response.writeHead(403).end("{}"));
    const requireGood = async ({ statusCode }: IncomingMessage) => {
      throw new Error(`refused by ${statusCode}`);
    };
    await expect(askJson(peer, { ...post, requireGood })).rejects.toThrow(/^refused by 403$/);
  });

  it("asks again when an idle connection was closed under it", async () => {
    const sockets = new Set<Socket>();
    const peer = await start((request, response) => {
      // The first connection answers once and is reset by whatever comes next.
      if (sockets.has(request.socket)) request.socket.resetAndDestroy();
      else response.end("{}");
      sockets.add(request.socket);
    });
    await askJson(peer, post);
    expect(await askJson(peer, post)).toEqual({ status: 200, body: {} });
    expect(sockets.size).toBe(2);
  });
});
