import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { AnswerTooLargeError, wholeBody } from "../../../../packages/client/src/http/upstream/whole-body.ts";
import { eventually } from "../../../support/eventually.ts";

let close: (() => void) | undefined;
afterEach(() => close?.());

async function answeredBy(answer: (response: ServerResponse) => void): Promise<IncomingMessage> {
  const server = createServer((_, response) => answer(response)).listen(0, "127.0.0.1");
  close = () => {
    server.close();
    server.closeAllConnections();
  };
  await once(server, "listening");
  const request = get({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, agent: false });
  const [response] = await once(request, "response");
  return response;
}

describe("the whole body of an answer", () => {
  it("is what the server sent, up to the bound", async () => {
    const response = await answeredBy((answer) => answer.end("0123456789"));
    expect((await wholeBody(response, 10)).toString()).toBe("0123456789");
  });

  it("past the bound is no answer, and an endless one is not waited for", async () => {
    const response = await answeredBy((answer) => answer.write("0123456789x"));
    await expect(wholeBody(response, 10)).rejects.toThrow(
      new AnswerTooLargeError("the answer has more than 10 bytes"),
    );
    await eventually("its connection is given up", () => response.destroyed);
  });

  it("that breaks off is no answer", async () => {
    const response = await answeredBy((answer) => {
      answer.writeHead(200, { "Content-Length": 10 });
      answer.write("0123", () => answer.destroy());
    });
    await expect(wholeBody(response, 10)).rejects.toThrow("aborted");
  });
});
