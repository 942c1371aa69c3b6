import { describe, expect, it } from "vitest";
import { getObject } from "../../../packages/client/src/get-object.ts";
import { Target } from "../../../packages/client/src/target.ts";
import { closedAfterEach } from "../../support/client/closed-after-each.ts";
import { startConnectProxy } from "../../support/connect-proxy.ts";
import { answering, listenRaw } from "../../support/http/loopback.ts";

const closing = closedAfterEach();

async function serve(onConnection: Parameters<typeof listenRaw>[0]) {
  const server = await listenRaw(onConnection);
  closing.push(() => server.close());
  return new Target({ url: `http://127.0.0.1:${server.port}/base`, proxy: "none" });
}

const json = (status: string, body: string) =>
  answering(`HTTP/1.1 ${status}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);

describe("getObject", () => {
  it("reads an object, through a proxy too", async () => {
    const target = await serve(json("200 OK", '{"a":1}'));
    expect(await getObject(target, "/api")).toEqual({ a: 1 });
    const proxy = await startConnectProxy();
    closing.push(proxy.close);
    const through = new Target({ url: target.url, proxy: `http://127.0.0.1:${proxy.port}` });
    expect(await getObject(through, "/api")).toEqual({ a: 1 });
    expect(proxy.asked.length).toBe(1);
  });

  it("gives the server's Status, or the start of what it says", async () => {
    const status = '{"kind":"Status","status":"Failure","message":"no pod","reason":"NotFound","code":404}';
    await expect(getObject(await serve(json("404 Not Found", status)), "/")).rejects.toMatchObject({
      leg: "http",
      message: "no pod",
      apiStatus: { reason: "NotFound" },
    });
    const page = await serve(json("502 Bad Gateway", `<html>${"x".repeat(50_000)}`));
    await expect(getObject(page, "/")).rejects.toMatchObject({
      message: /^<html>x{1018}\.\.\.$/,
      httpStatus: 502,
    });
  });

  it("gives up on an endless answer, on silence and on what is no HTTP", async () => {
    const endless = await serve((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const chunk = Buffer.alloc(1024 * 1024);
      const flood = (): void => {
        while (!socket.destroyed && socket.write(chunk));
      };
      socket.on("drain", flood);
      flood();
    });
    await expect(getObject(endless, "/")).rejects.toMatchObject({
      message: "the answer has more than 67108864 bytes",
    });
    const silent = await serve(() => {});
    await expect(getObject(silent, "/", { timeoutMs: 20 })).rejects.toMatchObject({ leg: "response" });
    const other = await serve((socket) => socket.end("SSH-2.0\r\n"));
    await expect(getObject(other, "/")).rejects.toMatchObject({ leg: "response" });
  });
});
