import { writeFileSync } from "node:fs";
import { constants } from "node:http2";
import path from "node:path";
import { connect as connectTls } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { AccessGateway, EXEC_PATH } from "../../support/access-gateway.ts";
import { ask, connectHttp2 } from "../../support/http2-client.ts";
import { frameOf, headerBlockOf } from "../../support/http2-frames.ts";
import { rawExchange } from "../../support/raw-tls.ts";

const TOKEN = "hostile-token";
const SUBPROTOCOL = `base64url.bearer.authorization.k8s.io.${Buffer.from(TOKEN).toString("base64url")}`;
const SPDY = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];
const WEBSOCKET = [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

const GOAWAY_HEADER = frameOf(7, 0, 0, new Uint8Array(8)).subarray(0, 9);

describe("hostile requests", () => {
  let gateway: AccessGateway;
  beforeAll(async () => {
    gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), `${TOKEN},ann,1\n`);
      return {
        authentication: { tokenAuthFile: "tokens.csv" },
        limits: { maxRequestHeaderBytes: 64 * 1024 },
      };
    });
  });
  afterAll(() => gateway.stop());
  beforeEach(() => {
    gateway.kubelet.sessions.length = 0;
  });

  const send = (lines: readonly string[], method = "POST", target = EXEC_PATH) => {
    const head = [`${method} ${target} HTTP/1.1`, `Host: ${gateway.authority}`, ...lines].join("\r\n");
    return rawExchange(gateway.authority, gateway.trusted, `${head}\r\n\r\n`);
  };
  const bearer = `Authorization: Bearer ${TOKEN}`;
  /** What the node was sent by name, all in lower case. */
  const sentToNode = () => {
    const raw = gateway.kubelet.sessions[0]?.request.rawHeaders ?? [];
    return raw.map((text) => text.toLowerCase());
  };

  it.each([
    ["h2c", ["Connection: Upgrade", "Upgrade: h2c"]],
    ["a list", ["Connection: Upgrade", "Upgrade: h2c, SPDY/3.1"]],
    ["SPDY/2", ["Connection: Upgrade", "Upgrade: SPDY/2"]],
    ["something unknown", ["Connection: Upgrade", "Upgrade: my-tunnel"]],
  ])("T3: an upgrade to %s is refused, and no node hears of it", async (_, lines) => {
    expect((await send([bearer, ...lines])).status).toBe(400);
    expect(gateway.kubelet.requests).toHaveLength(0);
    expect(gateway.kubelet.sessions).toHaveLength(0);
  });

  it("T4: Connection can not name away what identifies or bounds a request", async () => {
    const nominating = "Connection: Upgrade, X-Forwarded-For,\tAuthorization , x-stream-protocol-version";
    const { status } = await send([bearer, nominating, ...SPDY.slice(1), "X-Forwarded-For: 6.6.6.6"]);
    expect(status).toBe(101);
    const sent = sentToNode();
    expect(sent[sent.indexOf("x-forwarded-for") + 1]).toBe("127.0.0.1");
    expect(sent[sent.indexOf("connection") + 1]).toBe("upgrade");
    expect(sent.filter((text) => text === "x-forwarded-for")).toHaveLength(1);
  });

  it.each([
    "Impersonate-User",
    "IMPERSONATE-uid",
    "impersonate-Group",
    "Impersonate-Extra-Scopes",
  ])("T5: %s never reaches a node", async (name) => {
    const user = name === "Impersonate-User" ? [] : ["Impersonate-User: bob"];
    expect((await send([bearer, ...user, `${name}: root`, ...SPDY])).status).toBe(101);
    expect(sentToNode().filter((text) => text.includes("impersonate") || text.includes("root"))).toEqual([]);
  });

  it("T5: nor do a front proxy's words, when nobody trusts one", async () => {
    const claims = [
      "X-Remote-User: root",
      "x-remote-GROUP: system:masters",
      "X-Remote-Extra-A: b",
      "Cookie: a=b",
    ];
    expect((await send([bearer, ...claims, ...SPDY])).status).toBe(101);
    expect(sentToNode().filter((text) => /remote|masters|cookie|bearer/.test(text))).toEqual([]);
    expect((await send([...claims, ...SPDY])).status).toBe(401);
  });

  it("T9: a token among the subprotocols is taken, and neither sent on, nor chosen, nor logged", async () => {
    const offer = `Sec-WebSocket-Protocol: ${SUBPROTOCOL}, v4.channel.k8s.io`;
    const { head, status } = await send([...WEBSOCKET, offer], "GET");
    expect(status).not.toBe(401);
    expect(head).not.toContain("base64url");
    const raw = gateway.kubelet.requests.concat(gateway.kubelet.sessions.map(({ request }) => request));
    expect(raw.flatMap(({ rawHeaders }) => rawHeaders).join("\n")).not.toContain("base64url");
    expect(gateway.logLines.join("")).not.toContain(SUBPROTOCOL);
  });

  it("T9: a wrong one is answered as kube-apiserver answers", async () => {
    const answer = await gateway.exec({}, [
      "v5.channel.k8s.io",
      "base64url.bearer.authorization.k8s.io.Zm9v",
    ]);
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toMatchObject({
      kind: "Status",
      reason: "Unauthorized",
      message: "Unauthorized",
    });
  });

  it("T12: no extension is negotiated, whatever is offered", async () => {
    const offered = [
      "Sec-WebSocket-Protocol: v5.channel.k8s.io",
      "Sec-WebSocket-Extensions: permessage-deflate",
    ];
    const { head, status } = await send([bearer, ...WEBSOCKET, ...offered], "GET");
    expect(status).toBe(101);
    expect(head.toLowerCase()).not.toContain("extensions");
    expect(sentToNode().join()).not.toContain("permessage");
  });

  it.each([
    ["a length and a coding", ["Content-Length: 5", "Transfer-Encoding: chunked"]],
    ["a length", ["Content-Length: 5"]],
    ["two lengths", ["Content-Length: 0", "Content-Length: 5"]],
  ])("T19: an upgrade with %s is refused", async (_, lines) => {
    expect((await send([bearer, ...SPDY, ...lines])).status).toBe(400);
    expect(gateway.kubelet.sessions).toHaveLength(0);
  });

  /** A client of bare frames: node:http2's own, from Node 22 on, does not see that a server has closed the connection under a flood. */
  const connectBare = async () => {
    const [host = "", port] = gateway.authority.split(":");
    const socket = connectTls({ host, port: Number(port), ca: gateway.trusted, ALPNProtocols: ["h2"] });
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    await new Promise((resolve) => socket.once("secureConnect", resolve));
    // Node 20 only says so, and leaves the closing to the peer.
    socket.on("data", (data: Buffer) => {
      if (data.includes(GOAWAY_HEADER)) socket.destroy();
    });
    socket.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), frameOf(4, 0, 0)]));
    return { socket, closed };
  };

  // Thousands of requests: seconds of CPU, which a busy machine gives late.
  it("T20: a flood of streams that are reset at once ends its connection, and reaches no node", {
    timeout: 90_000,
  }, async () => {
    const { socket, closed } = await connectBare();
    const headers = headerBlockOf({
      ":method": "CONNECT",
      ":protocol": "websocket",
      ":scheme": "https",
      ":path": EXEC_PATH,
      ":authority": gateway.authority,
      authorization: `Bearer ${TOKEN}`,
      "sec-websocket-version": "13",
      "sec-websocket-protocol": "v5.channel.k8s.io",
    });
    const cancel = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);
    for (let sent = 0; sent < 20_000 && !socket.destroyed; sent += 100) {
      const streams = Array.from({ length: 100 }, (_, index) => {
        const id = 2 * (sent + index) + 1;
        return Buffer.concat([frameOf(1, 4, id, headers), frameOf(3, 0, id, cancel)]);
      });
      socket.write(Buffer.concat(streams));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await closed;
    expect(gateway.kubelet.sessions).toHaveLength(0);
    const other = await connectHttp2(`https://${gateway.authority}`);
    expect((await ask(other, "/version")).status).toBe(200);
    other.destroy();
  });

  it("T20: a flood of CONTINUATION frames ends its connection, and no other", async () => {
    const other = await connectHttp2(`https://${gateway.authority}`);
    const { socket, closed } = await connectBare();
    socket.write(frameOf(1, 0, 1));
    const continuations = Buffer.concat(Array.from({ length: 100 }, () => frameOf(9, 0, 1)));
    for (let sent = 0; sent < 200 && !socket.destroyed; sent++) {
      socket.write(continuations);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await closed;
    expect((await ask(other, "/version")).status).toBe(200);
    other.destroy();
  });

  it("T20: headers past the bound cost the stream", async () => {
    const client = await connectHttp2(`https://${gateway.authority}`, {
      maxSendHeaderBlockLength: 1024 * 1024,
    });
    const many = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`x-${index}`, "v"]));
    const long = Object.fromEntries(
      Array.from({ length: 100 }, (_, index) => [`x-${index}`, "v".repeat(1_000)]),
    );
    expect(await ask(client, "/version", many)).toMatchObject({ status: 431 });
    expect(await ask(client, "/version", long)).toMatchObject({
      status: 0,
      rstCode: constants.NGHTTP2_ENHANCE_YOUR_CALM,
    });
    expect((await ask(client, "/version")).status).toBe(200);
    client.destroy();
  });
});

describe("T23: who is known may nothing yet", () => {
  it.each(["exec", "attach", "portforward"])("%s, by whatever protocol", async (subresource) => {
    const gateway = await AccessGateway.start((folder) => {
      writeFileSync(path.join(folder, "tokens.csv"), `${TOKEN},ann,1\n`);
      return { authentication: { tokenAuthFile: "tokens.csv" }, authorization: { mode: ["RBAC"] } };
    });
    try {
      const target = `/api/v1/namespaces/default/pods/web/${subresource}?stdout=true&command=id`;
      for (const [method, upgrade] of [
        ["POST", SPDY],
        ["GET", SPDY],
        ["GET", [...WEBSOCKET, "Sec-WebSocket-Protocol: v5.channel.k8s.io"]],
      ] as const) {
        const lines = [
          `${method} ${target} HTTP/1.1`,
          "Host: x",
          `Authorization: Bearer ${TOKEN}`,
          ...upgrade,
        ];
        const { status } = await rawExchange(
          gateway.authority,
          gateway.trusted,
          `${lines.join("\r\n")}\r\n\r\n`,
        );
        expect(status).toBe(403);
      }
      expect(gateway.kubelet.sessions).toHaveLength(0);
      expect(gateway.kubelet.requests).toHaveLength(0);
    } finally {
      await gateway.stop();
    }
  });
});
