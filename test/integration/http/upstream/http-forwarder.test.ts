import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import type { ForwardOptions } from "../../../../src/http/upstream/forward-options.ts";
import {
  afterHead,
  answering,
  closeServer,
  listen,
  openClient,
  until,
} from "../../../support/http/loopback.ts";
import {
  cleanups,
  closePairs,
  exchange,
  type Forwarder,
  startForwarder,
  startRawPair,
} from "../http-pair.ts";

afterEach(closePairs);

async function httpPair(
  onRequest: (request: IncomingMessage, response: ServerResponse) => void,
  options: Partial<ForwardOptions> = {},
): Promise<{ server: Server; sockets: Set<Socket>; forwarder: Forwarder }> {
  const sockets = new Set<Socket>();
  const server = createServer(onRequest);
  server.on("connection", (socket) => sockets.add(socket));
  const forwarder = await startForwarder(await listen(server), options);
  cleanups.push(forwarder.close, () => closeServer(server, sockets));
  return { server, sockets, forwarder };
}

const GET = "GET /a?b=c HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

describe("forwardExchange: requests", () => {
  it("sends lines with case and repetitions kept, without those of the hop (TestServeHTTP)", async () => {
    const { node, forwarder } = await startRawPair(
      answering("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"),
    );
    await exchange(
      forwarder.port,
      "GET /a%2Fb/?x=1&x=2 HTTP/1.1\r\nhOST: example\r\nX-Twice: 1\r\nx-twice: 2\r\nX-Secret: s\r\nKeep-Alive: 5\r\n" +
        "TE: trailers, gzip\r\nProxy-Authorization: p\r\nConnection: close , x-SECRET,host\r\nConnection: X-Other\r\nX-Other: o\r\n\r\n",
    );
    expect(node.received()).toBe(
      "GET /a%2Fb/?x=1&x=2 HTTP/1.1\r\nhOST: example\r\nX-Twice: 1\r\nx-twice: 2\r\nTE: trailers\r\nConnection: keep-alive\r\n\r\n",
    );
  });

  it("adds what the caller adds after the client's Connection has been obeyed", async () => {
    const { node, forwarder } = await startRawPair(answering("HTTP/1.1 204 No Content\r\n\r\n"), {
      editHeaders: (edit) => {
        edit.add("X-Remote-User", "alice");
        return edit;
      },
    });
    await exchange(
      forwarder.port,
      "GET / HTTP/1.1\r\nHost: h\r\nX-Remote-User: root\r\nConnection: close, X-Remote-User\r\n\r\n",
    );
    expect(node.received().match(/X-Remote-User: .*/gi)).toEqual(["X-Remote-User: alice"]);
  });

  for (const [framing, head, body] of [
    ["a length", "Content-Length: 5\r\n", "hello"],
    [
      "chunks and trailers",
      "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n",
      "5\r\nhello\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\n\r\n",
    ],
    ["no body on a POST", "", ""],
  ] as const) {
    it(`keeps ${framing} (TestProxyRequestContentLengthAndTransferEncoding)`, async () => {
      const { node, forwarder } = await startRawPair((socket) => {
        let received = "";
        socket.on("data", (chunk) => {
          received += chunk;
          if (received.endsWith(body) && received.includes("\r\n\r\n")) {
            socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
          }
        });
      });
      const answer = await exchange(
        forwarder.port,
        `POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nConnection: close\r\n${head}\r\n${body}`,
      );
      expect(answer.text).toMatch(/ok$/);
      expect(node.received()).toContain("Content-Encoding: gzip\r\n");
      expect(node.received().endsWith(`\r\n\r\n${body}`)).toBe(true);
      expect(node.received()).toContain(head === "" ? "Content-Length: 0\r\n" : head.split("\r\n")[0]);
    });
  }

  it("gathers the small parts of a body that come in one turn, behind its head", async () => {
    const { node, forwarder } = await startRawPair((socket) => {
      let received = "";
      socket.on("data", (chunk) => {
        received += chunk;
        if (received.endsWith("0\r\n\r\n")) socket.write("HTTP/1.1 204 No Content\r\n\r\n");
      });
    });
    await exchange(
      forwarder.port,
      `POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\na\r\n".repeat(2_000)}0\r\n\r\n`,
    );
    const [, ...body] = node.received().split("\r\n\r\n");
    const chunks = body.join("\r\n\r\n").split("\r\n");
    expect(chunks.filter((line) => /^a+$/.test(line)).join("")).toHaveLength(2_000);
    expect(chunks.length).toBeLessThan(100);
  });

  it("leaves 100-continue to the upstream", async () => {
    const { node, forwarder } = await startRawPair((socket) => {
      afterHead(socket, () => {
        socket.write("HTTP/1.1 100 Continue\r\n\r\n");
        socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
      });
    });
    const client = await openClient(forwarder.port);
    client.write("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    const first = await new Promise<Buffer>((resolve) => client.once("data", resolve));
    expect(first.toString()).toBe("HTTP/1.1 100 Continue\r\n\r\n");
    expect(node.received()).toContain("Expect: 100-continue");
    client.write("hi");
    const second = await new Promise<Buffer>((resolve) => client.once("data", resolve));
    expect(second.toString()).toMatch(/^HTTP\/1.1 200 OK/);
    client.destroy();
  });

  it("gives a refusal of an expectation to the client and closes, since the body never comes", async () => {
    const { forwarder } = await startRawPair(
      answering("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"),
    );
    const answer = await exchange(
      forwarder.port,
      "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    );
    expect(answer.text).toMatch(/^HTTP\/1.1 417 Expectation Failed\r\n[\s\S]*Connection: close\r\n/);
    expect(answer.text).not.toContain("100 Continue");
  });
});

describe("forwardExchange: responses", () => {
  it("keeps repeated lines, case, reason and trailers, without the lines of the hop", async () => {
    const { forwarder } = await startRawPair(
      answering(
        "HTTP/1.1 299 Fine By Me\r\nSet-Cookie: a\r\nset-cookie: b\r\nX-Hop: 1\r\nKeep-Alive: 3\r\nConnection: x-hop\r\n" +
          "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 9\r\nSet-Cookie: c\r\n\r\n",
      ),
    );
    const { text } = await exchange(forwarder.port, GET);
    expect(text).toBe(
      "HTTP/1.1 299 Fine By Me\r\nSet-Cookie: a\r\nset-cookie: b\r\nTrailer: X-Sum\r\nConnection: close\r\n" +
        "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 9\r\n\r\n",
    );
  });

  it("gives one length where the upstream has said the same one twice", async () => {
    const { forwarder } = await startRawPair(
      answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\ncontent-length: 2\r\n\r\nok"),
    );
    expect((await exchange(forwarder.port, GET)).text).toBe(
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\nConnection: close\r\n\r\nok",
    );
  });

  it("passes 103 Early Hints, and not to HTTP/1.0 clients", async () => {
    const { forwarder } = await startRawPair(
      answering(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nlink: </b>\r\n\r\nHTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
      ),
    );
    const { text } = await exchange(forwarder.port, GET);
    expect(text).toMatch(
      /^HTTP\/1.1 103 Early Hints\r\nLink: <\/a>; rel=preload\r\nlink: <\/b>\r\n\r\nHTTP\/1.1 200 OK/,
    );
    const old = await exchange(forwarder.port, "GET / HTTP/1.0\r\n\r\n");
    expect(old.text).toMatch(/^HTTP\/1.1 200 OK/);
  });

  for (const [name, request, head] of [
    [
      "HEAD",
      "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
    ],
    ["304", GET, 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'],
    ["204", GET, "HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"],
  ] as const) {
    it(`gives the head of a ${name} answer and no body`, async () => {
      const { forwarder } = await startRawPair(answering(head));
      const { text } = await exchange(forwarder.port, request);
      expect(text).toBe(head.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
    });
  }

  it.each([
    ["a HEAD answer", "HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", ""],
    ["an HTTP/1.0 client", "GET / HTTP/1.0\r\n\r\n", "abc"],
    [
      "a GET that announces trailers without chunks",
      `${GET.slice(0, -2)}Trailer: X\r\n\r\n`,
      "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
    ],
  ])("announces no trailers where none can travel: %s", async (_name, request, body) => {
    const { forwarder } = await startRawPair(
      answering(
        "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n",
        request.startsWith("HEAD") ? "" : "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",
      ),
    );
    const { text } = await exchange(forwarder.port, request);
    expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(text.slice(text.indexOf("\r\n\r\n") + 4)).toBe(body);
  });

  it("flushes head and parts of a watch as they come (TestFlushIntervalHeaders)", async () => {
    let write: (part: string) => void = () => {};
    const { forwarder } = await httpPair((_request, response) => {
      response.flushHeaders();
      write = (part) => response.write(part);
    });
    const client = await openClient(forwarder.port);
    let received = "";
    client.on("data", (chunk) => {
      received += chunk;
    });
    client.write("GET /watch HTTP/1.1\r\nHost: h\r\n\r\n");
    await until(() => received.includes("\r\n\r\n"), "head without body");
    write("event 1\n");
    await until(() => received.includes("event 1\n"), "first event");
    write("event 2\n");
    await until(() => received.includes("event 2\n"), "second event");
    client.destroy();
  });

  it.each([10, 100_000])("answers pipelined requests in their order, with %i bytes", async (bytes) => {
    let answerFirst = (): void => {};
    const answered: string[] = [];
    const { forwarder } = await httpPair((request, response) => {
      const answer = (): void => {
        answered.push(request.url ?? "");
        response.end((request.url ?? "").repeat(bytes / 2));
      };
      if (request.url === "/1") answerFirst = answer;
      else answer();
    });
    const client = await openClient(forwarder.port);
    let received = "";
    client.on("data", (chunk) => {
      received += chunk;
    });
    client.write("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n");
    await until(() => answered.length === 1, "the second is answered");
    answerFirst();
    await until(() => received.endsWith("/2".repeat(bytes / 2)), "both answers");
    expect(received.match(/HTTP\/1.1 200 OK/g)).toHaveLength(2);
    expect(received.indexOf("/1")).toBeGreaterThan(0);
    expect(received.lastIndexOf("/1")).toBeLessThan(received.indexOf("/2"));
    client.destroy();
  });

  it("replaces a redirect only when told to (TestRejectForwardingRedirectsOption)", async () => {
    const redirect = answering("HTTP/1.1 302 Found\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n");
    const open = await startRawPair(redirect);
    expect((await exchange(open.forwarder.port, GET)).text).toContain("Location: http://evil/");
    const closed = await startRawPair(redirect, { rejectRedirects: true });
    expect((await exchange(closed.forwarder.port, GET)).text).toMatch(
      /redirect-refused: the backend attempted to redirect this request, which is not permitted$/,
    );
  });

  it("reuses upstream connections, and repeats a GET on one that was stale", async () => {
    let served = 0;
    const { node, forwarder } = await startRawPair((socket) => {
      socket.on("data", () => {
        served++;
        if (served === 3) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
      });
    });
    for (let count = 0; count < 3; count++) {
      expect((await exchange(forwarder.port, GET)).text).toMatch(/^HTTP\/1.1 200 OK/);
      await until(() => forwarder.upstream.pool.idleConnections === 1, "connection idle again");
    }
    expect(node.sockets).toHaveLength(2);
    expect(served).toBe(4);
  });

  it("never repeats a POST", async () => {
    let served = 0;
    const { forwarder } = await startRawPair((socket) => {
      socket.on("data", () => {
        if (++served === 2) socket.destroy();
        else socket.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      });
    });
    const post = GET.replace("GET", "POST");
    await exchange(forwarder.port, post);
    await until(() => forwarder.upstream.pool.idleConnections === 1, "connection idle");
    expect((await exchange(forwarder.port, post)).text).toMatch(/closed-before-response: /);
    expect(served).toBe(2);
  });
});
