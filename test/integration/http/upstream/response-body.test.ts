import { createHash, randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { ResponseBody, SingleResponse } from "../../../../packages/client/src/http/upstream/response-body.ts";
import { dial } from "../../../../packages/client/src/net/dial.ts";
import { UpstreamError } from "../../../../packages/client/src/net/upstream-error.ts";
import { listenRaw, openSocketCount, type RawUpstream, until } from "../../../support/http/loopback.ts";

let upstream: RawUpstream | undefined;

afterEach(async () => {
  await upstream?.close();
  await until(() => openSocketCount() === 0, "all sockets closed");
});

async function bodyFrom(
  onConnection: (socket: Socket) => void,
  framing: string,
  deadlineMs?: number,
): Promise<ResponseBody> {
  upstream = await listenRaw(onConnection);
  const socket = await dial({ host: "127.0.0.1", port: upstream.port });
  return new ResponseBody(socket, responseOf(framing), { deadlineMs });
}

/** Its head has come. */
function responseOf(framing: string): SingleResponse {
  const response = new SingleResponse("GET");
  response.push(Buffer.from(`HTTP/1.1 403 Forbidden\r\n${framing}\r\n`));
  return response;
}

describe("ResponseBody", () => {
  it("is given up at its deadline", async () => {
    const body = await bodyFrom((socket) => socket.write("ab"), "Content-Length: 3\r\n", 50);
    await expect(body.toArray()).rejects.toMatchObject({ code: "truncated-body", message: "i/o timeout" });
  });

  it("ends where the connection ends when nothing else says so", async () => {
    const body = await bodyFrom((socket) => socket.end("abc"), "");
    expect(Buffer.concat(await body.toArray()).toString()).toBe("abc");
  });

  it("is truncated when the connection is reset, even without a length", async () => {
    const body = await bodyFrom((socket) => socket.write("abc"), "");
    body.once("data", () => upstream?.sockets[0]?.resetAndDestroy());
    await new Promise((resolve) => body.once("close", resolve));
    expect(body.errored).toMatchObject({ code: "truncated-body" });
  });

  it("delivers a large body whole to a slow reader", async () => {
    const content = randomBytes(4 * 1024 * 1024);
    const body = await bodyFrom((socket) => socket.end(content), `Content-Length: ${content.length}\r\n`);
    const digest = createHash("sha256");
    for await (const part of body) {
      digest.update(part as Buffer);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(digest.digest("hex")).toBe(createHash("sha256").update(content).digest("hex"));
  });
});

describe("chunked bodies", () => {
  const wire = Buffer.from("3\r\nabc\r\n0002;name=value\r\nde\r\n0\r\nT: 1\r\n\r\nnot ours");
  const decode = (parts: readonly Buffer[]): { text: string; isWhole: boolean } => {
    const response = responseOf("Transfer-Encoding: chunked\r\n");
    let text = "";
    response.readBody((bytes) => {
      text += bytes.toString();
    });
    for (const part of parts) response.push(part);
    return { text, isWhole: response.isWhole };
  };

  it("decode alike wherever they are split", () => {
    for (let at = 0; at <= wire.length; at++) {
      const parts = [wire.subarray(0, at), wire.subarray(at)];
      expect(decode(parts), `split at ${at}`).toEqual({ text: "abcde", isWhole: true });
    }
  });

  it.each([
    "x\r\n",
    "-1\r\n",
    " 3\r\nabc",
    "3\nabc\n0\n\n",
    "3\r\nabcd\r\n",
    `${"0".repeat(9000)}`,
    `0\r\n${"A: b\r\n".repeat(2001)}\r\n`,
  ])("refuse %j", (text) => {
    expect(() => decode([Buffer.from(text)])).toThrow(UpstreamError);
  });
});
