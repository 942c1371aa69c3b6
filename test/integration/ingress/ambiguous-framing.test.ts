import { once } from "node:events";
import { createServer as createHttp1Server } from "node:http";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { backend, FrontDoor, ingressObject, serviceObjects } from "../../support/front-door.ts";
import { listenRaw, openClient, readToEnd } from "../../support/http/loopback.ts";

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CHUNKS = "2\r\nhi\r\n0\r\n\r\n";

it("a request whose end another hop may see elsewhere is the last of its connection", async () => {
  const seen: string[] = [];
  const upstream = await listenRaw((socket) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const isChunked = text.includes("chunked");
      if (!text.endsWith(isChunked ? "0\r\n\r\n" : "\r\n\r\n")) return;
      seen.push(text.slice(0, text.indexOf("\r\n")));
      text = "";
      socket.write(OK);
    });
  });
  onTestFinished(() => upstream.close());
  const door = await FrontDoor.start([
    ...serviceObjects("app", [upstream]),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  onTestFinished(() => door.stop());
  await door.serves(1);
  const requests = [
    ["POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nContent-Length: 3\r\n\r\nabc", 400],
    ["POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n", 400],
    [`POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n${CHUNKS}`, 400],
    [`POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n${CHUNKS}`, 400],
    [
      `POST /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`,
      200,
    ],
  ] as const;
  for (const [text, status] of requests) {
    const client = await openClient(door.httpPort);
    client.write(`${text}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`);
    const { text: answered } = await readToEnd(client);
    expect([text, answered.match(/HTTP\/1\.1 \d+/g)]).toEqual([text, [`HTTP/1.1 ${status}`]]);
    expect(answered).toMatch(/\r\nconnection: close\r\n/i);
  }
  expect(seen.filter((line) => line.includes("/smuggled"))).toEqual([]);
});

it("a backend of HTTP/2 gets no request whose end is in doubt, either", async () => {
  const seen: (string | undefined)[] = [];
  const upstream = createServer((request, response) => {
    seen.push(request.url);
    response.end("ok");
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  onTestFinished(() => void upstream.close());
  const door = await FrontDoor.start([
    ...serviceObjects("app", [upstream.address() as AddressInfo], { appProtocol: "kubernetes.io/h2c" }),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  onTestFinished(() => door.stop());
  await door.serves(1);
  for (const lines of [
    "Transfer-Encoding:\r\nContent-Length: 3\r\n\r\nabc",
    "Transfer-Encoding:\r\n\r\n",
    `Transfer-Encoding: gzip, chunked\r\n\r\n${CHUNKS}`,
    `Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`,
    `Transfer-Encoding: ,chunked\r\n\r\n${CHUNKS}`,
  ]) {
    const client = await openClient(door.httpPort);
    client.write(`POST /a HTTP/1.1\r\nHost: a\r\n${lines}GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n`);
    const { text: answered } = await readToEnd(client);
    expect([lines, answered.match(/HTTP\/1\.1 \d+/g)]).toEqual([lines, ["HTTP/1.1 400"]]);
    expect(answered).toMatch(/\r\nconnection: close\r\n/i);
  }
  expect(seen).toEqual([]);
});

it.each([
  ["HTTP/1.1", {}],
  ["h2c", { appProtocol: "kubernetes.io/h2c" }],
])("a backend of %s gets no framing or claim in the spelling that CGI reads as the real one", async (_, port) => {
  const isHttp2 = "appProtocol" in port;
  const names: string[] = [];
  const answer = (
    request: { readonly rawHeaders: string[] },
    response: { end(text: string): unknown },
  ): void => {
    names.push(...request.rawHeaders.filter((__, index) => index % 2 === 0));
    response.end("ok");
  };
  const upstream = isHttp2 ? createServer(answer) : createHttp1Server(answer);
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  onTestFinished(() => void upstream.close());
  const door = await FrontDoor.start([
    ...serviceObjects("app", [upstream.address() as AddressInfo], port),
    ingressObject("all", { defaultBackend: backend("app") }),
  ]);
  onTestFinished(() => door.stop());
  await door.serves(1);
  names.length = 0;
  const client = await openClient(door.httpPort);
  const lines = ["Transfer_Encoding: chunked", "CONTENT_length: 3", "X_Forwarded_For: 6.6.6.6", "X_Mine: 1"];
  client.write(`POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${lines.join("\r\n")}\r\n\r\n`);
  expect((await readToEnd(client)).text).toContain(" 200 ");
  expect(names.filter((name) => name.includes("_")).map((name) => name.toLowerCase())).toEqual(["x_mine"]);
});
