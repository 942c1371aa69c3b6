import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  isSwitchedTo,
  requestUpgrade,
  type UpgradeRequest,
} from "../../../../packages/client/src/http/upgrade/upgrade-request.ts";
import {
  afterHead,
  answering,
  listenRaw,
  openSocketCount,
  type RawUpstream,
  until,
} from "../../../support/http/loopback.ts";

const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

let upstream: RawUpstream | undefined;

afterEach(async () => {
  await upstream?.close();
  upstream = undefined;
  await until(() => openSocketCount() === 0, "all sockets closed");
});

async function start(onConnection: (socket: Socket) => void): Promise<RawUpstream> {
  upstream = await listenRaw(onConnection);
  return upstream;
}

function requestTo({ port }: RawUpstream, overrides: Partial<UpgradeRequest> = {}): UpgradeRequest {
  return {
    endpoint: { host: "127.0.0.1", port },
    method: "POST",
    path: "/exec/default/web/main?command=sh&output=1",
    headers: [
      ["Connection", "Upgrade"],
      ["Upgrade", "SPDY/3.1"],
      ["X-Stream-Protocol-Version", "v4.channel.k8s.io"],
      ["x-stream-protocol-version", "v3.channel.k8s.io"],
    ],
    ...overrides,
  };
}

describe("requestUpgrade", () => {
  it("sends the head with order, case and repetitions kept, and nothing else before the 101", async () => {
    const node = await start(answering(SWITCHED));
    const response = await requestUpgrade(requestTo(node));
    if (response.kind !== "switched") throw new Error("not switched");
    expect(isSwitchedTo(response, "spdy/3.1")).toBe(true);
    expect(isSwitchedTo(response, "websocket")).toBe(false);
    expect(node.received()).toBe(
      `POST /exec/default/web/main?command=sh&output=1 HTTP/1.1\r\nHost: 127.0.0.1:${node.port}\r\n` +
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n" +
        "x-stream-protocol-version: v3.channel.k8s.io\r\nContent-Length: 0\r\n\r\n",
    );
    response.socket.destroy();
  });

  it("sends the caller's Host instead of the endpoint's", async () => {
    const node = await start(answering(SWITCHED));
    const response = await requestUpgrade(requestTo(node, { headers: [["hOST", "kubelet.example"]] }));
    expect(node.received()).toContain("\r\nhOST: kubelet.example\r\n");
    expect(node.received()).not.toContain("127.0.0.1");
    if (response.kind === "switched") response.socket.destroy();
  });

  it("keeps every byte behind the 101, those of later packets too", async () => {
    const node = await start(answering(`${SWITCHED}first`));
    const response = await requestUpgrade(requestTo(node));
    if (response.kind !== "switched") throw new Error("not switched");
    expect(response.head.toString()).toBe("first");
    node.sockets[0]?.write("second");
    const chunk = await new Promise<Buffer>((resolve) => response.socket.once("data", resolve).resume());
    expect(chunk.toString()).toBe("second");
    response.socket.destroy();
  });

  it("accepts a head split at every byte, with LF-only lines, behind 100 and 103", async () => {
    const text =
      "HTTP/1.1 100 Continue\n\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
      "HTTP/1.1 101 Switching\nConnection: Upgrade\r\nUPGRADE:SPDY/3.1\nX-Folded: a\n  b\n\r\nrest";
    const node = await start((socket) => {
      afterHead(socket, async () => {
        for (const byte of Buffer.from(text))
          await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
      });
    });
    const response = await requestUpgrade(requestTo(node));
    if (response.kind !== "switched") throw new Error("not switched");
    expect(response.rawHeaders).toEqual([
      ["Connection", "Upgrade"],
      ["UPGRADE", "SPDY/3.1"],
      ["X-Folded", "a b"],
    ]);
    expect(response.statusMessage).toBe("Switching");
    response.socket.destroy();
  });

  it("gives a refusal with its body, de-chunked", async () => {
    const node = await start(
      answering(
        "HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n",
        "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n",
      ),
    );
    const response = await requestUpgrade(requestTo(node));
    if (response.kind !== "refused") throw new Error("not refused");
    expect(response.status).toBe(403);
    expect(Buffer.concat(await response.body.toArray()).toString()).toBe("abcde");
    await until(() => node.sockets[0]?.readableEnded === true, "upstream connection ended by us");
  });

  it("never ends a truncated refusal body cleanly", async () => {
    const node = await start((socket) =>
      afterHead(socket, () => socket.end("HTTP/1.1 500 Oops\r\nContent-Length: 10\r\n\r\nabc")),
    );
    const response = await requestUpgrade(requestTo(node));
    if (response.kind !== "refused") throw new Error("not refused");
    await expect(response.body.toArray()).rejects.toMatchObject({ code: "truncated-body" });
  });

  const badAnswers: readonly (readonly [name: string, answer: string, code: string, message: string])[] = [
    [
      "200",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
      "invalid-status",
      "invalid upgrade response: status code 200",
    ],
    [
      "302",
      "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n",
      "invalid-status",
      "invalid upgrade response: status code 302",
    ],
    ["another 1xx", "HTTP/1.1 150 Hm\r\n\r\n", "invalid-status", "invalid upgrade response: status code 150"],
    ["garbage", "garbage\r\n\r\n", "malformed-response", 'malformed HTTP response "garbage"'],
    ["a garbage version", "SSH-2.0 200 y\r\n\r\n", "malformed-response", 'malformed HTTP version "SSH-2.0"'],
    ["HTTP/2.0", "HTTP/2.0 101 y\r\n\r\n", "malformed-response", 'malformed HTTP response "HTTP/2.0 101 y"'],
    ["a garbage status", "HTTP/1.1 abc x\r\n\r\n", "malformed-response", 'malformed HTTP status code "abc"'],
    ["an empty head", "\r\n", "malformed-response", 'malformed HTTP response ""'],
    [
      "a space before the colon",
      "HTTP/1.1 101 X\r\nUpgrade : x\r\n\r\n",
      "malformed-response",
      'malformed MIME header line: "Upgrade "',
    ],
    [
      "a bare CR in a value",
      "HTTP/1.1 101 X\r\nA: b\rC: d\r\n\r\n",
      "malformed-response",
      'malformed MIME header line: "A"',
    ],
    [
      "two lengths",
      "HTTP/1.1 403 X\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "malformed-response",
      'http: message cannot contain multiple Content-Length headers; got ["1" "2"]',
    ],
    [
      "a length and chunks",
      "HTTP/1.1 403 X\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      "malformed-response",
      "both Content-Length and Transfer-Encoding",
    ],
    [
      "an oversized head",
      `HTTP/1.1 101 X\r\nA: ${"b".repeat(1024 * 1024)}\r\n\r\n`,
      "response-head-too-large",
      "header size limit exceeded",
    ],
    [
      "endless interim responses",
      "HTTP/1.1 103 X\r\n\r\n".repeat(60_000),
      "response-head-too-large",
      "header size limit exceeded",
    ],
  ];
  for (const [name, answer, code, message] of badAnswers) {
    it(`refuses an upstream that answers ${name} and closes it`, async () => {
      const node = await start(answering(answer));
      await expect(requestUpgrade(requestTo(node))).rejects.toMatchObject({ code, message });
      await until(
        () => node.sockets[0]?.destroyed === true || node.sockets[0]?.readableEnded === true,
        "closed",
      );
    });
  }

  it("tells an upstream that closes at once from one that closes in its head", async () => {
    const silent = await start((socket) => afterHead(socket, () => socket.end()));
    await expect(requestUpgrade(requestTo(silent))).rejects.toMatchObject({
      code: "closed-before-response",
      message: "EOF",
    });
    await silent.close();
    const half = await start((socket) => afterHead(socket, () => socket.end("HTTP/1.1 101 Swi")));
    await expect(requestUpgrade(requestTo(half))).rejects.toMatchObject({
      code: "closed-before-response",
      message: "unexpected EOF",
    });
  });

  for (const [name, onConnection] of [
    ["a silent upstream", () => {}],
    [
      "an upstream that trickles",
      (socket: Socket) => {
        const timer = setInterval(() => socket.write("H"), 20);
        socket.on("close", () => clearInterval(timer));
      },
    ],
  ] as const) {
    it(`gives up on ${name} after responseHeaderTimeoutMs`, async () => {
      const node = await start(onConnection);
      await expect(requestUpgrade(requestTo(node, { responseHeaderTimeoutMs: 100 }))).rejects.toMatchObject({
        code: "response-timeout",
      });
    });
  }

  it("destroys the upstream socket at once when aborted while it waits", async () => {
    const node = await start(() => {});
    const abort = new AbortController();
    const pending = requestUpgrade(requestTo(node, { signal: abort.signal }));
    pending.catch(() => {});
    await until(() => node.received().includes("\r\n\r\n"), "request received");
    abort.abort();
    await expect(pending).rejects.toMatchObject({ code: "aborted" });
  });

  it("leaves nothing when aborted while it dials, or before", async () => {
    const node = await start(() => {});
    const abort = new AbortController();
    const pending = requestUpgrade(requestTo(node, { signal: abort.signal }));
    abort.abort();
    await expect(pending).rejects.toMatchObject({ code: "aborted" });
    await expect(requestUpgrade(requestTo(node, { signal: abort.signal }))).rejects.toMatchObject({
      code: "aborted",
    });
  });

  for (const [name, overrides] of [
    ["a line end in a value", { headers: [["A", "b\r\nC: d"]] }],
    ["a line end in the path", { path: "/x\r\nA: b" }],
    ["a space in the path", { path: "/x HTTP/1.1" }],
    ["a body by length", { headers: [["Content-Length", "5"]] }],
    ["a chunked body", { headers: [["transfer-encoding", "chunked"]] }],
  ] as const) {
    it(`refuses ${name} before dialling`, async () => {
      const node = await start(() => {});
      await expect(requestUpgrade(requestTo(node, overrides))).rejects.toMatchObject({
        code: "invalid-request",
      });
      expect(node.sockets).toHaveLength(0);
    });
  }
});
